"""store and retrieval: how documents are found."""

import re
from typing import Literal

from pydantic import Field, model_validator

from rag_arena.errors import ArenaError
from rag_arena.params.nearest import nearest
from rag_arena.params.reranker import Reranker
from rag_arena.params.sections import Positive, Section, Share, Variable

MODES = ("dense", "sparse", "hybrid", "hybrid_rerank")
NO_MODE = "none"


class Store(Section):
    """The vector store that a run fills from the index."""

    backend: Literal["local", "edge", "server"] = Field(
        description="local: qdrant-client in memory; edge: qdrant-edge on disk; server: a Qdrant server"
    )
    url: str = Field("", description="the server's, as http://localhost:6333 (server only)")
    api_key_env: Variable = Field("", description="environment variable that holds its key; empty: none is sent (server only)")
    exact: bool = Field(
        True, description="compare every vector, and build no graph of neighbours; false is faster and approximate (server only)"
    )

    @model_validator(mode="after")
    def _has_one_server_or_none(self) -> "Store":
        if self.backend != "server" and (self.url or self.api_key_env or not self.exact):
            raise ValueError(f"url, api_key_env and exact are a server's; {self.backend} takes none of them")
        if self.backend == "server" and not re.match(r"https?://[^/@]+(/[^@]*)?$", self.url):
            raise ValueError("url must be as http://localhost:6333, without a password; the key goes to api_key_env")
        return self


class Lane(Section):
    """Retrieval by one lane of vectors."""

    candidates: Positive = Field(description="documents kept per question by first-pass retrieval")


class Hybrid(Lane):
    """Dense and sparse lanes fused by reciprocal rank."""

    rrf_constant: Positive = Field(description="c in 1/(c + rank), rank from 1; 60 in the paper")
    fusion: Literal["ours", "qdrant"] = Field(description="who fuses: our deterministic code or Qdrant's RrfQuery")


class HybridRerank(Hybrid):
    """Hybrid candidates reordered; those under the relevance threshold are dropped."""

    relevance_threshold: Share = Field(description="candidates under this probability of relevance are dropped")
    reranker: Reranker


class Retrieval(Section):
    """Settings of each retrieval mode."""

    dense: Lane | None = None
    sparse: Lane | None = None
    hybrid: Hybrid | None = None
    hybrid_rerank: HybridRerank | None = None

    def mode(self, name: str) -> Lane:
        """Settings of one mode.

        Raises:
            ArenaError: the mode is unknown or has no settings.
        """
        if name not in MODES:
            raise ArenaError(f"retrieval mode {name!r} does not exist{nearest(name, MODES)}")
        found = getattr(self, name)
        if found is None:
            chosen = ",".join(mode for mode in MODES if mode == name or getattr(self, mode))
            raise ArenaError(f"params.yaml: retrieval.{name} is not set; `arena compose 'retrieval=[{chosen}]'` sets it")
        settings: Lane = found
        return settings
