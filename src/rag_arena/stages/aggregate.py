"""aggregate: scores per question, the leaderboard, and the tables beside it."""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from scipy import stats

from rag_arena import artifacts
from rag_arena.params import Params, Price
from rag_arena.records import QUESTION_TYPES, Cell, Question
from rag_arena.scoring import answers as scores
from rag_arena.scoring import evidence
from rag_arena.stages.run import FAILED, questions_of

ALL = "all"
CORRECT_AT = 0.75
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
    timings: pa.Table
    judgements: pa.Table


@dataclass(frozen=True, slots=True)
class Results:
    """The tables of results/. `display` is the leaderboard with timings beside it; everything else is deterministic."""

    scores: pa.Table
    leaderboard: pa.Table
    display: pd.DataFrame
    judge_quality: pa.Table
    judge_truth: pa.Table
    retrieval_quality: pa.Table
    disagreement: pa.Table
    metrics: dict[str, float | None]


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
        cell: [_score(cell, row, asked, _by_id(t.judgements)) for row in t.answers.to_pylist()] for cell, t in cells.items()
    }
    score_rows = [row for rows in scored.values() for row in rows]
    first_pass = {mode: {r["question_id"]: r["seconds"] for r in found.timings.to_pylist()} for mode, found in retrieved.items()}
    board, shown = [], []
    for cell, tables in cells.items():
        for group in (ALL, *(t for t in QUESTION_TYPES if any(q.question_type == t for q in asked.values()))):
            row = _board_row(cell, group, tables, scored[cell], asked, params)
            board.append(row)
            shown.append({**row, **_latencies(group, tables, first_pass.get(cell.retrieval, {}))})
    judge_quality = [_judge_quality(cell, t.judgements.to_pylist(), params.judge.llm.price) for cell, t in cells.items()]
    all_questions = {
        row["question_id"]: (row["question_type"], row["gold_ids"]) for row in questions.to_pylist() if row["gold_ids"]
    }
    rankings = {mode: _rankings(found.hits) for mode, found in retrieved.items()}
    return Results(
        artifacts.table(artifacts.SCORES, score_rows),
        artifacts.table(artifacts.LEADERBOARD, board, _provenance(params)),
        pd.DataFrame(shown).sort_values(list(artifacts.LEADERBOARD.key), ignore_index=True),
        artifacts.table(artifacts.JUDGE_QUALITY, judge_quality),
        artifacts.table(artifacts.JUDGE_TRUTH, _judge_truth(known_truth.to_pylist())),
        artifacts.table(artifacts.RETRIEVAL_QUALITY, _retrieval_quality(rankings, all_questions)),
        artifacts.table(artifacts.DISAGREEMENT, _disagreement(rankings, [row["question_id"] for row in questions.to_pylist()])),
        _metrics(params.report.focus or str(params.cells[-1]), board),
    )


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
    answer, accuracy = row["answer"], judgement.get("answer_accuracy")
    em = scores.exact_match(answer, question.references) if short else None
    contained = scores.contains(answer, question.references) if short else None
    if failed:
        correct: bool | None = False
    elif short:
        correct = bool(em or contained)
    else:
        correct = None if accuracy is None else accuracy >= CORRECT_AT
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
    answers, judgements = _of(group, tables.answers.to_pylist()), _of(group, tables.judgements.to_pylist())
    tokens_in, tokens_out = sum(r["tokens_in"] for r in answers), sum(r["tokens_out"] for r in answers)
    n_failed = sum(r["status"] == FAILED for r in answers)
    return {
        "strategy": cell.strategy,
        "retrieval": cell.retrieval,
        "question_type": group,
        "n_planned": sum(group in (ALL, q.question_type) for q in asked.values()),
        "n_answered": len(answers) - n_failed,
        "n_failed": n_failed,
        "n_judged": len(judgements),
        "n_judge_failed": sum(bool(r["accuracy_error"] or r["faithfulness_error"]) for r in judgements),
        **{column: _mean(r[column] for r in _of(group, scored)) for column in _MEANS},
        "correction_rate": _mean(r["corrected"] for r in answers),
        "changed_rate": _mean(r["changed"] for r in answers),
        "llm_calls": sum(r["llm_calls"] for r in answers),
        "tokens_in": tokens_in,
        "tokens_out": tokens_out,
        "cost_usd": _cost(tokens_in, tokens_out, params.llm.price),
    }


def _latencies(group: str, tables: CellTables, first_pass: Mapping[str, float]) -> dict[str, Any]:
    """Seconds per question: model time, live searches, and the recorded ones at what they took in the retrieve stage."""
    chosen = {row["question_id"] for row in _of(group, tables.answers.to_pylist())}
    timings = [row for row in tables.timings.to_pylist() if row["question_id"] in chosen]
    seconds = [r["llm_s"] + r["search_s"] + r["recorded_searches"] * first_pass.get(r["question_id"], 0.0) for r in timings]
    return {
        "latency_p50_s": float(np.percentile(seconds, 50)) if seconds else None,
        "latency_p95_s": float(np.percentile(seconds, 95)) if seconds else None,
        "replayed_calls": sum(row["replayed_calls"] for row in timings),
    }


def _judge_truth(pairs: Sequence[Mapping[str, Any]]) -> Iterable[dict[str, Any]]:
    """How often the judge is right on pairs whose truth is known: per kind, and over all as balanced accuracy.

    A pair counts as accepted from a score of 0.75; a failed judgement accepts nothing and is right about nothing. `p_chance` is
    Fisher's one-sided exact test of "accepts right pairs no more often than wrong ones".
    """
    accepted = [(row["answer_accuracy"] or 0.0) >= CORRECT_AT for row in pairs]
    right = [row["error"] is None and a == row["is_correct"] for row, a in zip(pairs, accepted, strict=True)]
    for kind in sorted({row["kind"] for row in pairs}):
        chosen = [i for i, row in enumerate(pairs) if row["kind"] == kind]
        failed = sum(pairs[i]["error"] is not None for i in chosen)
        share = _mean(right[i] for i in chosen)
        yield {"kind": kind, "n_asked": len(chosen), "n_failed": failed, "share_right": share, "p_chance": None}
    true, false = ([i for i, row in enumerate(pairs) if row["is_correct"] is truth] for truth in (True, False))
    both = true and false
    table = [[sum(accepted[i] is verdict for i in group) for verdict in (True, False)] for group in (true, false)]
    yield {
        "kind": ALL,
        "n_asked": len(pairs),
        "n_failed": sum(row["error"] is not None for row in pairs),
        "share_right": _mean([_mean(right[i] for i in true), _mean(right[i] for i in false)]) if both else None,
        "p_chance": float(stats.fisher_exact(table, alternative="greater").pvalue) if both else None,
    }


def _judge_quality(cell: Cell, judged: Sequence[Mapping[str, Any]], price: Price) -> dict[str, Any]:
    """How often each metric failed for a cell, how often its two ratings differ and its claims echo ragas's, and what it cost."""
    rated = [row for row in judged if row["accuracy_error"] is None]
    supported = [row for row in judged if row["echo"] is not None or row["faithfulness_error"] is not None]
    tokens_in, tokens_out = sum(row["tokens_in"] for row in judged), sum(row["tokens_out"] for row in judged)
    return {
        "strategy": cell.strategy,
        "retrieval": cell.retrieval,
        "accuracy_asked": len(judged),
        "accuracy_failed": len(judged) - len(rated),
        "disagreement_rate": _mean(row["accuracy_first"] != row["accuracy_second"] for row in rated),
        "faithfulness_asked": len(supported),
        "faithfulness_failed": sum(row["faithfulness_error"] is not None for row in supported),
        "echo_rate": _mean(row["echo"] for row in supported),
        "tokens_in": tokens_in,
        "tokens_out": tokens_out,
        "cost_usd": _cost(tokens_in, tokens_out, price),
    }


def _retrieval_quality(
    rankings: Mapping[str, Mapping[str, list[str]]], questions: Mapping[str, tuple[str, list[str]]]
) -> Iterable[dict[str, Any]]:
    for mode, ranking in rankings.items():
        for group in (ALL, *(t for t in QUESTION_TYPES if any(kind == t for kind, _ in questions.values()))):
            chosen = [(ranking.get(q, []), gold) for q, (kind, gold) in questions.items() if group in (ALL, kind)]
            yield {
                "retrieval": mode,
                "question_type": group,
                "n_questions": len(chosen),
                **{f"recall_at_{k}": _mean(evidence.recall_at(found, gold, k) for found, gold in chosen) for k in (1, 3, 5, 10)},
                "mrr": _mean(evidence.reciprocal_rank(found, gold) for found, gold in chosen),
                "empty_rate": _mean(not found for found, _ in chosen),
            }


def _disagreement(rankings: Mapping[str, Mapping[str, list[str]]], asked: Sequence[str]) -> Iterable[dict[str, Any]]:
    """For every two modes: how often their top documents differ, and the mean Jaccard overlap of their top three."""
    for a, b in itertools.combinations(rankings, 2):
        tops = [(rankings[a].get(q, []), rankings[b].get(q, [])) for q in asked]
        yield {
            "retrieval_a": a,
            "retrieval_b": b,
            "n_questions": len(asked),
            "top_1_differs": _mean(first[:1] != second[:1] for first, second in tops),
            "top_3_overlap": _mean(_jaccard(first[:3], second[:3]) for first, second in tops),
        }


def _metrics(focus: str, board: Sequence[Mapping[str, Any]]) -> dict[str, float | None]:
    """Six numbers of one cell: few enough for a readable `dvc exp show`."""
    row = next(r for r in board if f"{r['strategy']}-{r['retrieval']}" == focus and r["question_type"] == ALL)
    tokens = (row["tokens_in"] + row["tokens_out"]) / row["n_planned"]
    chosen = {name: row[name] for name in ("recall", "precision", "f1", "contains", "correction_rate")}
    return {**{name: None if v is None else round(v, 4) for name, v in chosen.items()}, "tokens_per_question": round(tokens, 1)}


def _cost(tokens_in: int, tokens_out: int, price: Price) -> float:
    return (tokens_in * price.input + tokens_out * price.output) / 1e6


def _rankings(hits: pa.Table) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for row in hits.to_pylist():
        found.setdefault(row["question_id"], []).append(row["doc_id"])
    return found


def _jaccard(a: Sequence[str], b: Sequence[str]) -> float:
    return len(set(a) & set(b)) / len(set(a) | set(b)) if a or b else 1.0


def _of(group: str, rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [row for row in rows if group in (ALL, row["question_type"])]


def _by_id(judgements: pa.Table) -> dict[str, Any]:
    return {row["question_id"]: row for row in judgements.to_pylist()}


def _mean(values: Iterable[float | bool | None]) -> float | None:
    """Mean of the values that are there; None if none is."""
    known = [float(v) for v in values if v is not None]
    return float(np.mean(known)) if known else None
