"""Progress of a loop: a bar with rate and time left on a terminal, nothing elsewhere."""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

T = TypeVar("T")


class _Rate(ProgressColumn):
    def render(self, task: Task) -> Text:
        return Text(f"{task.speed:.1f}/s" if task.speed else "-/s")


@contextmanager
def waiting(label: str) -> Iterator[None]:
    """A label as long as it takes."""
    with Console(file=sys.stderr).status(label):
        yield


@contextmanager
def bar(label: str, total: int) -> Iterator[Callable[..., None]]:
    """A bar that the yielded function moves on, by one or by as many as it is given."""
    console = Console(file=sys.stderr)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), _Rate(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task(label, total=total)
        yield lambda done=1: progress.advance(task, done)


def track(label: str, items: Iterable[T], total: int) -> Iterator[T]:
    """The items, with a bar that moves as they are taken."""
    with bar(label, total) as advance:
        for item in items:
            yield item
            advance()
