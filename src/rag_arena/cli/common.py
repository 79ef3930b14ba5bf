"""What the commands share: parameters, cells, the models, and writing what a stage made."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import typer

from rag_arena import artifacts, layout, strategies
from rag_arena import compose as composing
from rag_arena.errors import ArenaError
from rag_arena.llm.ledger import Ledger, default_path
from rag_arena.params import Llm, Params, nearest, parse, read
from rag_arena.records import Cell
from rag_arena.wording import count

T = TypeVar("T")
CALIBRATED = {
    "retrievals": artifacts.RETRIEVALS,
    "sigmoids": artifacts.SIGMOIDS,
    "thresholds": artifacts.THRESHOLDS,
    "candidates": artifacts.CANDIDATES,
}
ROUTER = {
    "silver": artifacts.SILVER,
    "router": artifacts.ROUTER,
    "confusion": artifacts.CONFUSION,
    "quality": artifacts.ROUTER_QUALITY,
    "calls": artifacts.CALLS,
}
_read: list[bytes] = []  # params.yaml as this process read it


def params_in_force() -> Params:
    """params.yaml, checked; a note says if it has drifted from conf/ and no runner has said so already."""
    _read.append(read(layout.PARAMS))
    params = parse(_read[-1], str(layout.PARAMS))
    strategies.check(params)
    if "ARENA_DRIFT_CHECKED" not in os.environ and (drift := composing.drift(layout.CONF, layout.PARAMS)):
        typer.echo(f"note: params.yaml differs from conf/ in {count(len(drift), 'key')}; see `arena compose --check`", err=True)
    return params


def cell_of_grid(params: Params, strategy: str, retrieval: str) -> Cell:
    """A cell that the grid names.

    Raises:
        ArenaError: it names no such cell.
    """
    cell = Cell(strategy, retrieval)
    if cell not in params.cells:
        raise ArenaError(f"params.yaml: the grid has no cell {cell}; it has {', '.join(map(str, params.cells))}")
    return cell


def mode_of_grid(params: Params, mode: str) -> str:
    """A retrieval mode that the grid names, and that is therefore retrieved and calibrated.

    Raises:
        ArenaError: it does not name it.
    """
    if mode not in params.grid.modes:
        raise ArenaError(f"params.yaml: retrieval mode {mode!r} is not in the grid{nearest(mode, params.grid.modes)}")
    return mode


def calibrated(mode: str, name: str) -> pa.Table:
    """One table of a mode's calibration."""
    return artifacts.read(layout.calibrated(mode, name), CALIBRATED[name])


def router(mode: str) -> pa.Table:
    """A mode's trained router."""
    return artifacts.read(layout.router(mode, "router"), artifacts.ROUTER)


def with_model(llm: Llm, work: Callable[[Any], Awaitable[T]]) -> T:
    """Run asynchronous work with a client whose calls go through the ledger."""

    async def only(clients: Sequence[Any], _: Ledger) -> T:
        return await work(clients[0])

    return with_models([llm], only)


def with_models(llms: Sequence[Llm], work: Callable[[Sequence[Any], Ledger], Awaitable[T]]) -> T:
    """Run asynchronous work with a client per model (models that are configured alike share one) and the ledger behind them."""
    from rag_arena.llm.client import connect

    ledger = Ledger(default_path())

    async def connected() -> T:
        async with AsyncExitStack() as stack:
            opened: list[Any] = []
            for position, llm in enumerate(llms):
                first = llms.index(llm)
                opened.append(opened[first] if first < position else await stack.enter_async_context(connect(llm, ledger)))
            return await work(opened, ledger)

    try:
        return asyncio.run(connected())
    finally:
        ledger.close()


def save(path: Path, content: pa.Table | str) -> None:
    """Write an artifact or a text, unless params.yaml has changed since it was read: DVC would record it under the new values.

    Raises:
        ArenaError: it has changed, or the file cannot be written.
    """
    if layout.PARAMS.read_bytes() != _read[-1]:
        raise ArenaError(f"{layout.PARAMS}: changed while the stage was at work; nothing was written, run again")
    artifacts.write(path, content)
