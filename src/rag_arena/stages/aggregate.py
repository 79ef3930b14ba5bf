"""aggregate: scores per question, the leaderboard, and the tables beside it."""

import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
import pyarrow as pa

from rag_arena import artifacts
from rag_arena.artifacts import Artifact, questions_of
from rag_arena.params import NO_MODE, Params
from rag_arena.records import FAILED, Cell, Question
from rag_arena.scoring.board import board_row, latencies, metrics
from rag_arena.scoring.contrasts import contrast_rows
from rag_arena.scoring.decisions import Path, scorecard
from rag_arena.scoring.graders import grader_rows
from rag_arena.scoring.groups import ALL, groups, origins
from rag_arena.scoring.judge_quality import judge_quality, judge_truth
from rag_arena.scoring.node_costs import node_cost_rows
from rag_arena.scoring.oracle import Outcome, oracle_rows
from rag_arena.scoring.paths import path_rows
from rag_arena.scoring.question_scores import question_scores
from rag_arena.scoring.retrieval_quality import disagreement, ranking, retrieval_quality
from rag_arena.scoring.settings_in_force import setting_rows
from rag_arena.scoring.silver import STRATEGIES

_Timed = tuple[dict[str, Any], dict[str, Any]]  # a row, and the seconds that only its display has
_CLOSED_BOOK = Cell("no_retrieval", NO_MODE)


@dataclass(frozen=True, slots=True)
class Retrieved:
    """What the retrieve and calibrate stages left behind for one mode."""

    hits: pa.Table
    timings: pa.Table
    thresholds: pa.Table


@dataclass(frozen=True, slots=True)
class CellTables:
    """What one cell left behind; a cell that never retrieves has no resolved settings."""

    resolved: pa.Table
    answers: pa.Table
    calls: pa.Table
    timings: pa.Table
    judgements: pa.Table


@dataclass(frozen=True, slots=True)
class Results:
    """What results/ holds: `tables` are deterministic, `displays` some of them with seconds beside them."""

    tables: dict[str, pa.Table]
    displays: dict[str, pd.DataFrame]
    metrics: dict[str, str | float | None]


def aggregate(
    params: Params,
    questions: pa.Table,
    sample: pa.Table,
    retrieved: Mapping[str, Retrieved],
    cells: Mapping[Cell, CellTables],
    known_truth: pa.Table,
) -> Results:
    """Everything that is reported, from the cells that params.yaml names and nothing else."""
    asked = {q.question_id: q for q in questions_of(questions, sample)}
    scored = {cell: _scores(cell, t.answers.to_pylist(), _by_id(t.judgements.to_pylist()), asked) for cell, t in cells.items()}
    closed_book = {r["question_id"]: r["correct"] for r in scored.get(_CLOSED_BOOK, []) if r["failure"] != FAILED}
    first_pass = {mode: {r["question_id"]: r["seconds"] for r in found.timings.to_pylist()} for mode, found in retrieved.items()}
    boards = [*groups(q.question_type for q in asked.values()), *origins(q.origin for q in asked.values())]
    board: list[_Timed] = []
    graders: list[_Timed] = []
    nodes: list[_Timed] = []
    judged: list[dict[str, Any]] = []
    decisions: list[dict[str, Any]] = []
    paths: list[dict[str, Any]] = []
    settings: list[dict[str, Any]] = []
    for cell, t in cells.items():
        answers, calls, timings = t.answers.to_pylist(), t.calls.to_pylist(), t.timings.to_pylist()
        judgements = t.judgements.to_pylist()
        judged.append(judge_quality(cell, judgements, params.judge.llm.price))
        for group in boards:
            planned = [question for question in asked.values() if group in (ALL, question.question_type, question.origin)]
            row = board_row(cell, group, planned, answers, judgements, scored[cell], params.llm, params.small_llm)
            board.append((row, latencies(planned, timings, first_pass.get(cell.retrieval, {}))))
        taken = _paths(answers, _by_id(scored[cell]), asked, closed_book)
        decisions += scorecard(cell, taken)
        paths += path_rows(cell, taken)
        graders += grader_rows(cell, taken, calls, timings)
        nodes += node_cost_rows(cell, calls)
        if cell.retrieval in retrieved:
            labelled = retrieved[cell.retrieval].thresholds.to_pylist()[0]
            settings += setting_rows(cell, t.resolved.to_pylist(), labelled)
    rankings = {mode: ranking(found.hits) for mode, found in retrieved.items()}
    everything = questions.to_pylist()
    timed = {artifacts.LEADERBOARD: board, artifacts.GRADERS: graders, artifacts.NODE_COSTS: nodes}
    rows = {
        artifacts.SCORES: itertools.chain.from_iterable(scored.values()),
        artifacts.DECISIONS: decisions,
        artifacts.PATHS: paths,
        artifacts.ORACLE: itertools.chain.from_iterable(_oracle(mode, cells, scored) for mode in retrieved),
        artifacts.CONTRASTS: contrast_rows(scored, {q.question_id: q.gold_ids for q in asked.values()}),
        artifacts.SETTINGS: settings,
        artifacts.JUDGE_QUALITY: judged,
        artifacts.JUDGE_TRUTH: judge_truth(known_truth.to_pylist()),
        artifacts.RETRIEVAL_QUALITY: retrieval_quality(rankings, everything),
        artifacts.DISAGREEMENT: disagreement(rankings, everything),
        **{artifact: [row for row, _ in pairs] for artifact, pairs in timed.items()},
    }
    notes = {artifacts.LEADERBOARD: _provenance(params)}
    return Results(
        {artifact.name: artifacts.table(artifact, found, notes.get(artifact)) for artifact, found in rows.items()},
        {artifact.name: _display(artifact, pairs) for artifact, pairs in timed.items()},
        metrics(params.report.focus or str(params.cells[-1]), [row for row, _ in board]),
    )


def _scores(
    cell: Cell, answers: Iterable[Mapping[str, Any]], judged: Mapping[str, Mapping[str, Any]], asked: Mapping[str, Question]
) -> list[dict[str, Any]]:
    return [question_scores(cell, row, asked[row["question_id"]], judged.get(row["question_id"], {})) for row in answers]


def _display(artifact: Artifact, pairs: Sequence[_Timed]) -> pd.DataFrame:
    rows = pd.DataFrame([{**row, **seconds} for row, seconds in pairs], columns=None if pairs else artifact.schema.names)
    return rows.sort_values(list(artifact.key), ignore_index=True)


def _oracle(
    mode: str, cells: Mapping[Cell, CellTables], scored: Mapping[Cell, Sequence[Mapping[str, Any]]]
) -> Iterable[dict[str, Any]]:
    def outcomes(strategy: str) -> dict[str, Outcome] | None:
        cell = next((c for c in cells if c.strategy == strategy and c.retrieval in (mode, NO_MODE)), None)
        if cell is None:
            return None
        correct = {row["question_id"]: row["correct"] for row in scored[cell]}
        rows = cells[cell].answers.to_pylist()
        return {row["question_id"]: Outcome.of(row, correct[row["question_id"]]) for row in rows}

    arms = {choice: found for choice, strategy in STRATEGIES.items() if (found := outcomes(strategy)) is not None}
    return oracle_rows(mode, arms, outcomes("adaptive"))


def _paths(
    answers: Sequence[Mapping[str, Any]],
    scored: Mapping[str, Mapping[str, Any]],
    asked: Mapping[str, Question],
    closed_book: Mapping[str, bool | None],
) -> list[Path]:
    return [
        Path(
            row["question_type"],
            json.loads(row["trace"]),
            row["retrieved_ids"],
            row["used_ids"],
            frozenset(asked[row["question_id"]].gold_ids),
            row["corrected"],
            row["changed"],
            scored[row["question_id"]]["correct"],
            closed_book.get(row["question_id"]),
        )
        for row in answers
        if row["status"] != FAILED
    ]


def _provenance(params: Params) -> dict[str, str]:
    """What the numbers are about, kept in the file: params.yaml may have moved on when they are shown."""
    return {
        "arena.dataset": params.dataset.name,
        "arena.model": params.llm.endpoint.model,
        "arena.judge": params.judge.llm.endpoint.model,
    }


def _by_id(rows: Iterable[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    return {row["question_id"]: row for row in rows}
