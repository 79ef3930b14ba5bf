"""index: dense and sparse vectors of every document."""

import hashlib
from typing import Any

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
        known = {row["text_sha256"]: row for row in previous.to_pylist()}
    rows = []
    for document in track("index", artifacts.documents(corpus).values(), corpus.num_rows):
        text = document.full_text
        digest = hashlib.sha256(text.encode()).hexdigest()
        if digest not in known:
            sparse = embedder.sparse_document(text)
            known[digest] = {
                "text_sha256": digest,
                "dense": embedder.dense(text).tolist(),
                "sparse_indices": list(sparse.indices),
                "sparse_values": list(sparse.values),
            }
        rows.append({**known[digest], "doc_id": document.doc_id})
    return artifacts.table(artifacts.INDEX, rows, {"arena.embedder": embedder.identity})
