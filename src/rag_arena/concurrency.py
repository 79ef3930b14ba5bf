"""Many things at once."""

import asyncio
from collections.abc import Sequence
from typing import Any


async def gather_or_raise(work: Sequence[Any]) -> list[Any]:
    """Results in order; the first exception cancels the rest and is raised as it is."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(item) for item in work]
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return [task.result() for task in tasks]
