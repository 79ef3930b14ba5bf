"""A rerank endpoint: TEI's shape, or the one that vLLM, Jina and Cohere share. Replies are kept in the ledger and replayed.

TEI takes `texts` and answers with a list of {index, score}; the others take `documents` and a model, and answer with
{results: [{index, relevance_score}]}. Either reply is read.
"""

import math
from collections.abc import Sequence
from typing import Any

from rag_arena.llm.served import ServedModel
from rag_arena.params import HttpReranker, Transport

_NEAREST = 2.0**-24  # to 0 and 1: what a probability in single precision can still tell from them


class Http:
    """A cross-encoder behind an endpoint."""

    def __init__(self, params: HttpReranker, transport: Transport, recorded: bool = True) -> None:
        self._params = params
        self._recorded = recorded  # else the server is always asked
        self._model = ServedModel(params, transport, "reranker", "/rerank", "documents_key", "scores")

    def scores(self, query: str, documents: Sequence[str]) -> list[float]:
        """A logit per document."""
        size = self._params.batch_size
        return [score for at in range(0, len(documents), size) for score in self._ask(query, documents[at : at + size])]

    def _ask(self, query: str, documents: Sequence[str]) -> list[float]:
        params = self._params
        body: dict[str, Any] = {
            "query": query[: params.max_characters],
            params.documents_key: [document[: params.max_characters] for document in documents],
        }
        if params.documents_key == "texts":
            body |= {"raw_scores": params.scores == "logits", "truncate": True}
        else:
            body |= {"model": params.model, "top_n": len(documents)}

        def read(reply: Any) -> list[float]:
            return _scores(reply, len(documents), params.scores)

        scores: list[float] = self._model.ask(body, read) if self._recorded else next(self._model.ask_all([(body, read)]))
        return scores if params.scores == "logits" else [logit(score) for score in scores]


def logit(probability: float) -> float:
    """ln(p / (1 - p)), the inverse of the sigmoid; 0 and 1 are taken as the nearest that a server can tell from them."""
    p = min(max(probability, _NEAREST), 1 - _NEAREST)
    return math.log(p / (1 - p))


def _scores(reply: Any, count: int, scale: str) -> list[float]:
    """Scores in the order of the documents.

    Raises:
        ValueError: a document has no score or several, or a score is no number or no probability.
        LookupError, TypeError: the reply has another shape.
    """
    rows = sorted(reply if isinstance(reply, list) else reply["results"], key=lambda row: row["index"])
    if [row["index"] for row in rows] != list(range(count)):
        raise ValueError(f"{len(rows)} scores for {count} documents, or not one for each")
    scores = [float(row["score"] if "score" in row else row["relevance_score"]) for row in rows]
    if not all(map(math.isfinite, scores)):
        raise ValueError("a score that is not finite")
    if scale == "probabilities" and not all(0 <= score <= 1 for score in scores):
        raise ValueError(f"{max(scores, key=abs):g} is no probability; set reranker.scores to logits")
    return scores
