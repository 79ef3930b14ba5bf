"""index: dense and sparse vectors of every document."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from rag_arena import artifacts, embedders
from rag_arena.artifacts import Parts
from rag_arena.embedders import Embedded, Embedder
from rag_arena.embedders.groups import groups
from rag_arena.params import Embedder as EmbedderParams
from rag_arena.params import Transport
from rag_arena.progress import bar

_VECTORS = ("dense", "sparse_indices", "sparse_values")
Rows = dict[str, dict[str, Any]]  # of the vectors artifact, by the text's digest


def index(
    corpus: pa.Table,
    params: EmbedderParams,
    previous: pa.Table | None,
    parts: Parts | None = None,
    transport: Transport | None = None,
) -> pa.Table:
    """Vectors of the corpus.

    Whatever is taken from an earlier build, the result is that of a build from scratch.

    Args:
        corpus: the corpus artifact.
        params: the embedder.
        previous: an earlier index; a document whose text is unchanged keeps its vectors if the embedder is the same (and, where
            vectors depend on the texts they were computed with, its whole group is unchanged).
        parts: where groups are kept as they are computed, and found again after a run that was stopped; None: nowhere.
        transport: how requests travel, if the embedder is one over HTTP.
    """
    embedder = embedders.load(params, transport)
    documents = list(artifacts.documents(corpus).values())
    digests = [hashlib.sha256(document.full_text.encode()).hexdigest() for document in documents]
    texts = {digest: document.full_text for digest, document in zip(digests, documents, strict=True)}
    grouped = groups(texts, embedder.group_size)
    with bar("index", len(texts)) as advance:
        known = _unchanged(previous, grouped, embedder)
        advance(len(known))
        missing = [lacking for group in grouped if (lacking := [digest for digest in group if digest not in known])]
        for rows in _computed(missing, texts, embedder, parts):
            known |= rows
            advance(len(rows))
    indexed = [{**known[digest], "doc_id": document.doc_id} for digest, document in zip(digests, documents, strict=True)]
    return artifacts.table(artifacts.INDEX, indexed, {"arena.embedder": embedder.identity})


def _unchanged(previous: pa.Table | None, grouped: Sequence[Sequence[str]], embedder: Embedder) -> Rows:
    """Rows of an earlier index that a build from scratch would give too."""
    if previous is None or (previous.schema.metadata or {}).get(b"arena.embedder", b"").decode() != embedder.identity:
        return {}
    known = _rows(previous)
    same = {*map(tuple, grouped)} & {*map(tuple, groups(known, embedder.group_size))}
    kept = {digest for group in same for digest in group}
    wanted = {digest for group in grouped for digest in group}
    return {digest: row for digest, row in known.items() if digest in (wanted if embedder.alone else kept)}


def _computed(
    missing: Sequence[Sequence[str]], texts: Mapping[str, str], embedder: Embedder, parts: Parts | None
) -> Iterator[Rows]:
    """The rows of each group: first those that an earlier run kept, then the others, each kept as soon as it is computed."""
    fresh = []
    for group in missing:
        found = parts.get(_key(group, embedder)) if parts else None
        if found is None:
            fresh.append(group)
        else:
            yield _rows(found)
    vectors = embedder.documents([texts[digest] for digest in group] for group in fresh)
    for group, embedded in zip(fresh, vectors, strict=True):
        rows = {digest: _row(digest, each) for digest, each in zip(group, embedded, strict=True)}
        if parts:
            parts.put(_key(group, embedder), artifacts.table(artifacts.VECTORS, rows.values()))
        yield rows


def _key(group: Sequence[str], embedder: Embedder) -> str:
    return hashlib.sha256("\n".join([embedder.identity, *group]).encode()).hexdigest()


def _row(digest: str, embedded: Embedded) -> dict[str, Any]:
    return {
        "text_sha256": digest,
        "dense": np.asarray(embedded.dense, np.float32),
        "sparse_indices": np.asarray(embedded.sparse.indices, np.uint32),
        "sparse_values": np.asarray(embedded.sparse.values, np.float32),
    }


def _rows(table: pa.Table) -> Rows:
    columns = {name: table[name].combine_chunks() for name in _VECTORS}
    return {
        digest: {"text_sha256": digest, **{name: column[at].values.to_numpy() for name, column in columns.items()}}
        for at, digest in enumerate(table["text_sha256"].to_pylist())
    }
