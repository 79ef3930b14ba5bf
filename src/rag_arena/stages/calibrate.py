"""calibrate: what first-pass scores are worth in one retrieval mode, on the calibration split. No model is asked."""

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from rag_arena import artifacts, layout, rerankers
from rag_arena.params import Params, Sigmoid
from rag_arena.progress import track
from rag_arena.records import Document, document_of, documents_of
from rag_arena.retrieval.retriever import Retrievers
from rag_arena.scoring import evidence, sigmoid
from rag_arena.scoring.cuts import Scored, precision_recall, youden
from rag_arena.sources.labels import Row, check
from rag_arena.stages.retrieve import open_retrievers

COSINE, RELEVANCE = "cosine", "relevance"
SCORERS = (COSINE, RELEVANCE)


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


@dataclass(frozen=True, slots=True)
class Correction:
    """What looking again adds to a retrieval if nothing of it is dropped: gold recall, documents and their characters."""

    gain: float | None
    documents: int
    characters: int


@dataclass(frozen=True, slots=True)
class FirstPass:
    """One question's top k: its best score by each scorer, how good it is, and what two corrections would add.

    `best` is None where nothing was found. `pairs` are the scores, by scorer, of the documents whose relevance is known: what
    the mode chose from, before anything was dropped, and the gold ones.
    """

    question_id: str
    best: Mapping[str, float | None]
    label: str | None
    pairs: Sequence[tuple[Mapping[str, float], bool]]
    widen: Correction
    other_lane: Correction


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
    passes = list(_first_passes(mode, params, corpus, index, questions, sample, hits, labels))
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


def _first_passes(
    mode: str,
    params: Params,
    corpus: pa.Table,
    index: pa.Table,
    questions: pa.Table,
    sample: pa.Table,
    hits: pa.Table,
    labels: Sequence[Row],
) -> Iterator[FirstPass]:
    opened = open_retrievers(params, corpus, index)
    candidates, second_lane = opened.candidates(mode), opened.second_lane(mode)
    depth = params.retrieval.mode(mode).candidates
    k, wide = params.calibration.k, params.calibration.k * params.calibration.widen_factor
    said = {(row.question_id, row.doc_id): row.verdict for row in labels if row.verdict is not None}
    found, asked = artifacts.hits_of(hits), set(sample["question_id"].to_pylist())
    chosen = [row for row in questions.to_pylist() if row["question_id"] in asked]
    chunks: dict[str, list[str]] = {}
    for doc_id in corpus["doc_id"].to_pylist():
        chunks.setdefault(document_of(doc_id), []).append(doc_id)
    for row in track(f"calibrate {mode}", chosen, len(chosen)):
        question_id, text, where = row["question_id"], row["question"], tuple(row["where"])
        ranking = {hit.doc_id: hit.cosine for hit in found.get(question_id, [])}
        own = {doc_id: verdict for (asked, doc_id), verdict in said.items() if asked == question_id}
        said_yes = documents_of(doc_id for doc_id, verdict in own.items() if verdict)
        gold = {*row["gold_ids"], *said_yes} - {doc_id for doc_id, verdict in own.items() if not verdict}
        pool = {*ranking, *(hit.doc_id for hit in candidates.search(text, depth, where=where)), *own}
        unseen = gold.difference(documents_of(pool))
        pool |= {_nearest(opened, text, chunks[doc_id]) for doc_id in unseen}
        truth = {i: own.get(i, document_of(i) in gold if row["gold_ids"] else None) for i in sorted(pool)}
        scores = _scores(opened, text, list(truth), ranking)
        top, further = list(ranking)[:k], list(ranking)[k:wide]
        other = [hit.doc_id for hit in second_lane.search(text, wide, frozenset(top), where)]
        yield FirstPass(
            question_id,
            {scorer: max((scores[doc_id][scorer] for doc_id in top), default=None) for scorer in SCORERS},
            evidence.retrieval_label([truth[doc_id] for doc_id in top]),
            [(scores[doc_id], known) for doc_id, known in truth.items() if known is not None],
            _correction(further, top, gold, opened.index.document),
            _correction(other, top, gold, opened.index.document),
        )


def _nearest(opened: Retrievers, question: str, doc_ids: Sequence[str]) -> str:
    """Of a document's chunks the one most similar to the question."""
    cosines = opened.cosines(question, doc_ids)
    return max(zip(cosines, doc_ids, strict=True))[1]


def _scores(
    opened: Retrievers, question: str, doc_ids: Sequence[str], recorded: Mapping[str, float]
) -> dict[str, dict[str, float]]:
    """Both scores of documents; cosines as the retrieve stage recorded them where it did, since strategies read those."""
    cosines = dict(zip(doc_ids, opened.cosines(question, doc_ids), strict=True)) | dict(recorded)
    relevance = opened.reranker.scores(question, [opened.index.document(doc_id).full_text for doc_id in doc_ids])
    return {d: {COSINE: cosines[d], RELEVANCE: r} for d, r in zip(doc_ids, relevance, strict=True)}


def _correction(
    added: Sequence[str], top: Sequence[str], gold: Collection[str], document: Callable[[str], Document]
) -> Correction:
    after, before = evidence.recall([*top, *added], gold), evidence.recall(top, gold)
    gain = None if after is None or before is None else after - before
    return Correction(gain, len(added), sum(len(document(doc_id).full_text) for doc_id in added))


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
