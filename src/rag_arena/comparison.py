"""Any two cells beside each other as a terminal table: on the same questions, and what each costs."""

from collections.abc import Mapping
from typing import Any

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from rag_arena import artifacts, layout
from rag_arena.errors import ArenaError
from rag_arena.leaderboard import board
from rag_arena.params import nearest
from rag_arena.records import LEVEL, Cell
from rag_arena.scoring.contrasts import METRICS, clusters_of, compare
from rag_arena.scoring.groups import ALL

_WIDTH = 118  # what the table needs
_COSTS = (("tokens_in", 0), ("tokens_out", 0), ("llm_calls", 0), ("cost_usd", 4), ("latency_p50_s", 2))


def render(console: Console, first: str, second: str) -> None:
    """Print how two cells of the leaderboard differ.

    Raises:
        ArenaError: there are no results yet, or none of such a cell.
    """
    totals = {_cell(row): row for row in board(ALL)}
    for name in (first, second):
        if name not in totals:
            raise ArenaError(f"{layout.RESULTS}: no cell {name!r}{nearest(name, list(totals))}")
    scores = artifacts.read(layout.result("scores"), artifacts.SCORES).to_pylist()
    own, other = ([row for row in scores if _cell(row) == name] for name in (first, second))
    gold = {row["question_id"]: row["gold_ids"] for row in artifacts.read(layout.QUESTIONS, artifacts.QUESTIONS).to_pylist()}
    clusters = clusters_of({row["question_id"]: gold[row["question_id"]] for row in own})
    console.width = max(console.width, _WIDTH)
    table = Table(title=f"{first} against {second}", title_justify="left", box=SIMPLE, collapse_padding=True, pad_edge=False)
    for heading in ("", "n", first, second, "difference", "95 %", "won", "lost", "tied", "p"):
        table.add_column(heading, justify="right" if heading else "left", no_wrap=True)
    for metric in METRICS:
        if found := compare(own, other, metric, clusters):
            interval = "-" if found["low"] is None else f"{found['low']:+.2f} to {found['high']:+.2f}"
            counts = [str(found[name]) for name in ("won", "lost", "tied")]
            means = [f"{found['mean']:.2f}", f"{found['mean_against']:.2f}", f"{found['difference']:+.2f}"]
            table.add_row(metric, str(found["n_questions"]), *means, interval, *counts, f"{found['p']:.3f}")
    for name, digits in _COSTS:
        costs = [float(totals[cell][name]) for cell in (first, second)]
        table.add_row(name, "", *(f"{cost:.{digits}f}" for cost in costs), f"{costs[0] - costs[1]:+.{digits}f}")
    console.print(table)
    console.print(
        f"Question by question; intervals and p allow for questions that share a gold document. p < {LEVEL} counts for one "
        "comparison that was meant beforehand, not for the best of several: `arena table contrasts` adjusts for their number.",
        highlight=False,
    )


def _cell(row: Mapping[str, Any]) -> str:
    return str(Cell(row["strategy"], row["retrieval"]))
