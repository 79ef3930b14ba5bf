"""Late interaction over the embedder's token vectors (Khattab and Zaharia 2020, ColBERT, section 3.3).

Not a cross-encoder: query and document never meet inside a model. The score is the mean over the query's tokens of the best
cosine among the document's tokens.
"""

from collections.abc import Sequence
from functools import lru_cache

from rag_arena.embedders import Embedder, Floats

_KEPT = 1000  # documents; at 256 tokens of 384 dimensions 0.4 GB


class MaxSim:
    """Scores documents by late interaction; keeps the token vectors of the last documents it has seen."""

    def __init__(self, embedder: Embedder) -> None:
        self._query_tokens = embedder.tokens
        self._tokens = lru_cache(_KEPT)(embedder.tokens)

    def scores(self, query: str, documents: Sequence[str]) -> list[float]:
        """Mean best cosine per query token, in [-1, 1], of each document."""
        tokens = self._query_tokens(query)
        return [max_sim(tokens, self._tokens(document)) for document in documents]


def max_sim(query: Floats, document: Floats) -> float:
    """Mean over query rows of the largest dot product with a document row; both (n, d) with unit rows."""
    return float((query @ document.T).max(axis=1).mean())
