"""sample: a seeded evaluation split, balanced over question types, and a disjoint calibration split."""

from typing import Any

import numpy as np
import pyarrow as pa

from rag_arena import artifacts
from rag_arena.errors import ArenaError
from rag_arena.params import Sample
from rag_arena.records import QUESTION_TYPES, in_turn
from rag_arena.wording import count


def sample(questions: pa.Table, params: Sample) -> tuple[pa.Table, pa.Table]:
    """The evaluation and the calibration split, each question with its stratum's size and weight N_h / N in the whole dataset.

    The calibration split shares no question and no gold document with the evaluation split; questions that would are skipped.

    Raises:
        ArenaError: a split comes out smaller than asked.
    """
    rows = sorted(questions.to_pylist(), key=lambda row: str(row["question_id"]))
    order = np.random.default_rng(params.seed).permutation(len(rows))
    pools: dict[str, list[dict[str, Any]]] = {t: [] for t in QUESTION_TYPES}
    for position in order:
        pools[rows[position]["question_type"]].append(rows[position])
    sizes = {t: len(pool) for t, pool in pools.items()}

    evaluation = in_turn(list(pools.values()), params.evaluation)
    _check("evaluation", evaluation, params.evaluation, "are in the dataset")
    taken = {row["question_id"] for row in evaluation}
    gold = {doc_id for row in evaluation for doc_id in row["gold_ids"]}
    rest = {
        t: [row for row in pool if row["question_id"] not in taken and gold.isdisjoint(row["gold_ids"])]
        for t, pool in pools.items()
    }
    calibration = in_turn(list(rest.values()), params.calibration)
    _check("calibration", calibration, params.calibration, "share no gold document with the evaluation split")
    return _table(evaluation, sizes), _table(calibration, sizes)


def _table(chosen: list[dict[str, Any]], sizes: dict[str, int]) -> pa.Table:
    return artifacts.table(
        artifacts.SAMPLE,
        [
            {
                "question_id": row["question_id"],
                "question_type": row["question_type"],
                "stratum_size": sizes[row["question_type"]],
                "stratum_weight": sizes[row["question_type"]] / sum(sizes.values()),
            }
            for row in chosen
        ],
    )


def _check(split: str, drawn: list[dict[str, Any]], wanted: int, what: str) -> None:
    if len(drawn) < wanted:
        raise ArenaError(
            f"params.yaml: sample.{split} asks for {count(wanted, 'question')}, but {len(drawn)} {what}; "
            f'lower it (OVERRIDES="sample.{split}={len(drawn)}" with `make run`)'
        )
