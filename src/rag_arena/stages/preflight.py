"""What can be refused before anything is spent."""

from collections.abc import Iterable
from typing import Any

from rag_arena import strategies
from rag_arena.errors import ArenaError
from rag_arena.params import Params
from rag_arena.sources.labels import Row

_AUTO = "auto"


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
        if keys := _calibrated(strategy, params):
            raise ArenaError(
                f"params.yaml: strategy.{strategy}.{keys[0]} is auto, and there is nothing to calibrate it on: no question has "
                "gold documents, no document is labelled; type a value, or run strategy=[vanilla,no_retrieval] and `arena label`"
            )


def _calibrated(strategy: str, params: Params) -> list[str]:
    settings: Any = strategies.settings(strategy, params)
    thresholds = [key for key in strategies.calibrated(strategy) if getattr(settings, key) == _AUTO]
    return [*thresholds, *(["relevance"] if getattr(settings, "relevance", None) == _AUTO and settings.reranks else [])]
