"""Rows by question type and origin, and means over what is defined."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from rag_arena.records import GENERATED, ORIGINAL, QUESTION_TYPES

ALL = "all"


def groups(kinds: Iterable[str]) -> list[str]:
    """`all`, then the question types that occur."""
    found = set(kinds)
    return [ALL, *(kind for kind in QUESTION_TYPES if kind in found)]


def origins(known: Iterable[str | None]) -> list[str]:
    """The origins that occur, unless all questions have the same or none is known."""
    found = set(known)
    return [origin for origin in (ORIGINAL, GENERATED) if origin in found and len(found) > 1]


def of(group: str, rows: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The questions of one type or origin, or `all`."""
    return [row for row in rows if group in (ALL, row["question_type"], row["origin"])]


def mean(values: Iterable[float | bool | None]) -> float | None:
    """Mean of the values that are there; None if none is."""
    known = [float(v) for v in values if v is not None]
    return float(np.mean(known)) if known else None
