"""A collection of Qdrant that holds an index: in memory, or on a server, where it is named after what it holds.

Points are uploaded in the order of their ids, and every batch is waited for. So what is there is always the first batches and
perhaps a part of the next, whoever uploaded them: an upload goes on from there, a finished one is not repeated, and processes
that upload the same index at the same time need no lock.
"""

import hashlib
from typing import Any

from qdrant_client import QdrantClient, models
from qdrant_client.http.exceptions import UnexpectedResponse

from rag_arena.errors import ArenaError
from rag_arena.params import Store
from rag_arena.progress import bar
from rag_arena.retrieval.index import Index
from rag_arena.retrieval.server import connect, told
from rag_arena.retrieval.store import payload_key

_BATCH = 256


class Collection:
    """An open collection, filled with an index.

    Args:
        client: of memory or of a server.
        name: the collection's.
        where: begins every refusal.
        exact: build no graph of neighbours and compare every vector, so that a ranking is a function of the vectors alone; None
            in memory, where it is always so.
    """

    def __init__(self, client: QdrantClient, name: str, where: str, exact: bool | None) -> None:
        self._client = client
        self._name = name
        self._where = where
        self._exact = exact
        self._search = None if exact is None else models.SearchParams(exact=exact)

    @classmethod
    def in_memory(cls, index: Index) -> "Collection":
        """A collection in this process."""
        made = cls(QdrantClient(":memory:"), "documents", "qdrant-client", exact=None)
        made._fill(index)
        return made

    @classmethod
    def on_server(cls, params: Store, index: Index) -> "Collection":
        """The collection of this index on a server; what it lacks is uploaded.

        Raises:
            EndpointError: nobody answers, the key is missing or refused, or it is no Qdrant.
            ArenaError: the server refuses a batch, or holds another number of points in the end.
        """
        name = f"rag-arena-{_digest(index, params.exact)}"
        made = cls(connect(params), name, f"{params.url}: {name}", params.exact)
        with told(made._where):
            made._fill(index)
        return made

    def query(self, **asked: Any) -> list[Any]:
        """Points of a query, best first; its arguments are those of qdrant-client's query_points.

        Raises:
            EndpointError: as `on_server`.
            ArenaError: the server refuses the query.
        """
        with told(self._where):
            return self._client.query_points(self._name, search_params=self._search, with_payload=False, **asked).points

    def prefetch(self, **asked: Any) -> models.Prefetch:
        """A lane of a query that fuses several."""
        return models.Prefetch(params=self._search, **asked)

    def _fill(self, index: Index) -> None:
        rows = len(index.documents)
        starts = range(0, rows, _BATCH)
        self._create(index)
        if self._count() != rows:
            self._index_payload(index)
            with bar("upload to Qdrant", len(starts)) as advance:
                for start in starts:
                    batch = range(start, min(start + _BATCH, rows))
                    if self._count() < batch.stop:
                        self._client.upsert(self._name, [_point(index, row) for row in batch], wait=True)
                    advance()
        if (found := self._count()) != rows:
            raise ArenaError(f"{self._where}: holds {found} points instead of {rows}; delete the collection and run again")

    def _create(self, index: Index) -> None:
        if self._client.collection_exists(self._name):
            return
        try:
            self._client.create_collection(
                self._name,
                vectors_config={"dense": models.VectorParams(size=index.dense.shape[1], distance=models.Distance.COSINE)},
                sparse_vectors_config={"sparse": models.SparseVectorParams(modifier=models.Modifier.IDF if index.idf else None)},
                hnsw_config=models.HnswConfigDiff(m=0) if self._exact else None,
                shard_number=1,  # inverse document frequency is counted per shard
            )
        except UnexpectedResponse:
            if not self._client.collection_exists(self._name):  # else another process was first
                raise

    def _index_payload(self, index: Index) -> None:
        """Make metadata quick to filter by; some servers refuse to filter by anything else."""
        if self._exact is not None:
            for column in sorted({column for document in index.documents for column, _ in document.metadata}):
                self._client.create_payload_index(self._name, payload_key(column), models.PayloadSchemaType.KEYWORD, wait=True)

    def _count(self) -> int:
        return self._client.count(self._name, exact=True).count


def _point(index: Index, row: int) -> models.PointStruct:
    indices, values = index.sparse[row]
    sparse = models.SparseVector(indices=indices.tolist(), values=values.tolist())
    vectors: Any = {"dense": index.dense[row].tolist(), "sparse": sparse}
    return models.PointStruct(id=row, vector=vectors, payload=dict(index.documents[row].metadata))


def _digest(index: Index, exact: bool) -> str:
    """Of all points, in order, and of how they are laid out."""
    digest = hashlib.sha256(f"dense cosine, sparse idf {index.idf}, exact {exact}, {index.dense.shape}".encode())
    digest.update(index.dense.data)
    for (indices, values), document in zip(index.sparse, index.documents, strict=True):
        digest.update(f"{len(indices)}{document.metadata}".encode())
        digest.update(indices.data)
        digest.update(values.data)
    return digest.hexdigest()[:32]
