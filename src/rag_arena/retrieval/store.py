"""Qdrant, filled from the index: in memory or on a server through qdrant-client, or on disk through qdrant-edge.

Point ids are row numbers of the index. Lanes come back best first, equal scores by document id: a store may order ties as it
likes and cut among them, so a lane is asked for more until its last score is below the k-th.
"""

import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from rag_arena.embedders import Floats, cosines
from rag_arena.params import Store as StoreParams
from rag_arena.records import Metadata
from rag_arena.retrieval.fusion import best_first
from rag_arena.retrieval.index import Index

if TYPE_CHECKING:
    from rag_arena.retrieval.collection import Collection

Ranking = list[tuple[str, float]]
_BATCH = 512
_NOISE = 1e-6  # equal vectors may differ by this much in a store's scores


class Store(Protocol):
    """Two lanes of vectors, and the store's own fusion of them."""

    def dense(self, vector: Floats, k: int, exclude: frozenset[str], where: Metadata = ()) -> Ranking:
        """The k nearest by cosine, without the excluded ids, of documents whose metadata agree."""

    def sparse(
        self, indices: Sequence[int], values: Sequence[float], k: int, exclude: frozenset[str], where: Metadata = ()
    ) -> Ranking:
        """The k best by lexical weights, as `dense`; documents that share no term are absent."""

    def fused(
        self,
        vector: Floats,
        indices: Sequence[int],
        values: Sequence[float],
        k: int,
        constant: int,
        exclude: frozenset[str],
        where: Metadata = (),
    ) -> Ranking:
        """The k best of both lanes, each k deep, by Qdrant's own reciprocal rank fusion.

        Ties inside a lane are in Qdrant's order here, which backends do not share; our own fusion settles them.
        """


def open_store(params: StoreParams, index: Index) -> Store:
    """A store of the configured kind, holding the whole index.

    Raises:
        ArenaError: the server does not answer, or refuses.
    """
    if params.backend == "edge":
        return EdgeStore(index)
    from rag_arena.retrieval.collection import Collection

    return QdrantStore(Collection.in_memory(index) if params.backend == "local" else Collection.on_server(params, index), index)


def _settled(query: Callable[[int], list[Any]], k: int) -> list[Any]:
    limit = k + 1
    while True:
        points = query(limit)
        if len(points) < limit or points[-1].score < points[k - 1].score - 2 * _NOISE:
            return points
        limit *= 2


def _nearest(query: Callable[[int], list[Any]], vector: Floats, index: Index, k: int) -> Ranking:
    rows = [int(point.id) for point in _settled(query, k)]
    ids = [index.documents[row].doc_id for row in rows]
    return best_first(zip(ids, cosines(index.dense[rows], vector), strict=True))[:k]


def payload_key(column: str) -> str:
    """A column as Qdrant names a field of the payload: in quotes, so that spaces and dots are part of the name."""
    return f'"{column}"'


def _named(points: Sequence[Any], index: Index) -> Ranking:
    return best_first((index.documents[int(point.id)].doc_id, float(point.score)) for point in points)


class _Lanes(ABC):
    """The lanes of a store; how it spells a query, a sparse vector and a filter is its own."""

    _index: Index

    def dense(self, vector: Floats, k: int, exclude: frozenset[str], where: Metadata = ()) -> Ranking:
        """The k nearest by cosine."""
        keep = self._filter(exclude, where)
        return _nearest(lambda n: self._query(vector.tolist(), "dense", n, keep), vector, self._index, k)

    def sparse(
        self, indices: Sequence[int], values: Sequence[float], k: int, exclude: frozenset[str], where: Metadata = ()
    ) -> Ranking:
        """The k best by lexical weights."""
        if not indices:
            return []
        query, keep = self._weights(indices, values), self._filter(exclude, where)
        return _named(_settled(lambda n: self._query(query, "sparse", n, keep), k), self._index)[:k]

    @abstractmethod
    def _query(self, query: Any, using: str, limit: int, keep: Any) -> list[Any]:
        """The points nearest to a vector of one lane, best first."""

    @abstractmethod
    def _weights(self, indices: Sequence[int], values: Sequence[float]) -> Any:
        """A sparse vector."""

    @abstractmethod
    def _filter(self, exclude: frozenset[str], where: Metadata) -> Any:
        """The condition that excludes documents and holds the others' metadata to what is wanted."""


class QdrantStore(_Lanes):
    """A collection through qdrant-client."""

    def __init__(self, collection: "Collection", index: Index) -> None:
        from qdrant_client import models

        self._models = models
        self._collection = collection
        self._index = index

    def fused(
        self,
        vector: Floats,
        indices: Sequence[int],
        values: Sequence[float],
        k: int,
        constant: int,
        exclude: frozenset[str],
        where: Metadata = (),
    ) -> Ranking:
        """Qdrant's RrfQuery over both lanes."""
        models = self._models
        keep = self._filter(exclude, where)
        sparse = self._weights(indices, values)
        lanes = [self._collection.prefetch(query=vector.tolist(), using="dense", limit=k, filter=keep)]
        if indices:
            lanes.append(self._collection.prefetch(query=sparse, using="sparse", limit=k, filter=keep))
        rrf = models.RrfQuery(rrf=models.Rrf(k=constant + 1))
        return _named(self._collection.query(prefetch=lanes, query=rrf, limit=2 * k), self._index)[:k]

    def _query(self, query: Any, using: str, limit: int, keep: Any) -> list[Any]:
        return self._collection.query(query=query, using=using, limit=limit, query_filter=keep)

    def _weights(self, indices: Sequence[int], values: Sequence[float]) -> Any:
        return self._models.SparseVector(indices=list(indices), values=list(values))

    def _filter(self, exclude: frozenset[str], where: Metadata) -> Any:
        models = self._models
        rows: list[Any] = [self._index.row_of[doc_id] for doc_id in sorted(exclude)]
        agree: list[Any] = [models.FieldCondition(key=payload_key(name), match=models.MatchValue(value=v)) for name, v in where]
        seen: list[Any] = [models.HasIdCondition(has_id=rows)] if rows else []
        return models.Filter(must=agree, must_not=seen) if agree or seen else None


class EdgeStore(_Lanes):
    """qdrant-edge on disk, in a folder that goes with the process."""

    def __init__(self, index: Index) -> None:
        import qdrant_edge as edge

        self._edge = edge
        self._index = index
        self._folder = tempfile.TemporaryDirectory(prefix="rag-arena-edge-")
        config = edge.EdgeConfig(
            vectors={"dense": edge.EdgeVectorParams(size=index.dense.shape[1], distance=edge.Distance.Cosine)},
            sparse_vectors={"sparse": edge.EdgeSparseVectorParams(modifier=edge.Modifier.Idf if index.idf else None)},
        )
        self._shard = edge.EdgeShard.create(self._folder.name, config)
        for start in range(0, len(index.documents), _BATCH):
            rows = range(start, min(start + _BATCH, len(index.documents)))
            self._shard.update(edge.UpdateOperation.upsert_points([self._point(row) for row in rows]))

    def fused(
        self,
        vector: Floats,
        indices: Sequence[int],
        values: Sequence[float],
        k: int,
        constant: int,
        exclude: frozenset[str],
        where: Metadata = (),
    ) -> Ranking:
        """Qdrant's Fusion.Rrf over both lanes."""
        edge = self._edge
        keep = self._filter(exclude, where)
        sparse = self._weights(indices, values)
        prefetches = [
            edge.Prefetch(limit=k, query=edge.Query.Nearest(vector.tolist(), using="dense"), filter=keep),
            edge.Prefetch(limit=k, query=edge.Query.Nearest(sparse, using="sparse"), filter=keep),
        ]
        request = edge.QueryRequest(prefetches=prefetches, query=edge.Fusion.Rrf(k=constant + 1), limit=2 * k)
        return _named(self._shard.query(request), self._index)[:k]

    def _point(self, row: int) -> Any:
        indices, values = self._index.sparse[row]
        sparse = self._edge.SparseVector(indices=indices.tolist(), values=values.tolist())
        vectors = {"dense": self._index.dense[row].tolist(), "sparse": sparse}
        return self._edge.Point(id=row, vector=vectors, payload=dict(self._index.documents[row].metadata))

    def _query(self, query: Any, using: str, limit: int, keep: Any) -> list[Any]:
        nearest = self._edge.Query.Nearest(query, using=using)
        return list(self._shard.query(self._edge.QueryRequest(query=nearest, limit=limit, filter=keep)))

    def _weights(self, indices: Sequence[int], values: Sequence[float]) -> Any:
        return self._edge.SparseVector(indices=list(indices), values=list(values))

    def _filter(self, exclude: frozenset[str], where: Metadata) -> Any:
        edge = self._edge
        rows: set[Any] = {self._index.row_of[doc_id] for doc_id in exclude}
        agree: list[Any] = [edge.FieldCondition(key=payload_key(name), match=edge.MatchValue(value)) for name, value in where]
        seen: list[Any] = [edge.HasIdCondition(rows)] if rows else []
        return edge.Filter(must=agree, must_not=seen) if agree or seen else None
