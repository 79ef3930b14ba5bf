"""bge-reranker-v2-m3, or another cross-encoder of its layout, through FlagEmbedding: question and text meet inside the model.

The score is the model's logit. Torch computes pairs side by side, so that with a batch_size over 1 a score depends on its
neighbours in the last bits; candidates always come in the same order.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from rag_arena.embedders.checkpoints import Folder
from rag_arena.errors import ArenaError
from rag_arena.params import CrossEncoderReranker


class CrossEncoder:
    """Scores documents by a cross-encoder."""

    def __init__(self, params: CrossEncoderReranker) -> None:
        self._params = params
        self._folder = Folder(params, "reranker")

    def scores(self, query: str, documents: Sequence[str]) -> list[float]:
        """A logit per document."""
        if not documents:
            return []
        params, model = self._params, self._model
        with self._folder.computing([query, *documents]):
            pairs = [(query, document) for document in documents]
            scores: list[float] = model.compute_score(pairs, batch_size=params.batch_size, max_length=params.max_tokens)
        if not np.isfinite(scores).all():
            raise ArenaError(f"{self._folder.path}: gives no finite score for {query[:40]!r}; set reranker.use_fp16 to false")
        return scores

    @cached_property
    def _model(self) -> Any:
        with self._folder.loading():
            from FlagEmbedding import FlagReranker

            loaded = FlagReranker(str(self._folder.path), use_fp16=self._params.use_fp16, devices=self._params.device)
        if (labels := loaded.model.config.num_labels) != 1:
            raise ArenaError(f"{self._folder.path}: has {labels} labels; reranker.model must name a model with one")
        return loaded
