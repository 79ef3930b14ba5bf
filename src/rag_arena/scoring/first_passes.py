"""What one mode's first pass found for a question: its scores, how good it is, and what looking again would add."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from rag_arena.params import Params
from rag_arena.records import COSINE, RELEVANCE, SCORERS, Hit, Question, document_of, documents_of
from rag_arena.retrieval.retriever import Retrievers
from rag_arena.scoring import evidence
from rag_arena.sources.labels import Row


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


class FirstPasses:
    """Measures the first passes of one mode.

    Args:
        mode: which.
        params: its depth, and how far the top and a wider one reach.
        opened: the mode's retriever, and its second lane.
        labels: what people said of documents; this counts more than the dataset's gold ids.
    """

    def __init__(self, mode: str, params: Params, opened: Retrievers, labels: Sequence[Row]) -> None:
        self._opened = opened
        self._candidates, self._second_lane = opened.candidates(mode), opened.second_lane(mode)
        self._depth = params.retrieval.mode(mode).candidates
        self._k, self._wide = params.calibration.k, params.calibration.k * params.calibration.widen_factor
        self._said: dict[str, dict[str, bool]] = {}
        for row in labels:
            if row.verdict is not None:
                self._said.setdefault(row.question_id, {})[row.doc_id] = row.verdict
        self._chunks: dict[str, list[str]] = {}
        for document in opened.index.documents:
            self._chunks.setdefault(document_of(document.doc_id), []).append(document.doc_id)

    def of(self, question: Question, hits: Sequence[Hit]) -> FirstPass:
        """The first pass of a question whose hits the retrieve stage kept."""
        text, where = question.text, question.where
        ranking = {hit.doc_id: hit.cosine for hit in hits}
        own = self._said.get(question.question_id, {})
        said_yes = documents_of(doc_id for doc_id, verdict in own.items() if verdict)
        gold = {*question.gold_ids, *said_yes} - {doc_id for doc_id, verdict in own.items() if not verdict}
        pool = {*ranking, *(hit.doc_id for hit in self._candidates.search(text, self._depth, where=where)), *own}
        unseen = gold.difference(documents_of(pool))
        pool |= {self._nearest(text, self._chunks[doc_id]) for doc_id in unseen}
        truth = {i: own.get(i, document_of(i) in gold if question.gold_ids else None) for i in sorted(pool)}
        scores = self._scores(text, list(truth), ranking)
        top, further = list(ranking)[: self._k], list(ranking)[self._k : self._wide]
        other = [hit.doc_id for hit in self._second_lane.search(text, self._wide, frozenset(top), where)]
        return FirstPass(
            question.question_id,
            {scorer: max((scores[doc_id][scorer] for doc_id in top), default=None) for scorer in SCORERS},
            evidence.retrieval_label([truth[doc_id] for doc_id in top]),
            [(scores[doc_id], known) for doc_id, known in truth.items() if known is not None],
            self._correction(further, top, gold),
            self._correction(other, top, gold),
        )

    def _nearest(self, question: str, doc_ids: Sequence[str]) -> str:
        """Of a document's chunks the one most similar to the question."""
        cosines = self._opened.cosines(question, doc_ids)
        return max(zip(cosines, doc_ids, strict=True))[1]

    def _scores(self, question: str, doc_ids: Sequence[str], recorded: Mapping[str, float]) -> dict[str, dict[str, float]]:
        """Both scores of documents; cosines as the retrieve stage recorded them where it did, since strategies read those."""
        cosines = dict(zip(doc_ids, self._opened.cosines(question, doc_ids), strict=True)) | dict(recorded)
        texts = [self._opened.index.document(doc_id).full_text for doc_id in doc_ids]
        relevance = self._opened.reranker.scores(question, texts)
        return {doc_id: {COSINE: cosines[doc_id], RELEVANCE: r} for doc_id, r in zip(doc_ids, relevance, strict=True)}

    def _correction(self, added: Sequence[str], top: Sequence[str], gold: Collection[str]) -> Correction:
        after, before = evidence.recall([*top, *added], gold), evidence.recall(top, gold)
        gain = None if after is None or before is None else after - before
        return Correction(gain, len(added), sum(len(self._opened.index.document(doc_id).full_text) for doc_id in added))
