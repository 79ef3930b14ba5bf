"""The settings behind each row of the leaderboard, and on how many labelled retrievals a calibrated one rests."""

from collections.abc import Iterator, Mapping
from typing import Any

from rag_arena.records import TRAINED, TYPED, Cell

COUNTS = ("n_good", "n_acceptable", "n_bad", "n_unlabelled")


def setting_rows(cell: Cell, resolved: list[dict[str, Any]], labelled: Mapping[str, int]) -> Iterator[dict[str, Any]]:
    """A row per setting in force.

    Args:
        cell: whose settings.
        resolved: rows of its resolved artifact.
        labelled: how many calibration retrievals of its mode bear each label; null beside settings that were not calibrated.
    """
    for row in resolved:
        counts = dict.fromkeys(COUNTS) if row["origin"] in (TYPED, TRAINED) else {name: labelled[name] for name in COUNTS}
        yield {"strategy": cell.strategy, "retrieval": cell.retrieval, **row, **counts}
