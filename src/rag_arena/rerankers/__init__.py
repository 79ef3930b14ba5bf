"""Second looks at candidates: a probability of relevance for each document."""

from collections.abc import Sequence
from typing import Protocol

from rag_arena.embedders import Embedder
from rag_arena.params import Reranker as RerankerParams


class Reranker(Protocol):
    """Scores documents against a query."""

    def relevance(self, query: str, documents: Sequence[str]) -> list[float]:
        """Probability of relevance, in [0, 1], of each document."""


def load(params: RerankerParams, embedder: Embedder) -> Reranker:
    """The reranker that the parameters name."""
    from rag_arena.rerankers.maxsim import MaxSim

    return MaxSim(embedder, params.tau, params.temperature)
