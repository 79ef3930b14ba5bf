"""Rows by question type, and means over what is defined."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from rag_arena.records import QUESTION_TYPES

ALL = "all"


def groups(kinds: Iterable[str]) -> list[str]:
    """`all`, then the question types that occur."""
    found = set(kinds)
    return [ALL, *(kind for kind in QUESTION_TYPES if kind in found)]


def of(group: str, rows: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The rows of one question type, or of `all`."""
    return [row for row in rows if group in (ALL, row["question_type"])]


def mean(values: Iterable[float | bool | None]) -> float | None:
    """Mean of the values that are there; None if none is."""
    known = [float(v) for v in values if v is not None]
    return float(np.mean(known)) if known else None
