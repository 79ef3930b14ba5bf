"""What can be refused before anything is spent."""

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from rag_arena import strategies
from rag_arena.artifacts import questions_of
from rag_arena.errors import ArenaError
from rag_arena.params import NO_MODE, Params, Percentile
from rag_arena.records import AUTO, TRAINED
from rag_arena.sources.labels import Row
from rag_arena.stages.resolve import unlabelled, unretrieved, untrained


def check_calibration(params: Params, any_gold: bool, labels: Iterable[Row]) -> None:
    """Is there anything that the grid's `auto` settings could be calibrated on?

    Args:
        params: the grid and its settings.
        any_gold: whether any question has gold documents.
        labels: what the user says of documents.

    Raises:
        ArenaError: nothing is known of any document, and a setting is to be calibrated.
    """
    if any_gold or any(row.verdict is not None for row in labels):
        return
    for strategy in params.grid.strategies:
        if keys := _calibrated(strategies.settings(strategy, params)):
            raise ArenaError(
                f"params.yaml: strategy.{strategy}.{keys[0]} is auto, and there is nothing to calibrate it on: no question has "
                "gold documents, no document is labelled; type a value, or run strategy=[vanilla,no_retrieval] and `arena label`"
            )


def check_split(params: Params, questions: pa.Table, calibration: pa.Table, labels: Iterable[Row]) -> None:
    """Can the calibration split give every cell what its settings leave to it?

    Args:
        params: the grid and its settings.
        questions: the dataset's.
        calibration: the split.
        labels: what the user says of documents.

    Raises:
        ArenaError: as the resolve stage will, for the first cell that it will refuse.
    """
    split = questions_of(questions, calibration)
    labelled = {row.question_id for row in labels if row.verdict is not None}
    known = any(q.gold_ids or q.question_id in labelled for q in split)
    trainable = params.silver.questions and any(q.question_type != "summary" for q in split)
    for cell in (c for c in params.cells if c.retrieval != NO_MODE):
        settings: Any = strategies.settings(cell.strategy, params)
        percentiles = [key for key in settings.calibrated() if isinstance(getattr(settings, key), Percentile)]
        if (keys := _calibrated(settings)) and not known:
            raise unlabelled(cell, keys[0])
        if percentiles and not split:
            raise unretrieved(cell, percentiles[0])
        if getattr(settings, "router", None) == TRAINED and not trainable:
            raise untrained(cell)


def _calibrated(settings: Any) -> list[str]:
    thresholds = [key for key in settings.calibrated() if getattr(settings, key) == AUTO]
    return [*thresholds, *(["relevance"] if getattr(settings, "relevance", None) == AUTO and settings.reranks else [])]
