"""What the commands share: parameters, cells, the model, and writing a text file whole."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa
import typer

from rag_arena import artifacts, layout, strategies
from rag_arena import compose as composing
from rag_arena.errors import ArenaError
from rag_arena.llm.ledger import Ledger, default_path
from rag_arena.params import Llm, Params, load
from rag_arena.records import Cell

if TYPE_CHECKING:
    from rag_arena.stages.calibrate import Calibrated

T = TypeVar("T")
_read: list[bytes] = []  # params.yaml as this process read it


def params_in_force() -> Params:
    """params.yaml, checked; a note says if it has drifted from conf/ and no runner has said so already."""
    params = load(layout.PARAMS)
    _read.append(layout.PARAMS.read_bytes())
    strategies.check(params)
    if "ARENA_DRIFT_CHECKED" not in os.environ and (drift := composing.drift(layout.CONF, layout.PARAMS)):
        typer.echo(f"note: params.yaml differs from conf/ in {len(drift)} keys; see `arena compose --check`", err=True)
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


def calibrated(mode: str) -> "Calibrated":
    """A mode's calibration."""
    from rag_arena.stages.calibrate import Calibrated

    tables = {
        "retrievals": artifacts.RETRIEVALS,
        "sigmoids": artifacts.SIGMOIDS,
        "thresholds": artifacts.THRESHOLDS,
        "candidates": artifacts.CANDIDATES,
    }
    return Calibrated(**{name: artifacts.read(layout.calibrated(mode, name), artifact) for name, artifact in tables.items()})


def with_model(llm: Llm, work: Callable[[Any], Awaitable[T]]) -> T:
    """Run asynchronous work with a client whose calls go through the ledger."""

    async def only(clients: Sequence[Any]) -> T:
        return await work(clients[0])

    return with_models([llm], only)


def with_models(llms: Sequence[Llm], work: Callable[[Sequence[Any]], Awaitable[T]]) -> T:
    """Run asynchronous work with a client per model; models that are configured alike share one."""
    from rag_arena.llm.client import connect

    ledger = Ledger(default_path())

    async def connected() -> T:
        async with AsyncExitStack() as stack:
            opened: list[Any] = []
            for position, llm in enumerate(llms):
                first = llms.index(llm)
                opened.append(opened[first] if first < position else await stack.enter_async_context(connect(llm, ledger)))
            return await work(opened)

    try:
        return asyncio.run(connected())
    finally:
        ledger.close()


def save(path: Path, table: pa.Table) -> None:
    """Write an artifact, unless params.yaml has changed since it was read: DVC would record it under the new values.

    Raises:
        ArenaError: it has changed, or the artifact cannot be written.
    """
    if layout.PARAMS.read_bytes() != _read[-1]:
        raise ArenaError(f"{layout.PARAMS}: changed while the stage was at work; nothing was written, run again")
    artifacts.write(path, table)


def write_text(path: Path, text: str) -> None:
    """Write a text file whole or not at all.

    Raises:
        ArenaError: it cannot be written.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(path)
    except OSError as error:
        raise ArenaError(f"{path}: cannot be written ({error.strerror or error}); free space or mend the rights") from error
    finally:
        if path.parent.is_dir():
            temporary.unlink(missing_ok=True)
