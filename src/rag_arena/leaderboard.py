"""The leaderboard as a terminal table, read from results/."""

import csv
from typing import Any

import numpy as np
from rich.box import MARKDOWN, SIMPLE
from rich.console import Console
from rich.table import Table

from rag_arena import artifacts, layout
from rag_arena.errors import ArenaError
from rag_arena.records import AUTO, LEVEL
from rag_arena.scoring.groups import ALL
from rag_arena.wording import count

_COLUMNS = (
    ("recall", "recall", 2),
    ("precision", "prec.", 2),
    ("f1", "F1", 2),
    ("contains", "cont.", 2),
    ("answer_accuracy", "accur.*", 2),
    ("faithfulness", "faith.*", 2),
    ("correction_rate", "corr.", 2),
    ("latency_p50_s", "p50 s", 2),
    ("tokens_in", "tok. in", 0),
    ("tokens_out", "out", 0),
    ("cost_usd", "USD", 4),
)
_WIDTH = 118  # what the table needs
_COMPARED = ("recall", "contains", "f1")  # in the note under the table
_ENOUGH = 10  # labelled retrievals of either kind under which a cut between them is an accident


def board(question_type: str) -> list[dict[str, Any]]:
    """The leaderboard's rows of one question type with their seconds, as texts.

    Raises:
        ArenaError: results/leaderboard.csv is missing or has no such question type.
    """
    path = layout.RESULTS / "leaderboard.csv"
    if not path.is_file():
        raise ArenaError(f"{path}: missing; run `snakemake --cores 4` in the project's folder")
    with path.open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["question_type"] == question_type]
    if not rows:
        raise ArenaError(f"{path}: no rows for question type {question_type!r}; try all, multi_hop, single_hop or summary")
    return rows


def render(console: Console, question_type: str, markdown: bool = False) -> None:
    """Print the leaderboard of one question type and what is needed to read it.

    Raises:
        ArenaError: as `board`.
    """
    rows = board(question_type)
    first = rows[0]
    console.width = max(console.width, _WIDTH)
    about = _about()
    title = f"{about['dataset']}, {question_type}: {first['n_planned']} questions, {about['model']}"
    table = Table(
        title=title, title_justify="left", box=MARKDOWN if markdown else SIMPLE, collapse_padding=True, pad_edge=markdown
    )
    table.add_column("strategy", no_wrap=True)
    table.add_column("retrieval", no_wrap=True)
    table.add_column("n")
    for _, heading, _ in _COLUMNS:
        table.add_column(heading, justify="right")
    for row in rows:
        counted = row["n_answered"] if row["n_failed"] == "0" else f"{row['n_answered']}/{row['n_planned']}"
        table.add_row(row["strategy"], row["retrieval"], counted, *(_shown(row[c], digits) for c, _, digits in _COLUMNS))
    console.print(table)
    if note := _gold_note(int(first["n_with_gold"]), int(first["n_planned"])):
        console.print(note, highlight=False)
    if (generated := first["n_generated"]) != "0":
        console.print(f"{generated} of the {first['n_planned']} questions were generated, not written.", highlight=False)
    console.print(_judge_note(about["judge"], rows), highlight=False)
    for note in (_calibration_note(), _contrast_note() if question_type == ALL else ""):
        if note:
            console.print(note, highlight=False)


def _shown(value: str, digits: int) -> str:
    return f"{float(value):.{digits}f}" if value else "-"


def _about() -> dict[str, str]:
    """Dataset, model and judge of the results, as they were when the results were made."""
    metadata = artifacts.read(layout.result("leaderboard"), artifacts.LEADERBOARD).schema.metadata
    return {name: metadata.get(f"arena.{name}".encode(), b"").decode() for name in ("dataset", "model", "judge")}


def _gold_note(with_gold: int, planned: int) -> str:
    """Of how many questions recall and precision tell, unless it is all."""
    if not with_gold:
        return "recall and precision are empty: these questions have no gold documents."
    if with_gold == planned:
        return ""
    return f"recall and precision are of the {with_gold} of {planned} questions that have gold documents."


def _calibration_note() -> str:
    """Which thresholds rest on too few retrievals of one kind to be more than guesses."""
    few: dict[str, str] = {}
    names = set()
    for row in artifacts.read(layout.result("settings"), artifacts.SETTINGS).to_pylist():
        if row["origin"] != AUTO:
            continue
        number, kind = min((row["n_good"], "good"), (row["n_bad"], "bad"), key=lambda pair: pair[0])
        if number < _ENOUGH:
            labelled = row["n_good"] + row["n_acceptable"] + row["n_bad"]
            few[row["retrieval"]] = f"{row['retrieval']} {number} {kind} of {labelled}"
            names.add(row["strategy"])
    if not few:
        return ""
    return (
        f"Calibrated thresholds of {', '.join(sorted(names))} are guesses, for want of labelled retrievals of one kind: "
        f"{', '.join(few.values())}. Raise sample.calibration, or type numbers that `arena calibration` supports."
    )


def _contrast_note() -> str:
    """Which of the planned comparisons are beyond chance, and how large a difference this sample would show.

    Those by the judge's ratings are left to the table: the note on the judge says whether they mean anything.
    """
    rows = artifacts.read(layout.result("contrasts"), artifacts.CONTRASTS).to_pylist()
    by_metric = {metric: found for metric in _COMPARED if (found := [row for row in rows if row["metric"] == metric])}
    if not by_metric:
        return ""
    shown = [
        f"{metric} of {row['strategy']}-{row['retrieval']} {row['difference']:+.2f} against {row['against']}"
        for metric, found in by_metric.items()
        for row in found
        if row["p_holm"] < LEVEL
    ]
    number, (metric, compared) = max(map(len, by_metric.values())), next(iter(by_metric.items()))
    note = (
        f"Question by question, {'beyond chance is ' + ', '.join(shown) if shown else 'nothing is beyond chance'} "
        f"(p < {LEVEL} by Holm; {count(number, 'comparison')} with vanilla or dense in each of {', '.join(by_metric)})."
    )
    if least := [row["detectable"] for row in compared if row["detectable"] is not None]:
        note += f" One comparison that was meant beforehand would show a difference in {metric} of about {np.median(least):.2f}."
    return f"{note} See `arena table contrasts`, `arena compare`."


def _judge_note(judge: str, rows: list[dict[str, Any]]) -> str:
    asked, failed = (sum(int(row[c]) for row in rows) for c in ("n_judged", "n_judge_failed"))
    note = f"* by {judge} on {asked} answers; {failed} had a failed judgement."
    truth = {row["kind"]: row for row in artifacts.read(layout.result("judge_truth"), artifacts.JUDGE_TRUTH).to_pylist()}
    whole = truth["all"]
    if whole["share_right"] is None:
        note += " NOTHING IS KNOWN OF THIS JUDGE: there was no pair of known truth (see sample.calibration, judge.known_truth)."
    else:
        better = whole["p_chance"] < LEVEL
        verdict = "better than chance" if better else "NO BETTER THAN CHANCE: read nothing into its columns"
        note += (
            f" On {whole['n_asked']} pairs of known truth it is right in {whole['share_right']:.0%} "
            f"(balanced; p = {whole['p_chance']:.2f}), {verdict}."
        )
    return note
