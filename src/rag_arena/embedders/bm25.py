"""BM25 term weights, for embedders whose model has no lexical weights of its own (Robertson and Zaragoza 2009, section 3.4)."""

import importlib.metadata
from functools import cached_property
from typing import Any

from rag_arena.params import Bm25 as Bm25Params


class Bm25:
    """Weights of documents' and queries' terms; the store multiplies them by inverse document frequency."""

    def __init__(self, params: Bm25Params) -> None:
        self._params = params
        version = importlib.metadata.version("qdrant-edge-py")
        self.identity = [f"qdrant-edge-py {version}", params.k, params.b, params.average_words]

    def document(self, text: str) -> Any:
        """Saturated term frequencies, normalised by length."""
        return self._weights.embed_document(text)

    def query(self, text: str) -> Any:
        """One per term."""
        return self._weights.embed_query(text)

    @cached_property
    def _weights(self) -> Any:
        import qdrant_edge

        params = self._params
        return qdrant_edge.Bm25(qdrant_edge.Bm25Config(k=params.k, b=params.b, avg_len=params.average_words))
