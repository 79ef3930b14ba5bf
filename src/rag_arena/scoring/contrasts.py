"""Which differences between two cells are more than chance.

Cells are compared question by question. Questions that share a gold document succeed and fail together, so what is resampled is
not the question but the cluster of those that do.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse, stats
from scipy.sparse import csgraph

from rag_arena.records import LEVEL, Cell

METRICS = ("recall", "contains", "f1", "answer_accuracy")
_POWER = 0.8
_BASE_STRATEGY, _BASE_MODE = "vanilla", "dense"
_RESAMPLES, _SEED, _AT_ONCE = 9_999, 7, 2_000_000  # numbers held in memory at once

Scores = Mapping[Cell, Sequence[Mapping[str, Any]]]  # a cell's rows of the scores table


def contrast_rows(scored: Scores, gold: Mapping[str, Collection[str]]) -> Iterator[dict[str, Any]]:
    """The planned contrasts: each strategy against vanilla in its mode, each mode against dense under its strategy.

    `p_holm` is adjusted over all planned contrasts of a metric (Holm 1979). Contrasts without a common question have no row.

    Args:
        scored: by cell.
        gold: the gold documents of each question.
    """
    clusters = clusters_of(gold)
    for metric in METRICS:
        rows = []
        for varies, cell, base in _planned(scored):
            if compared := compare(scored[cell], scored[base], metric, clusters):
                against = base.strategy if varies == "strategy" else base.retrieval
                own = {"varies": varies, "strategy": cell.strategy, "retrieval": cell.retrieval, "against": against}
                rows.append({"metric": metric, **own, **compared})
        for row, p in zip(rows, holm([row["p"] for row in rows]), strict=True):
            yield {**row, "p_holm": p}


def _planned(cells: Collection[Cell]) -> Iterator[tuple[str, Cell, Cell]]:
    for cell in cells:
        for varies, base in (
            ("strategy", Cell(_BASE_STRATEGY, cell.retrieval)),
            ("retrieval", Cell(cell.strategy, _BASE_MODE)),
        ):
            if base in cells and base != cell:
                yield varies, cell, base


def compare(
    first: Sequence[Mapping[str, Any]], second: Sequence[Mapping[str, Any]], metric: str, clusters: Mapping[str, int]
) -> dict[str, Any]:
    """Two cells on the questions of which both have a score; empty without any.

    The interval is that of 95 % by bootstrap over clusters, p by a permutation test that changes the sign of whole clusters, both
    seeded. `detectable` is the difference that a sample like this one shows in four cases of five at p < 0.05. Neither interval
    nor `detectable` can be told where all clusters differ alike, as where no question does or all are one cluster.
    """
    own, other = ({row["question_id"]: row[metric] for row in rows if row[metric] is not None} for rows in (first, second))
    asked = sorted(own.keys() & other.keys())
    if not asked:
        return {}
    differences = np.array([float(own[q]) - float(other[q]) for q in asked])
    which = np.unique([clusters[q] for q in asked], return_inverse=True)[1]
    sums, sizes = np.bincount(which, differences), np.bincount(which)
    difference = float(differences.mean())
    error = np.sqrt(len(sizes) / max(len(sizes) - 1, 1) * np.sum((sums - difference * sizes) ** 2)) / len(asked)
    alike = np.allclose(sums, difference * sizes)
    low, high = (None, None) if alike else _interval(sums, sizes)
    needed = stats.norm.ppf(1 - LEVEL / 2) + stats.norm.ppf(_POWER)
    return {
        "n_questions": len(asked),
        "n_clusters": len(sizes),
        "mean": float(np.mean([own[q] for q in asked])),
        "mean_against": float(np.mean([other[q] for q in asked])),
        "difference": difference,
        "low": low,
        "high": high,
        "won": int((differences > 0).sum()),
        "lost": int((differences < 0).sum()),
        "tied": int((differences == 0).sum()),
        "p": _p(sums),
        "detectable": None if alike else float(needed * error),
    }


def _interval(sums: NDArray[Any], sizes: NDArray[Any]) -> tuple[float, float]:
    found = stats.bootstrap(
        (sums, sizes),
        lambda s, n, axis: s.sum(axis=axis) / n.sum(axis=axis),
        paired=True,
        vectorized=True,
        method="percentile",
        confidence_level=1 - LEVEL,
        n_resamples=_RESAMPLES,
        batch=max(1, _AT_ONCE // len(sums)),
        rng=np.random.default_rng(_SEED),
    ).confidence_interval
    return float(found.low), float(found.high)


def _p(sums: NDArray[Any]) -> float:
    if len(sums) == 1:
        return 1.0  # either sign is as far from 0
    return float(
        stats.permutation_test(
            (sums,),
            lambda s, axis: s.sum(axis=axis),
            permutation_type="samples",  # of one sample: signs change
            vectorized=True,
            n_resamples=_RESAMPLES,
            batch=max(1, _AT_ONCE // len(sums)),
            rng=np.random.default_rng(_SEED),
        ).pvalue
    )


def holm(ps: Sequence[float]) -> list[float]:
    """p values adjusted for their number, step by step from the smallest (Holm 1979)."""
    order = np.argsort(ps, kind="stable")
    adjusted = np.maximum.accumulate(np.sort(ps) * np.arange(len(ps), 0, -1)).clip(max=1)
    return [float(adjusted[place]) for place in np.argsort(order)]


def clusters_of(gold: Mapping[str, Collection[str]]) -> dict[str, int]:
    """A number for each question, which it has in common with all that share a gold document with it, or with one of theirs."""
    questions, documents = list(gold), sorted({doc_id for ids in gold.values() for doc_id in ids})
    row = {doc_id: len(questions) + number for number, doc_id in enumerate(documents)}
    links = [(number, row[doc_id]) for number, question in enumerate(questions) for doc_id in gold[question]]
    starts, ends = (np.array([link[end] for link in links], dtype=int) for end in (0, 1))
    size = len(questions) + len(documents)
    _, labels = csgraph.connected_components(sparse.coo_array((np.ones(len(links)), (starts, ends)), shape=(size, size)))
    return {question: int(label) for question, label in zip(questions, labels, strict=False)}
