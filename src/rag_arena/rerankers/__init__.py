"""Second looks at candidates: a score for each document, and the sigmoid that makes it a probability of relevance."""

import importlib
import math
from collections.abc import Sequence
from typing import Protocol

from rag_arena.embedders import Embedder
from rag_arena.params import Reranker as RerankerParams
from rag_arena.params import Sigmoid

_KINDS = {"maxsim": "MaxSim", "cross_encoder": "CrossEncoder", "http": "Http"}


class Reranker(Protocol):
    """Scores documents against a query."""

    def scores(self, query: str, documents: Sequence[str]) -> list[float]:
        """The score of each document, on the reranker's own scale; higher is more relevant."""


def load(params: RerankerParams, embedder: Embedder) -> Reranker:
    """The reranker that the parameters name."""
    module = importlib.import_module(f"{__name__}.{params.kind}")
    reranker: Reranker = getattr(module, _KINDS[params.kind])(embedder if params.kind == "maxsim" else params)
    return reranker


def probability(score: float, sigmoid: Sigmoid) -> float:
    """1 / (1 + exp(-(score - tau) / temperature)), without overflow."""
    x = (score - sigmoid.tau) / sigmoid.temperature
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))
