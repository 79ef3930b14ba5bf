"""Reciprocal rank fusion (Cormack, Clarke and Buettcher, SIGIR 2009).

    score(d) = sum over rankings of 1 / (c + rank(d)),   rank from 1, c = 60 in the paper.

Qdrant counts ranks from 0, so its `k` is our c + 1. It fuses by position, so the lanes' scales do not matter.
"""

from collections.abc import Iterable, Sequence


def reciprocal_rank_fusion(rankings: Iterable[Sequence[str]], constant: int) -> list[tuple[str, float]]:
    """Fuse rankings of document ids; best first, equal scores by document id.

    Args:
        rankings: each a list of distinct ids, best first.
        constant: c above.
    """
    scores: dict[str, float] = {}
    for ranking in rankings:
        for rank, doc_id in enumerate(ranking, 1):
            scores[doc_id] = scores.get(doc_id, 0.0) + 1.0 / (constant + rank)
    return best_first(scores.items())


def best_first(scored: Iterable[tuple[str, float]]) -> list[tuple[str, float]]:
    """Highest score first; equal scores by document id, so that a ranking is a function of its inputs."""
    return sorted(scored, key=lambda pair: (-pair[1], pair[0]))
