"""calibrate: what first-pass scores are worth in one retrieval mode, on the calibration split. No model is asked."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from rag_arena import artifacts, layout, rerankers
from rag_arena.params import Params, Sigmoid
from rag_arena.progress import track
from rag_arena.records import COSINE, RELEVANCE, SCORERS
from rag_arena.retrieval.retriever import open_retrievers
from rag_arena.scoring import evidence, sigmoid
from rag_arena.scoring.cuts import Scored, precision_recall, youden
from rag_arena.scoring.first_passes import FirstPass, FirstPasses
from rag_arena.sources.labels import Row, check


@dataclass(frozen=True, slots=True)
class Calibrated:
    """The tables of one mode.

    `retrievals`: each question's best score over its top k, and its label. `sigmoids`: tau and T per scorer, empty where nothing
    can be fitted. `thresholds`: the cut that separates the bad (or the good) retrievals from the rest, on the scorer's own scale.
    `candidates`: what each candidate threshold would correct, gain and cost.
    """

    retrievals: pa.Table
    sigmoids: pa.Table
    thresholds: pa.Table
    candidates: pa.Table


def calibrate(
    mode: str,
    params: Params,
    corpus: pa.Table,
    index: pa.Table,
    questions: pa.Table,
    sample: pa.Table,
    hits: pa.Table,
    labels: Sequence[Row],
) -> Calibrated:
    """Fit sigmoids and thresholds of one mode.

    Raises:
        ArenaError: a label is of a question or a document that the dataset does not have.
    """
    check(layout.LABELS, labels, set(questions["question_id"].to_pylist()), set(corpus["doc_id"].to_pylist()))
    measuring = FirstPasses(mode, params, open_retrievers(params, corpus, index), labels)
    asked, found = artifacts.questions_of(questions, sample), artifacts.hits_of(hits)
    passes = [measuring.of(q, found.get(q.question_id, [])) for q in track(f"calibrate {mode}", asked, len(asked))]
    sigmoids = {scorer: _fit(scorer, passes) for scorer in SCORERS}
    # cosines are held against a threshold as they are, the reranker's scores through the sigmoid
    scales = {COSINE: None, RELEVANCE: sigmoids[RELEVANCE][1]}
    tried = sorted(set(params.calibration.thresholds)) if passes else []
    return Calibrated(
        artifacts.table(artifacts.RETRIEVALS, (row for scorer in SCORERS for row in _retrievals(scorer, passes))),
        artifacts.table(artifacts.SIGMOIDS, [row for row, _ in sigmoids.values()]),
        artifacts.table(artifacts.THRESHOLDS, (row for scorer in SCORERS for row in _thresholds(scorer, passes))),
        artifacts.table(
            artifacts.CANDIDATES,
            (
                _candidate(scorer, threshold, passes, through)
                for scorer, through in scales.items()
                for threshold in tried
                if through or scorer == COSINE
            ),
        ),
    )


def _retrievals(scorer: str, passes: Sequence[FirstPass]) -> Iterator[dict[str, Any]]:
    for each in passes:
        yield {"scorer": scorer, "question_id": each.question_id, "best": each.best[scorer], "label": each.label}


def _fit(scorer: str, passes: Sequence[FirstPass]) -> tuple[dict[str, Any], Sigmoid | None]:
    pairs = [(scores[scorer], relevant) for each in passes for scores, relevant in each.pairs]
    fitted = sigmoid.fit([score for score, _ in pairs], [relevant for _, relevant in pairs])
    n_relevant = sum(relevant for _, relevant in pairs)
    row = {
        "scorer": scorer,
        "n_relevant": n_relevant,
        "n_other": len(pairs) - n_relevant,
        "tau": fitted.tau if fitted else None,
        "temperature": fitted.temperature if fitted else None,
    }
    return row, fitted


def _thresholds(scorer: str, passes: Sequence[FirstPass]) -> Iterator[dict[str, Any]]:
    """The cut under which a retrieval is called bad, then the one from which it is called good; the second is never the lower."""
    labelled = [each for each in passes if each.label is not None]
    counts = {
        f"n_{label}": sum(each.label == label for each in labelled)
        for label in (evidence.GOOD, evidence.ACCEPTABLE, evidence.BAD)
    }
    least = -math.inf
    for separates, low in ((evidence.BAD, {evidence.BAD}), (evidence.GOOD, {evidence.ACCEPTABLE, evidence.BAD})):
        scored = [Scored(each.best[scorer], each.label in low) for each in labelled]
        cut = youden(scored, at_least=least)
        row = {"scorer": scorer, "separates": separates, **counts, "n_unlabelled": len(passes) - len(labelled), "cut": cut}
        if cut is None:
            yield {**row, "precision": None, "recall": None}
            continue
        said = [item.under(cut) is (separates == evidence.BAD) for item in scored]
        precision, recall = precision_recall(said, [each.label == separates for each in labelled])
        yield {**row, "precision": precision, "recall": recall}
        least = cut


def _candidate(scorer: str, threshold: float, passes: Sequence[FirstPass], through: Sigmoid | None) -> dict[str, Any]:
    """What a threshold would correct; gain and cost are means over all questions, of which those not corrected add nothing."""
    fires = [corrected(each.best[scorer], threshold, through) for each in passes]
    labelled = [(fired, each.label == evidence.BAD) for fired, each in zip(fires, passes, strict=True) if each.label is not None]
    precision, recall = precision_recall([fired for fired, _ in labelled], [bad for _, bad in labelled])
    row = {
        "scorer": scorer,
        "threshold": threshold,
        "n_questions": len(passes),
        "n_corrected": sum(fires),
        "correction_rate": sum(fires) / len(passes),
        "precision": precision,
        "recall": recall,
    }
    for name, corrections in (("widen", [p.widen for p in passes]), ("other_lane", [p.other_lane for p in passes])):
        pairs = list(zip(fires, corrections, strict=True))
        gains = [fired * correction.gain for fired, correction in pairs if correction.gain is not None]
        row |= {
            f"gain_{name}": sum(gains) / len(gains) if gains else None,
            f"documents_{name}": sum(fired * correction.documents for fired, correction in pairs) / len(passes),
            f"characters_{name}": sum(fired * correction.characters for fired, correction in pairs) / len(passes),
        }
    return row


def corrected(best: float | None, threshold: float, through: Sigmoid | None) -> bool:
    """Does a retrieval with this best score lie under a threshold, which a sigmoid may put on the scale of probabilities?"""
    if best is None:
        return True
    return (rerankers.probability(best, through) if through else best) < threshold
