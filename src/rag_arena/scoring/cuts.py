"""Where to cut a list of scores in two: Youden's J (Youden 1950)."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

DIGITS = 4
_STEP = 10**-DIGITS


@dataclass(frozen=True, slots=True)
class Scored:
    """A score, and whether it should lie under the cut. None: nothing was found, which lies under every cut."""

    score: float | None
    low: bool

    def under(self, cut: float) -> bool:
        """Does it lie under the cut?"""
        return self.score is None or self.score < cut


def youden(scored: Sequence[Scored], at_least: float = -math.inf) -> float | None:
    """The cut with the largest J = share of the low ones under it - share of the others under it.

    Cuts lie half-way between neighbouring scores, under all of them and over all of them, in four decimals. Of equal ones the
    lowest is taken. So with no low ones nothing lies under the cut, and with low ones alone everything does.

    Args:
        scored: scores with what they should be.
        at_least: no cut under this one is considered.

    Returns:
        None if there is no score.
    """
    ordered = sorted({item.score for item in scored if item.score is not None})
    if not ordered:
        return None
    lowest: float = math.floor(ordered[0] / _STEP) * _STEP
    highest = (math.floor(ordered[-1] / _STEP) + 1) * _STEP
    middles = ((a + b) / 2 for a, b in itertools.pairwise(ordered))
    cuts: set[float] = {max(round(cut, DIGITS), at_least) for cut in (lowest, *middles, highest)}
    return max(sorted(cuts), key=lambda cut: _share(scored, cut, True) - _share(scored, cut, False))


def precision_recall(said: Sequence[bool], true: Sequence[bool]) -> tuple[float | None, float | None]:
    """Precision and recall of a verdict; None where nothing was said, or nothing is true."""
    both = sum(s and t for s, t in zip(said, true, strict=True))
    return (both / sum(said) if any(said) else None), (both / sum(true) if any(true) else None)


def _share(scored: Sequence[Scored], cut: float, low: bool) -> float:
    kind = [item for item in scored if item.low is low]
    return sum(item.under(cut) for item in kind) / len(kind) if kind else 0.0
