"""The leaderboard's rows: a cell's means over the questions of one type or origin, what it cost and how long it took."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rag_arena.params import Llm
from rag_arena.records import FAILED, GENERATED, Cell, Question
from rag_arena.scoring.groups import ALL, mean

_MEANS = ("recall", "precision", "em", "f1", "contains", "rouge_l", "answer_accuracy", "faithfulness")
Rows = Sequence[Mapping[str, Any]]


def board_row(
    cell: Cell, group: str, asked: Sequence[Question], answers: Rows, judgements: Rows, scores: Rows, llm: Llm, small_llm: Llm
) -> dict[str, Any]:
    """Counts, means over what is defined, calls, tokens and dollars, each tier of model at its own price."""
    answers, judgements, scores = (_about(asked, rows) for rows in (answers, judgements, scores))
    tokens_in, tokens_out = sum(r["tokens_in"] for r in answers), sum(r["tokens_out"] for r in answers)
    n_failed = sum(r["status"] == FAILED for r in answers)
    small_in, small_out = sum(r["small_tokens_in"] for r in answers), sum(r["small_tokens_out"] for r in answers)
    large = llm.price.of(tokens_in - small_in, tokens_out - small_out)
    small = small_llm.price.of(small_in, small_out)
    return {
        "strategy": cell.strategy,
        "retrieval": cell.retrieval,
        "question_type": group,
        "n_planned": len(asked),
        "n_with_gold": sum(bool(question.gold_ids) for question in asked),
        "n_generated": sum(question.origin == GENERATED for question in asked),
        "n_answered": len(answers) - n_failed,
        "n_failed": n_failed,
        "n_judged": len(judgements),
        "n_judge_failed": sum(bool(r["accuracy_error"] or r["faithfulness_error"]) for r in judgements),
        **{column: mean(r[column] for r in scores) for column in _MEANS},
        "correction_rate": mean(r["corrected"] for r in answers),
        "changed_rate": mean(r["changed"] for r in answers),
        "llm_calls": sum(r["llm_calls"] for r in answers),
        "tokens_in": tokens_in,
        "tokens_out": tokens_out,
        "cost_usd": large + small,
    }


def latencies(asked: Sequence[Question], timings: Rows, first_pass: Mapping[str, float]) -> dict[str, Any]:
    """Seconds per question: model time, grading, live searches, and the recorded ones at what they took in the retrieve stage."""
    timings = _about(asked, timings)
    seconds = [
        r["llm_s"] + r["search_s"] + r["grading_s"] + r["recorded_searches"] * first_pass.get(r["question_id"], 0.0)
        for r in timings
    ]
    return {
        "latency_p50_s": float(np.percentile(seconds, 50)) if seconds else None,
        "latency_p95_s": float(np.percentile(seconds, 95)) if seconds else None,
        "replayed_calls": sum(row["replayed_calls"] for row in timings),
    }


def _about(asked: Sequence[Question], rows: Rows) -> Rows:
    ids = {question.question_id for question in asked}
    return [row for row in rows if row["question_id"] in ids]


def metrics(focus: str, board: Rows) -> dict[str, str | float | None]:
    """A cell's name and six numbers of it: few enough for a readable `dvc exp show`."""
    row = next(r for r in board if f"{r['strategy']}-{r['retrieval']}" == focus and r["question_type"] == ALL)
    tokens = (row["tokens_in"] + row["tokens_out"]) / row["n_planned"]
    chosen = {name: row[name] for name in ("recall", "precision", "f1", "contains", "correction_rate")}
    rounded = {name: None if v is None else round(v, 4) for name, v in chosen.items()}
    return {"cell": focus, **rounded, "tokens_per_question": round(tokens, 1)}
