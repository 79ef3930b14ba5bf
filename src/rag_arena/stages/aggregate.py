"""aggregate: scores per question, the leaderboard, and the tables beside it."""

import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from rag_arena import artifacts
from rag_arena.artifacts import Artifact, questions_of
from rag_arena.decisions import claimed
from rag_arena.params import NO_MODE, Params
from rag_arena.records import FAILED, Cell, Question
from rag_arena.scoring import answers as scores
from rag_arena.scoring import evidence
from rag_arena.scoring.decisions import Path, scorecard
from rag_arena.scoring.graders import grader_rows
from rag_arena.scoring.groups import ALL, groups, mean, of
from rag_arena.scoring.judge_quality import judge_quality, judge_truth
from rag_arena.scoring.node_costs import node_cost_rows
from rag_arena.scoring.oracle import Outcome, oracle_rows
from rag_arena.scoring.paths import path_rows
from rag_arena.scoring.retrieval_quality import disagreement, ranking, retrieval_quality
from rag_arena.scoring.silver import STRATEGIES

_Timed = tuple[dict[str, Any], dict[str, Any]]  # a row, and the seconds that only its display has
_CLOSED_BOOK = Cell("no_retrieval", NO_MODE)
_MEANS = ("recall", "precision", "em", "f1", "contains", "rouge_l", "answer_accuracy", "faithfulness")


@dataclass(frozen=True, slots=True)
class Retrieved:
    """What the retrieve stage left behind for one mode."""

    hits: pa.Table
    timings: pa.Table


@dataclass(frozen=True, slots=True)
class CellTables:
    """What one cell left behind."""

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
    scored = {
        cell: [_score(cell, row, asked, _by_id(t.judgements.to_pylist())) for row in t.answers.to_pylist()]
        for cell, t in cells.items()
    }
    closed_book = {r["question_id"]: r["correct"] for r in scored.get(_CLOSED_BOOK, []) if r["failure"] != FAILED}
    first_pass = {mode: {r["question_id"]: r["seconds"] for r in found.timings.to_pylist()} for mode, found in retrieved.items()}
    kinds = [question.question_type for question in asked.values()]
    board: list[_Timed] = []
    graders: list[_Timed] = []
    nodes: list[_Timed] = []
    decisions: list[dict[str, Any]] = []
    paths: list[dict[str, Any]] = []
    for cell, t in cells.items():
        calls, timings = t.calls.to_pylist(), t.timings.to_pylist()
        for group in groups(kinds):
            row = _board_row(cell, group, t, scored[cell], asked, params)
            board.append((row, _latencies(group, t, first_pass.get(cell.retrieval, {}))))
        taken = _paths(t.answers.to_pylist(), _by_id(scored[cell]), asked, closed_book)
        decisions += scorecard(cell, taken)
        paths += path_rows(cell, taken)
        graders += grader_rows(cell, taken, calls, timings)
        nodes += node_cost_rows(cell, calls)
    judged = [judge_quality(cell, t.judgements.to_pylist(), params.judge.llm.price) for cell, t in cells.items()]
    rankings = {mode: ranking(found.hits) for mode, found in retrieved.items()}
    everything = questions.to_pylist()
    timed = {artifacts.LEADERBOARD: board, artifacts.GRADERS: graders, artifacts.NODE_COSTS: nodes}
    rows = {
        artifacts.SCORES: itertools.chain.from_iterable(scored.values()),
        artifacts.DECISIONS: decisions,
        artifacts.PATHS: paths,
        artifacts.ORACLE: itertools.chain.from_iterable(_oracle(mode, cells, scored) for mode in retrieved),
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
        _metrics(params.report.focus or str(params.cells[-1]), [row for row, _ in board]),
    )


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


def _score(cell: Cell, row: dict[str, Any], asked: Mapping[str, Question], judged: Mapping[str, Any]) -> dict[str, Any]:
    question = asked[row["question_id"]]
    judgement = judged.get(question.question_id, {})
    failed = row["status"] == FAILED
    short = question.question_type != "summary" and not failed
    answer, accuracy = claimed(row["answer"] or ""), judgement.get("answer_accuracy")
    em = scores.exact_match(answer, question.references) if short else None
    contained = scores.contains(answer, question.references) if short else None
    if failed:
        correct: bool | None = False
    elif short:
        correct = bool(em or contained)
    else:
        correct = None if accuracy is None else accuracy >= scores.CORRECT_AT
    return {
        "strategy": cell.strategy,
        "retrieval": cell.retrieval,
        "question_id": question.question_id,
        "question_type": question.question_type,
        "recall": None if failed else evidence.recall(row["used_ids"], question.gold_ids),
        "precision": None if failed else evidence.precision(row["used_ids"], question.gold_ids),
        "em": em,
        "f1": scores.token_f1(answer, question.references) if short else None,
        "contains": contained,
        "rouge_l": None if failed else scores.rouge_l(answer, question.answer),
        "answer_accuracy": accuracy,
        "faithfulness": judgement.get("faithfulness"),
        "correct": correct,
        "failure": evidence.failure_class(failed, correct, row["retrieved_ids"], row["used_ids"], question.gold_ids),
    }


def _board_row(
    cell: Cell,
    group: str,
    tables: CellTables,
    scored: Sequence[Mapping[str, Any]],
    asked: Mapping[str, Question],
    params: Params,
) -> dict[str, Any]:
    answers, judgements = of(group, tables.answers.to_pylist()), of(group, tables.judgements.to_pylist())
    tokens_in, tokens_out = sum(r["tokens_in"] for r in answers), sum(r["tokens_out"] for r in answers)
    n_failed = sum(r["status"] == FAILED for r in answers)
    small_in, small_out = sum(r["small_tokens_in"] for r in answers), sum(r["small_tokens_out"] for r in answers)
    large = params.llm.price.of(tokens_in - small_in, tokens_out - small_out)
    small = params.small_llm.price.of(small_in, small_out)
    return {
        "strategy": cell.strategy,
        "retrieval": cell.retrieval,
        "question_type": group,
        "n_planned": sum(group in (ALL, q.question_type) for q in asked.values()),
        "n_answered": len(answers) - n_failed,
        "n_failed": n_failed,
        "n_judged": len(judgements),
        "n_judge_failed": sum(bool(r["accuracy_error"] or r["faithfulness_error"]) for r in judgements),
        **{column: mean(r[column] for r in of(group, scored)) for column in _MEANS},
        "correction_rate": mean(r["corrected"] for r in answers),
        "changed_rate": mean(r["changed"] for r in answers),
        "llm_calls": sum(r["llm_calls"] for r in answers),
        "tokens_in": tokens_in,
        "tokens_out": tokens_out,
        "cost_usd": large + small,
    }


def _latencies(group: str, tables: CellTables, first_pass: Mapping[str, float]) -> dict[str, Any]:
    """Seconds per question: model time, grading, live searches, and the recorded ones at what they took in the retrieve stage."""
    chosen = {row["question_id"] for row in of(group, tables.answers.to_pylist())}
    timings = [row for row in tables.timings.to_pylist() if row["question_id"] in chosen]
    seconds = [
        r["llm_s"] + r["search_s"] + r["grading_s"] + r["recorded_searches"] * first_pass.get(r["question_id"], 0.0)
        for r in timings
    ]
    return {
        "latency_p50_s": float(np.percentile(seconds, 50)) if seconds else None,
        "latency_p95_s": float(np.percentile(seconds, 95)) if seconds else None,
        "replayed_calls": sum(row["replayed_calls"] for row in timings),
    }


def _metrics(focus: str, board: Sequence[Mapping[str, Any]]) -> dict[str, str | float | None]:
    """A cell's name and six numbers of it: few enough for a readable `dvc exp show`."""
    row = next(r for r in board if f"{r['strategy']}-{r['retrieval']}" == focus and r["question_type"] == ALL)
    tokens = (row["tokens_in"] + row["tokens_out"]) / row["n_planned"]
    chosen = {name: row[name] for name in ("recall", "precision", "f1", "contains", "correction_rate")}
    rounded = {name: None if v is None else round(v, 4) for name, v in chosen.items()}
    return {"cell": focus, **rounded, "tokens_per_question": round(tokens, 1)}


def _by_id(rows: Iterable[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    return {row["question_id"]: row for row in rows}
