"""Second looks at candidates: a score for each document, and the sigmoid that makes it a probability of relevance."""

import importlib
import math
from collections.abc import Sequence
from typing import Any, Protocol

from rag_arena.embedders import Embedder
from rag_arena.params import Reranker as RerankerParams
from rag_arena.params import Sigmoid, Transport

_KINDS = {"maxsim": "MaxSim", "cross_encoder": "CrossEncoder", "http": "Http"}


class Reranker(Protocol):
    """Scores documents against a query."""

    def scores(self, query: str, documents: Sequence[str]) -> list[float]:
        """The score of each document, on the reranker's own scale; higher is more relevant."""


def load(params: RerankerParams, embedder: Embedder, transport: Transport | None = None) -> Reranker:
    """The reranker that the parameters name. `transport` is how its requests travel, if it is one over HTTP."""
    needed: dict[str, tuple[Any, ...]] = {"maxsim": (embedder,), "cross_encoder": (params,), "http": (params, transport)}
    module = importlib.import_module(f"{__name__}.{params.kind}")
    reranker: Reranker = getattr(module, _KINDS[params.kind])(*needed[params.kind])
    return reranker


def probability(score: float, sigmoid: Sigmoid) -> float:
    """1 / (1 + exp(-(score - tau) / temperature)), without overflow."""
    x = (score - sigmoid.tau) / sigmoid.temperature
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))
