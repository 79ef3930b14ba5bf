"""Dense vectors from a server that speaks OpenAI's embeddings, with BM25 weights for the sparse lane.

A query's vector is kept in the ledger and replayed, so that it stays the same where the server's arithmetic does not. Documents'
vectors are kept in the index alone.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from rag_arena.embedders import Embedded, Floats, unit
from rag_arena.embedders.bm25 import Bm25
from rag_arena.llm.ledger import canonical
from rag_arena.llm.served import Body, Reader, ServedModel
from rag_arena.params import HttpEmbedder, Transport

_REQUESTS = 8  # of a group of documents
_REMEMBERED = 4096  # queries


class Http:
    """An embedder behind an endpoint."""

    alone = False  # servers batch as they like
    idf = True

    def __init__(self, params: HttpEmbedder, transport: Transport) -> None:
        self._params = params
        self._bm25 = Bm25(params.bm25)
        self._model = ServedModel(params, transport, "embedder", "/embeddings", "send_dimensions", "embeddings")
        self.group_size = _REQUESTS * params.batch_size
        settings = params.model_dump(exclude={"api_key_env", "bm25"})
        self.identity = canonical({**settings, "bm25": self._bm25.identity})
        self.dense = lru_cache(_REMEMBERED)(self._dense)

    def documents(self, groups: Iterable[Sequence[str]]) -> Iterator[list[Embedded]]:
        """Each group in as many requests as it takes, several under way at once."""
        for texts in groups:
            size = self._params.batch_size
            requests = [self._question(texts[at : at + size], self._params.document_prefix) for at in range(0, len(texts), size)]
            vectors = [vector for reply in self._model.ask_all(requests) for vector in reply]
            yield [Embedded(vector, self._bm25.document(text)) for vector, text in zip(vectors, texts, strict=True)]

    def prepare(self, queries: Sequence[str]) -> None:
        """Ask for queries that the ledger does not hold, several requests under way at once."""
        self._model.ask_ahead(self._question([query], self._params.query_prefix) for query in dict.fromkeys(queries))

    def sparse_query(self, text: str) -> Any:
        """BM25 weights: one per term."""
        return self._bm25.query(text)

    def tokens(self, text: str) -> Floats:
        """Endpoints give none; the parameters refuse what would ask for them."""
        raise NotImplementedError(text)

    def _dense(self, text: str) -> Floats:
        vectors: list[Floats] = self._model.ask(*self._question([text], self._params.query_prefix))
        return vectors[0]

    def _question(self, texts: Sequence[str], prefix: str) -> tuple[Body, Reader]:
        params = self._params
        body: dict[str, Any] = {
            "model": params.model,
            "input": [prefix + text[: params.max_characters] for text in texts],
            "encoding_format": "float",
        }
        if params.send_dimensions:
            body["dimensions"] = params.dimensions
        return body, lambda reply: _vectors(reply, len(texts), params.dimensions)


def _vectors(reply: Any, count: int, dimensions: int) -> list[Floats]:
    """Unit vectors in the order of the texts.

    Raises:
        ValueError: there are too few or too many, of another length, or they hold what is no number.
        LookupError, TypeError: the reply has another shape.
    """
    rows = sorted(reply["data"], key=lambda row: row["index"])
    if [row["index"] for row in rows] != list(range(count)):
        raise ValueError(f"{len(rows)} vectors for {count} texts, or not one for each")
    if any(isinstance(row["embedding"], str) for row in rows):
        raise ValueError("a vector as text, where encoding_format float was asked for")
    found = {len(row["embedding"]) for row in rows}
    if found != {dimensions}:
        raise ValueError(f"vectors of length {min(found - {dimensions})}, embedder.dimensions is {dimensions}")
    vectors = np.array([row["embedding"] for row in rows], dtype=np.float32)
    if not np.isfinite(vectors).all() or not vectors.any(axis=1).all():
        raise ValueError("a vector that is not finite, or is zero")
    return list(unit(vectors))
