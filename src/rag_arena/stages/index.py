"""index: dense and sparse vectors of every document."""

import hashlib
from typing import Any

import numpy as np
import pyarrow as pa

from rag_arena import artifacts, embedders
from rag_arena.params import Embedder as EmbedderParams
from rag_arena.progress import track


def index(corpus: pa.Table, params: EmbedderParams, previous: pa.Table | None) -> pa.Table:
    """Vectors of the corpus.

    Args:
        corpus: the corpus artifact.
        params: the embedder.
        previous: an earlier index; a document whose text is unchanged keeps its vectors if the embedder is the same.
    """
    embedder = embedders.load(params)
    known: dict[str, dict[str, Any]] = {}
    if previous is not None and (previous.schema.metadata or {}).get(b"arena.embedder", b"").decode() == embedder.identity:
        known = {digest: _vectors(previous, row) for row, digest in enumerate(previous["text_sha256"].to_pylist())}
    rows = []
    for document in track("index", artifacts.documents(corpus).values(), corpus.num_rows):
        text = document.full_text
        digest = hashlib.sha256(text.encode()).hexdigest()
        if digest not in known:
            sparse = embedder.sparse_document(text)
            known[digest] = {
                "dense": embedder.dense(text),
                "sparse_indices": np.array(sparse.indices, np.uint32),
                "sparse_values": np.array(sparse.values, np.float32),
            }
        rows.append({"doc_id": document.doc_id, "text_sha256": digest, **known[digest]})
    return artifacts.table(artifacts.INDEX, rows, {"arena.embedder": embedder.identity})


def _vectors(index: pa.Table, row: int) -> dict[str, Any]:
    """One document's vectors as arrays: as Python objects they would take eight times the memory."""
    return {column: index[column][row].values.to_numpy() for column in ("dense", "sparse_indices", "sparse_values")}
