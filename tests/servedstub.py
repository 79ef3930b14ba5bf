"""Replies of embedding and rerank servers, for the stub server to send."""

import hashlib
import math
from collections.abc import Sequence
from typing import Any

from rag_arena.params import Transport
from tests.stub import Answer, Body, sensible, with_json

DIMENSIONS = 8
TRANSPORT = Transport(max_concurrency=2, deadline_s=0.5, max_retries=0)


def vector(text: str) -> list[float]:
    """A text's vector, of any length but one."""
    return [byte / 16 + 0.25 for byte in hashlib.sha256(text.encode()).digest()[:DIMENSIONS]]


def embeddings(body: Body, vectors: Sequence[Any] | None = None) -> Answer:
    """As POST /v1/embeddings replies, last text first: servers need not keep the order, and `index` tells it."""
    rows = [
        {"object": "embedding", "index": at, "embedding": each}
        for at, each in enumerate(map(vector, body["input"]) if vectors is None else vectors)
    ]
    usage = {"prompt_tokens": sum(len(text.split()) for text in body["input"]), "total_tokens": 99}
    return with_json({"object": "list", "model": body["model"], "data": rows[::-1], "usage": usage})


def logit(query: str, text: str) -> float:
    """Words that a text shares with the question, less one and a half."""
    return len(set(query.lower().split()) & set(text.lower().split())) - 1.5


def tei(body: Body) -> Answer:
    """As POST /rerank of Text Embeddings Inference replies: a list, best first; probabilities unless raw scores are asked for."""
    scores = [logit(body["query"], text) for text in body["texts"]]
    if not body.get("raw_scores"):
        scores = [_probability(score) for score in scores]
    return with_json(sorted(({"index": at, "score": score} for at, score in enumerate(scores)), key=lambda row: -row["score"]))


def cohere(body: Body) -> Answer:
    """As POST /v1/rerank of Cohere, Jina and vLLM replies: the best `top_n` under `results`, best first, as probabilities."""
    rows = [
        {"index": at, "document": {"text": text}, "relevance_score": _probability(logit(body["query"], text))}
        for at, text in enumerate(body["documents"])
    ]
    best = sorted(rows, key=lambda row: -row["relevance_score"])[: body["top_n"]]
    return with_json({"id": "rerank-1", "model": body["model"], "usage": {"total_tokens": 20}, "results": best})


def _probability(score: float) -> float:
    return 1 / (1 + math.exp(-score))


def served(body: Body) -> Answer:
    """A server of embeddings, of TEI's reranking and of chat."""
    return embeddings(body) if "input" in body else tei(body) if "texts" in body else sensible(body)


def served_embedder(url: str, **changes: Any) -> dict[str, Any]:
    """The embedder section of params.yaml for the stub."""
    settings = {
        "kind": "http",
        "base_url": url,
        "model": "stub-embedder",
        "dimensions": DIMENSIONS,
        "send_dimensions": False,
        "api_key_env": "",
        "query_prefix": "",
        "document_prefix": "",
        "max_characters": 1000,
        "batch_size": 2,
        "bm25": {"k": 1.2, "b": 0.75, "average_words": 256.0},
    }
    return settings | changes


def served_reranker(url: str, **changes: Any) -> dict[str, Any]:
    """The reranker section of params.yaml for the stub."""
    settings = {
        "kind": "http",
        "base_url": url.removesuffix("/v1"),
        "model": "stub-reranker",
        "api_key_env": "",
        "documents_key": "texts",
        "scores": "logits",
        "max_characters": 1000,
        "batch_size": 32,
        "tau": 0.0,
        "temperature": 1.0,
    }
    return settings | changes
