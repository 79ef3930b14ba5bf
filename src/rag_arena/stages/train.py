"""train: the router of `adaptive` in one retrieval mode, learnt from the calibration split alone (Jeong et al. 2024).

The three strategies answer the split's questions, a question's silver label is the cheapest that was right, and a classifier
learns to tell the labels from the questions. Only questions with short answers are labelled: whether a summary is right, only the
judge could say, and a label is not worth more than its judge.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rag_arena import artifacts, embedders, strategies
from rag_arena.artifacts import questions_of
from rag_arena.decisions import CHOICES, NONE
from rag_arena.llm.client import ChatModel
from rag_arena.params import NO_MODE, Params, section
from rag_arena.records import FAILED, Cell, Question, balanced
from rag_arena.scoring.answers import matches
from rag_arena.scoring.silver import INDUCTIVE_BIAS, STRATEGIES, silver_label
from rag_arena.stages.run import Inputs, run
from rag_arena.strategies.adaptive.graph import Settings
from rag_arena.strategies.adaptive.router import Router, cross_validated, fit


@dataclass(frozen=True, slots=True)
class Trained:
    """The tables of one mode; empty where no router is wanted.

    `silver`: who answered each question correctly, and its label. `router`: the classifier. `confusion`: labels against what a
    router learnt from the other folds chooses. `quality`: class counts, cross-validated accuracy, that of always choosing the
    commonest label, and whether all labels are one (a degenerate router). `calls`: the model calls behind the labels.
    """

    silver: pa.Table
    router: pa.Table
    confusion: pa.Table
    quality: pa.Table
    calls: pa.Table


async def train(mode: str, params: Params, inputs: Inputs, model: ChatModel, small_model: ChatModel) -> Trained:
    """Label calibration questions and learn a router from them.

    Args:
        mode: how the strategies retrieve.
        params: `silver`, and what running a strategy needs.
        inputs: as of a cell of that mode; its sample is the calibration split.
        model: who answers.
        small_model: asked by none of the three strategies.

    Raises:
        ArenaError: as `run`, or `silver.settings` are not those of `adaptive`.
    """
    silver = params.silver
    settings = section(Settings, silver.settings, "params.yaml", "silver.settings.") if silver.questions else None
    if settings is None or settings.router == "prompted":
        return _tables(mode, [], [], [], None, [])
    asked = _short_questions(inputs, silver.questions)
    inputs = replace(
        inputs, sample=inputs.sample.filter(pc.is_in(inputs.sample["question_id"], pa.array(list(asked), pa.string())))
    )
    correct: dict[str, dict[str, bool | None]] = {question_id: {} for question_id in asked}
    calls: list[dict[str, Any]] = []
    for choice, strategy in STRATEGIES.items():
        in_force = _settings_of(strategy, settings)
        cell = Cell(strategy, NO_MODE if choice == NONE else mode)
        done = await run(cell, params, replace(inputs, resolved=in_force), model, small_model)
        calls += done.calls.to_pylist()
        for row in done.answers.to_pylist():
            failed = row["status"] == FAILED
            correct[row["question_id"]][choice] = None if failed else matches(row["answer"], asked[row["question_id"]].references)
    rows = [_silver_row(asked[question_id], found) for question_id, found in correct.items()]
    labelled = [row for row in rows if row["label"] is not None]
    labels = [row["label"] for row in labelled]
    if not labels:
        return _tables(mode, rows, [], [], None, calls)
    embedder = embedders.load(params.embedder, params.served)
    vectors = np.stack([embedder.dense(asked[row["question_id"]].text) for row in labelled])
    predicted = cross_validated(vectors, labels, silver.inverse_regularisation, silver.folds, silver.seed)
    return _tables(mode, rows, labels, predicted, fit(vectors, labels, silver.inverse_regularisation), calls)


def _settings_of(strategy: str, settings: Settings) -> pa.Table:
    """Those of adaptive's settings that a strategy has too, as if they had been resolved for it."""
    shared = settings.model_dump(include=set(strategies.settings_class(strategy).model_fields))
    rows = [{"key": key, "value": json.dumps(value), "origin": "silver.settings"} for key, value in shared.items()]
    return artifacts.table(artifacts.RESOLVED, rows)


def _short_questions(inputs: Inputs, size: int) -> dict[str, Question]:
    short = {q.question_id: q for q in questions_of(inputs.questions, inputs.sample) if q.question_type != "summary"}
    return {question_id: short[question_id] for question_id in sorted(balanced(list(short.values()), size))}


def _silver_row(question: Question, correct: Mapping[str, bool | None]) -> dict[str, Any]:
    """One question's row; without a label where a strategy failed, as nobody knows whether it would have been right."""
    known = {choice: right for choice, right in correct.items() if right is not None}
    label, origin = silver_label(known, question.question_type) if len(known) == len(CHOICES) else (None, None)
    return {
        "question_id": question.question_id,
        "question_type": question.question_type,
        **correct,
        "label": label,
        "origin": origin,
    }


def _tables(
    mode: str,
    rows: Sequence[Mapping[str, Any]],
    labels: Sequence[str],
    predicted: Sequence[str],
    router: Router | None,
    calls: Sequence[Mapping[str, Any]],
) -> Trained:
    counts = Counter(labels)
    pairs = Counter(zip(labels, predicted, strict=True) if predicted else ())
    quality = {
        "retrieval": mode,
        "n_questions": len(rows),
        "n_failed": len(rows) - len(labels),
        **{f"n_{choice}": counts[choice] for choice in CHOICES},
        "n_inductive_bias": sum(row["origin"] == INDUCTIVE_BIAS for row in rows),
        "accuracy": sum(n for (label, said), n in pairs.items() if label == said) / len(labels) if pairs else None,
        "majority": max(counts.values()) / len(labels) if labels else None,
        "degenerate": len(counts) == 1 if labels else None,
    }
    return Trained(
        artifacts.table(artifacts.SILVER, rows),
        artifacts.table(artifacts.ROUTER, _router_rows(router, counts) if router else []),
        artifacts.table(
            artifacts.CONFUSION, [{"label": label, "predicted": said, "n_questions": n} for (label, said), n in pairs.items()]
        ),
        artifacts.table(artifacts.ROUTER_QUALITY, [quality] if rows else []),
        artifacts.table(artifacts.CALLS, _renumbered(calls)),
    )


def _router_rows(router: Router, counts: Mapping[str, int]) -> Iterator[dict[str, Any]]:
    for choice, intercept, coefficients in zip(router.choices, router.intercepts, router.coefficients, strict=True):
        yield {"choice": choice, "n_labels": counts[choice], "intercept": intercept, "coefficients": coefficients}


def _renumbered(calls: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Calls of several strategies as one sequence per question."""
    seen: Counter[str] = Counter()
    for call in calls:
        yield {**call, "position": seen[call["question_id"]]}
        seen[call["question_id"]] += 1
