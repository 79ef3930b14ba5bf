"""Calibration as terminal tables: what first-pass scores tell in one mode, and whether the thresholds in force suit them."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from rag_arena import strategies
from rag_arena.params import Params, Sigmoid
from rag_arena.records import RELEVANCE, SCORERS, Cell
from rag_arena.stages.calibrate import Calibrated, corrected

_WIDTH = 118
_COSTS = ("gain_widen", "documents_widen", "characters_widen", "gain_other_lane", "documents_other_lane", "characters_other_lane")


def render(console: Console, mode: str, params: Params, calibrated: Calibrated, in_force: Mapping[Cell, Any]) -> None:
    """Print one mode's calibration.

    Args:
        console: where.
        mode: which.
        params: the limit of the correction rate, and the typed sigmoid of the reranker.
        calibrated: the mode's tables.
        in_force: the resolved settings of its cells.
    """
    console.width = max(console.width, _WIDTH)
    counts = calibrated.thresholds.to_pylist()[0]
    labels = ", ".join(f"{counts[f'n_{label}']} {label}" for label in ("good", "acceptable", "bad", "unlabelled"))
    asked = sum(counts[f"n_{label}"] for label in ("good", "acceptable", "bad", "unlabelled"))
    title = f"{mode}: {asked} calibration questions, by their top {params.calibration.k}: {labels}"
    console.print(_scores(title, calibrated))
    if asked:
        console.print(_candidates(calibrated.candidates.to_pylist()))
    for line in sentences(params, calibrated, in_force):
        console.print(line, highlight=False, markup=False, soft_wrap=True)


def sentences(params: Params, calibrated: Calibrated, in_force: Mapping[Cell, Any]) -> Iterator[str]:
    """What follows from the tables, a line each."""
    sigmoid = next(row for row in calibrated.sigmoids.to_pylist() if row["scorer"] == RELEVANCE)
    if sigmoid["tau"] is not None:
        typed = params.reranker
        yield (
            f"relevance: tau {sigmoid['tau']:.4f}, T {sigmoid['temperature']:.4f}, fitted to {sigmoid['n_relevant']} gold and "
            f"{sigmoid['n_other']} other documents; typed for hybrid_rerank: {typed.tau:g}, {typed.temperature:g}"
        )
    counts = calibrated.thresholds.to_pylist()[0]
    if not any(counts[f"n_{label}"] for label in ("good", "acceptable", "bad")):
        yield "no retrieval is labelled: auto is refused; `arena label` writes the sheet to fill in"
    elif not counts["n_bad"]:
        yield "no retrieval is labelled bad: nothing here shows that a correction is needed, and auto corrects none of these"
    for cell, resolved in in_force.items():
        settings = {row["key"]: (json.loads(row["value"]), row["origin"]) for row in resolved.to_pylist()}
        for key, about in strategies.calibrated(cell.strategy).items():
            threshold, origin = settings[key]
            through = Sigmoid(**settings["relevance"][0]) if about["scorer"] == RELEVANCE else None
            name = f"{cell.strategy}.{key} {threshold:.4g} ({origin})"
            yield f"{name} {verdict(threshold, about, through, params.calibration.high_correction_rate, calibrated)}"


def verdict(threshold: float, about: Mapping[str, str], through: Sigmoid | None, limit: float, calibrated: Calibrated) -> str:
    """How many retrievals lie under a threshold; if that is too many, the highest candidate under which few enough do.

    Source of the limit: corrections should catch edge cases, at most 20 to 25 % of the questions.
    """
    scores = [row["best"] for row in calibrated.retrievals.to_pylist() if row["scorer"] == about["scorer"]]
    if not scores:
        return "meets no calibration question"
    rate = sum(corrected(best, threshold, through) for best in scores) / len(scores)
    if about["separates"] == "good":
        return f"calls {1 - rate:.0%} of the retrievals good"
    if rate <= limit:
        return f"corrects {rate:.0%} of the questions"
    lower = [
        row for row in calibrated.candidates.to_pylist() if row["scorer"] == about["scorer"] and row["correction_rate"] <= limit
    ]
    told = f"corrects {rate:.0%} of the questions, over {limit:.0%}: too high"
    if not lower:
        return f"{told}, as is every candidate"
    best = max(lower, key=lambda row: row["threshold"])
    return f"{told}; {best['threshold']:g} corrects {best['correction_rate']:.0%}"


def _scores(title: str, calibrated: Calibrated) -> Table:
    """The distribution of each scorer's best scores and where they are cut."""
    table = _table(
        title, "scorer", "lowest", "p15", "median", "mean", "highest", "tau", "T", "bad under", "P", "R", "good from", "P", "R"
    )
    for scorer in SCORERS:
        rows = calibrated.retrievals.to_pylist()
        best = np.array([row["best"] for row in rows if row["scorer"] == scorer and row["best"] is not None])
        spread = [best.min(), np.percentile(best, 15), np.median(best), best.mean(), best.max()] if best.size else [None] * 5
        sigmoid = next(row for row in calibrated.sigmoids.to_pylist() if row["scorer"] == scorer)
        cuts = {row["separates"]: row for row in calibrated.thresholds.to_pylist() if row["scorer"] == scorer}
        shown = [*spread, sigmoid["tau"], sigmoid["temperature"]]
        shown += [cuts[kind][column] for kind in ("bad", "good") for column in ("cut", "precision", "recall")]
        table.add_row(scorer, *(_shown(value, 3) for value in shown))
    return table


def _candidates(rows: Sequence[Mapping[str, Any]]) -> Table:
    """What each candidate threshold corrects, and what a correction that drops nothing gains and costs per question."""
    title = (
        "candidates: gain in gold recall, documents and characters more to read, per question, by widening | by the other lane"
    )
    table = _table(title, "scorer", "threshold", "corrects", "P of bad", "R", "gain", "docs", "chars", "| gain", "docs", "chars")
    for row in rows:
        costs = [_shown(row[column], 0 if column.startswith("characters") else 2) for column in _COSTS]
        quality = (_shown(row["precision"], 2), _shown(row["recall"], 2))
        table.add_row(row["scorer"], f"{row['threshold']:.2f}", f"{row['correction_rate']:.0%}", *quality, *costs)
    return table


def _table(title: str, first: str, *headings: str) -> Table:
    table = Table(title=title, title_justify="left", box=SIMPLE, collapse_padding=True, pad_edge=False)
    table.add_column(first, no_wrap=True)
    for heading in headings:
        table.add_column(heading, justify="right")
    return table


def _shown(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"
