"""The index in memory: documents beside their vectors, in the order of the corpus artifact."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rag_arena import artifacts
from rag_arena.embedders import Embedder, Floats
from rag_arena.errors import ArenaError
from rag_arena.records import Document


@dataclass(frozen=True)
class Index:
    """Documents, their dense vectors (n, d) and their sparse dimensions and weights; row i everywhere is the same document.

    `idf`: whether the store is to weigh a query's terms by inverse document frequency, as BM25 wants and learnt weights do not.
    """

    documents: tuple[Document, ...]
    dense: Floats
    sparse: tuple[tuple[NDArray[np.uint32], Floats], ...]
    idf: bool = True

    @cached_property
    def row_of(self) -> Mapping[str, int]:
        """Row by document id."""
        return {document.doc_id: row for row, document in enumerate(self.documents)}

    def document(self, doc_id: str) -> Document:
        """A document by id."""
        return self.documents[self.row_of[doc_id]]


def join(corpus: pa.Table, index: pa.Table, embedder: Embedder) -> Index:
    """Corpus and index artifacts as one, for queries of this embedder.

    Raises:
        ArenaError: the index was built by another embedder or from another corpus.
    """
    built_by = (index.schema.metadata or {}).get(b"arena.embedder", b"").decode()
    if built_by != embedder.identity:
        raise ArenaError(f"data/index.parquet: built by another embedder ({built_by}); run `dvc repro index`")
    documents = tuple(artifacts.documents(corpus).values())
    described = [(d.doc_id, hashlib.sha256(d.full_text.encode()).hexdigest()) for d in documents]
    if described != list(zip(index["doc_id"].to_pylist(), index["text_sha256"].to_pylist(), strict=True)):
        raise ArenaError("data/index.parquet: built from another corpus; run `dvc repro index`")
    dense = index["dense"].combine_chunks().flatten().to_numpy().reshape(len(documents), -1)
    sparse = tuple(zip(_lists(index["sparse_indices"]), _lists(index["sparse_values"]), strict=True))
    return Index(documents, dense, sparse, embedder.idf)


def _lists(column: pa.ChunkedArray) -> list[Any]:
    """Each row's list as a view: vectors are never Python objects, which would take eight times the memory."""
    lists = column.combine_chunks()
    return np.split(lists.values.to_numpy(), lists.offsets.to_numpy()[1:-1])
