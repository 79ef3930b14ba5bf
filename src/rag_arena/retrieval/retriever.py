"""The one retriever that every strategy shares, in its four modes."""

import time
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Protocol

import pyarrow as pa

from rag_arena import embedders, rerankers
from rag_arena.embedders import Embedder, Floats
from rag_arena.metering import record_grading, record_search
from rag_arena.params import Hybrid, HybridRerank, Params, Sigmoid
from rag_arena.records import Hit, Metadata
from rag_arena.rerankers import Reranker
from rag_arena.retrieval.fusion import reciprocal_rank_fusion
from rag_arena.retrieval.index import Index, join
from rag_arena.retrieval.store import Ranking, Store, open_store

_NONE: frozenset[str] = frozenset()


class Retriever(Protocol):
    """A query to documents, best first: what a strategy asks."""

    def search(self, query: str, k: int, exclude: frozenset[str] = _NONE) -> list[Hit]:
        """At most k hits for a query, without the excluded document ids."""


class FilteringRetriever(Protocol):
    """A retriever that can be held to documents whose metadata agree."""

    def search(self, query: str, k: int, exclude: frozenset[str] = _NONE, where: Metadata = ()) -> list[Hit]:
        """At most k hits for a query, without the excluded document ids, from documents that have all values of `where`."""


class LaneRetriever:
    """Dense, sparse, or both fused by reciprocal rank.

    A fused ranking takes `depth` documents of each lane, so that it does not depend on how many of them are asked for.
    """

    def __init__(self, mode: str, index: Index, embedder: Embedder, store: Store, depth: int, fusion: Hybrid | None) -> None:
        self._mode = mode
        self._index = index
        self._embedder = embedder
        self._store = store
        self._depth = depth
        self._fusion = fusion

    def search(self, query: str, k: int, exclude: frozenset[str] = _NONE, where: Metadata = ()) -> list[Hit]:
        """At most k hits for a query."""
        vector = self._embedder.dense(query)
        terms = self._embedder.sparse_query(query)
        depth = max(k, self._depth)
        if self._mode == "dense":
            ranking = self._store.dense(vector, depth, exclude, where)
        elif self._mode == "sparse":
            ranking = self._store.sparse(terms.indices, terms.values, depth, exclude, where)
        elif self._fusion is not None and self._fusion.fusion == "qdrant":
            ranking = self._store.fused(vector, terms.indices, terms.values, depth, self._fusion.rrf_constant, exclude, where)
        else:
            assert self._fusion is not None
            lanes = (
                self._store.dense(vector, depth, exclude, where),
                self._store.sparse(terms.indices, terms.values, depth, exclude, where),
            )
            ranking = reciprocal_rank_fusion([_ids(lane) for lane in lanes], self._fusion.rrf_constant)
        rows = [self._index.row_of[doc_id] for doc_id, _ in ranking[:k]]
        cosines = embedders.cosines(self._index.dense[rows], vector) if rows else []
        return [Hit(doc_id, score, cosine) for (doc_id, score), cosine in zip(ranking[:k], cosines, strict=True)]


class RerankedRetriever:
    """Another retriever's candidates, reordered by relevance; those under the threshold are dropped, all of them if need be."""

    def __init__(self, inner: FilteringRetriever, reranker: Reranker, index: Index, settings: HybridRerank) -> None:
        self._inner = inner
        self._reranker = reranker
        self._index = index
        self._settings = settings

    def search(self, query: str, k: int, exclude: frozenset[str] = _NONE, where: Metadata = ()) -> list[Hit]:
        """At most k hits for a query, each with its probability of relevance as score."""
        candidates = self._inner.search(query, max(k, self._settings.candidates), exclude, where)
        scores = self._reranker.scores(query, [self._index.document(hit.doc_id).full_text for hit in candidates])
        relevance = [rerankers.probability(score, self._settings.reranker) for score in scores]
        floor = self._settings.relevance_threshold
        kept = [Hit(hit.doc_id, p, hit.cosine) for hit, p in zip(candidates, relevance, strict=True) if p >= floor]
        return sorted(kept, key=lambda hit: (-hit.score, hit.doc_id))[:k]


class Retrievers:
    """Builds the retriever of any mode over one index; store and models are opened once, when first needed."""

    def __init__(self, params: Params, index: Callable[[], Index], embedder: Embedder) -> None:
        self._params = params
        self._load_index = index
        self.embedder = embedder

    @cached_property
    def index(self) -> Index:
        """The index, loaded at first use."""
        return self._load_index()

    @cached_property
    def reranker(self) -> Reranker:
        """The configured reranker."""
        return rerankers.load(self._params.reranker, self.embedder, self._params.served)

    @cached_property
    def _store(self) -> Store:
        return open_store(self._params.store, self.index)

    def of(self, mode: str) -> FilteringRetriever:
        """The retriever of one mode."""
        settings = self._params.retrieval.mode(mode)
        candidates = self.candidates(mode)
        if not isinstance(settings, HybridRerank):
            return candidates
        return RerankedRetriever(candidates, self.reranker, self.index, settings)

    def candidates(self, mode: str) -> FilteringRetriever:
        """What a mode chooses from: its ranking before a reranker reorders it and drops documents."""
        settings = self._params.retrieval.mode(mode)
        fusion = settings if isinstance(settings, Hybrid) else None
        return LaneRetriever(mode, self.index, self.embedder, self._store, settings.candidates, fusion)

    def lane(self, mode: str, depth: int) -> FilteringRetriever:
        """A single lane, dense or sparse, whether or not the grid has it as a mode of its own."""
        return LaneRetriever(mode, self.index, self.embedder, self._store, depth, None)

    def second_lane(self, mode: str) -> FilteringRetriever:
        """The lane unlike a mode's own: BM25 beside the dense mode, dense beside every other."""
        return self.lane("sparse" if mode == "dense" else "dense", self._params.retrieval.mode(mode).candidates)

    def cosines(self, query: str, doc_ids: Sequence[str]) -> list[float]:
        """Dense similarity of documents to a query, in the order given."""
        rows = [self.index.row_of[doc_id] for doc_id in doc_ids]
        start = time.perf_counter()
        found = embedders.cosines(self.index.dense[rows], self.embedder.dense(query)) if rows else []
        record_search(time.perf_counter() - start)
        return found

    def embed(self, text: str) -> Floats:
        """A text's dense vector."""
        start = time.perf_counter()
        vector = self.embedder.dense(text)
        record_search(time.perf_counter() - start)
        return vector

    def relevance(self, query: str, texts: Sequence[str], sigmoid: Sigmoid) -> list[float]:
        """The reranker's probability of relevance of each text, in the order given."""
        start = time.perf_counter()
        found = [rerankers.probability(score, sigmoid) for score in self.reranker.scores(query, texts)] if texts else []
        record_grading(time.perf_counter() - start)
        return found


def open_retrievers(params: Params, corpus: pa.Table, index: pa.Table) -> Retrievers:
    """Retrievers over the artifacts of a dataset, with the configured embedder."""
    embedder = embedders.load(params.embedder, params.served)
    return Retrievers(params, lambda: join(corpus, index, embedder), embedder)


class RecordedRetriever:
    """First-pass hits from the retrieve stage; the store, held to `where`, only for queries that it did not answer.

    Both are metered: live searches by their seconds, recorded ones by their number (the retrieve stage kept their seconds).
    """

    def __init__(
        self, hits: Mapping[str, Sequence[Hit]], depth: int, live: Callable[[], FilteringRetriever], where: Metadata = ()
    ) -> None:
        self._hits = hits
        self._depth = depth
        self._live = live
        self._where = where

    @cached_property
    def _opened(self) -> FilteringRetriever:
        return self._live()

    def search(self, query: str, k: int, exclude: frozenset[str] = _NONE) -> list[Hit]:
        """At most k hits for a query."""
        if query in self._hits and k <= self._depth and not exclude:
            record_search(None)
            return list(self._hits[query][:k])
        opened = self._opened
        start = time.perf_counter()
        found = opened.search(query, k, exclude, self._where)
        record_search(time.perf_counter() - start)
        return found


def _ids(ranking: Ranking) -> list[str]:
    return [doc_id for doc_id, _ in ranking]
