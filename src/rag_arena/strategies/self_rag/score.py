"""Self-RAG's formulas (Asai et al. 2023, arXiv:2310.11511, section 3.3), on probabilities throughout.

A critique is read as an expectation: every class has a value, and s = sum of value x P(class) / sum of P(class). A segment scores
f = p(y | x, d) + w_rel s_rel + w_sup s_sup + w_use s_use, where p(y | x, d) is exp of the mean log-probability of its tokens.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum

from rag_arena.strategies.self_rag.path import Path, Segment

RETRIEVE = {"Yes": 1.0, "No": 0.0}
RELEVANT = {"Relevant": 1.0, "Irrelevant": 0.0}
SUPPORTED = {"Fully": 1.0, "Partially": 0.5, "No": 0.0}
USEFUL = {"1": -1.0, "2": -0.5, "3": 0.0, "4": 0.5, "5": 1.0}


def expectation(probabilities: Mapping[str, float], values: Mapping[str, float]) -> float | None:
    """The value that the classes' probabilities amount to, normalised over the classes; None when they have none.

    Over `RETRIEVE` it is P(Yes) / (P(Yes) + P(No)), which the paper compares with its threshold.
    """
    total = fsum(probabilities.get(name, 0.0) for name in values)
    return fsum(value * probabilities.get(name, 0.0) for name, value in values.items()) / total if total > 0 else None


@dataclass(frozen=True, slots=True)
class Weights:
    """What each critique counts."""

    relevant: float
    supported: float
    useful: float


def segment_score(segment: Segment, weights: Weights, likelihood: bool = True) -> float:
    """f of one segment; terms that are None are left out, and the first one where `likelihood` is false."""
    terms = [
        (1.0 if likelihood else 0.0, segment.likelihood),
        (weights.relevant, segment.relevant),
        (weights.supported, segment.supported),
        (weights.useful, segment.useful),
    ]
    return fsum(weight * term for weight, term in terms if term is not None)


def path_scores(paths: Sequence[Path], weights: Weights) -> list[float]:
    """Mean segment score of each path, so that paths of unequal length compare.

    p(y | x, d) is left out for all when one of them lacks it: a server that gives no log-probabilities must not favour a path.
    """
    likelihood = all(segment.likelihood is not None for path in paths for segment in path.segments)
    return [fsum(segment_score(s, weights, likelihood) for s in path.segments) / len(path.segments) for path in paths]


def best(paths: Sequence[Path], scores: Sequence[float], width: int) -> list[int]:
    """Positions of the `width` best paths, best first, the earlier of equals first."""
    return sorted(range(len(paths)), key=lambda position: (-scores[position], position))[:width]
