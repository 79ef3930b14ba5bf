"""Thresholds: what they are worth, and labels where the dataset has no gold documents."""

from typing import Annotated

import typer
from rich.console import Console

from rag_arena import artifacts, layout
from rag_arena.cli.common import CALIBRATED, calibrated, mode_of_grid, params_in_force
from rag_arena.records import Cell
from rag_arena.sources import labels
from rag_arena.wording import count

app = typer.Typer()


@app.command()
def calibration(
    mode: Annotated[str, typer.Argument(help="a retrieval mode of the grid; without it, all of them")] = "",
) -> None:
    """Print what first-pass scores are worth, and whether thresholds suit them. Example: arena calibration hybrid"""
    from rag_arena.calibration import render
    from rag_arena.stages.calibrate import Calibrated

    params = params_in_force()
    for name in [mode_of_grid(params, mode)] if mode else params.grid.modes:
        cells = [Cell(strategy, name) for strategy in params.grid.strategies]
        in_force = {cell: artifacts.read(layout.resolved(cell), artifacts.RESOLVED) for cell in cells}
        render(Console(), name, params, Calibrated(**{table: calibrated(name, table) for table in CALIBRATED}), in_force)


@app.command()
def label(mode: Annotated[str, typer.Argument(help="the retrieval mode whose documents are to be labelled")]) -> None:
    """Add the calibration questions' top documents to data/labels.csv, to be labelled by you. Example: arena label hybrid"""
    from rag_arena.stages.label import label

    params = params_in_force()
    mode = mode_of_grid(params, mode)
    found = label(
        params.calibration.k,
        artifacts.documents(artifacts.read(layout.CORPUS, artifacts.CORPUS)),
        artifacts.read(layout.QUESTIONS, artifacts.QUESTIONS),
        artifacts.read(layout.CALIBRATION, artifacts.SAMPLE),
        artifacts.read(layout.hits(mode), artifacts.HITS),
    )
    old = labels.read(layout.LABELS) if layout.LABELS.exists() else []
    new = labels.merged(old, found)
    artifacts.write(layout.LABELS, labels.text(new))
    added, empty = count(len(new) - len(old), "row"), sum(row.verdict is None for row in new)
    typer.echo(f"{layout.LABELS}: {added} added, {len(old)} kept; {empty} with an empty label, to be yes or no")
