"""sample: a seeded evaluation split, balanced over question types, and a disjoint calibration split."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from rag_arena import artifacts
from rag_arena.errors import ArenaError
from rag_arena.params import Sample
from rag_arena.records import QUESTION_TYPES, in_turn
from rag_arena.wording import count

Row = dict[str, Any]


def sample(questions: pa.Table, params: Sample) -> tuple[pa.Table, pa.Table]:
    """The evaluation and the calibration split, each question with its stratum's size and weight N_h / N in the whole dataset.

    The calibration split shares no question and no gold document with the evaluation split; questions that would are skipped.

    Raises:
        ArenaError: a split comes out smaller than asked.
    """
    rows = sorted(questions.to_pylist(), key=lambda row: str(row["question_id"]))
    order = np.random.default_rng(params.seed).permutation(len(rows))
    pools: dict[str, list[Row]] = {t: [] for t in QUESTION_TYPES}
    for position in order:
        pools[rows[position]["question_type"]].append(rows[position])
    sizes = {t: len(pool) for t, pool in pools.items()}

    evaluation, calibration = _splits(pools, params.evaluation, params.calibration)
    if len(evaluation) < params.evaluation:
        raise _too_few("evaluation", params.evaluation, len(evaluation), "are in the dataset", evaluation=len(evaluation))
    if len(calibration) < params.calibration:
        shared = "share no gold document with the evaluation split"
        raise _too_few("calibration", params.calibration, len(calibration), shared, **_that_work(pools, params))
    return _table(evaluation, sizes), _table(calibration, sizes)


def _splits(pools: Mapping[str, Sequence[Row]], evaluation: int, calibration: int) -> tuple[list[Row], list[Row]]:
    """Both splits, of these sizes or as near to them as the pools allow."""
    chosen = in_turn(list(pools.values()), evaluation)
    taken = {row["question_id"] for row in chosen}
    gold = {doc_id for row in chosen for doc_id in row["gold_ids"]}
    rest = [[r for r in pool if r["question_id"] not in taken and gold.isdisjoint(r["gold_ids"])] for pool in pools.values()]
    return chosen, in_turn(rest, calibration)


def _that_work(pools: Mapping[str, Sequence[Row]], params: Sample) -> dict[str, int]:
    """Sizes to ask for instead: the evaluation split is made smaller until as many questions are left to calibrate on."""
    for size in range(params.evaluation, 0, -1):
        left = len(_splits(pools, size, params.calibration)[1])
        if left >= min(size, params.calibration):
            return {"calibration": left} if size == params.evaluation else {"evaluation": size, "calibration": left}
    return {"calibration": 0}


def _table(chosen: list[Row], sizes: dict[str, int]) -> pa.Table:
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


def _too_few(split: str, wanted: int, found: int, what: str, **instead: int) -> ArenaError:
    overrides = " ".join(f"sample.{name}={size}" for name, size in instead.items())
    return ArenaError(
        f"params.yaml: sample.{split} asks for {count(wanted, 'question')}, but {found} {what}; "
        f'lower {"both" if len(instead) > 1 else "it"} (OVERRIDES="{overrides}" with `make run`)'
    )
