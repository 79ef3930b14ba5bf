"""bge-m3 through FlagEmbedding: dense vectors and lexical weights of a text in one pass (Chen et al. 2024, arXiv:2402.03216).

Torch computes texts side by side, and in its last bits a vector depends on its neighbours: documents are embedded in fixed
groups, queries one by one. Lexical weights are learnt: the score of the sparse lane is their plain product (section 3.2).
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from rag_arena.embedders import Embedded, Floats, Weights, unit
from rag_arena.embedders.checkpoints import Folder
from rag_arena.errors import ArenaError
from rag_arena.llm.ledger import canonical
from rag_arena.params import FlagEmbedder

_BATCHES = 8  # of a group; FlagEmbedding computes the first batch of each call twice
_REMEMBERED = 4096  # queries


class Flag:
    """An embedder of bge-m3's layout."""

    alone = False
    idf = False

    def __init__(self, params: FlagEmbedder) -> None:
        self._params = params
        self._folder = Folder(params, "embedder", ("sparse_linear.pt", "colbert_linear.pt"))
        self.group_size = _BATCHES * params.batch_size
        self.identity = canonical({"kind": params.kind, **self._folder.identity()})
        self._query = lru_cache(_REMEMBERED)(lambda text: self._embedded([text])[0])

    def documents(self, groups: Iterable[Sequence[str]]) -> Iterator[list[Embedded]]:
        """Group by group."""
        return map(self._embedded, groups)

    def prepare(self, queries: Sequence[str]) -> None:
        """Nothing: queries are embedded one by one."""

    def dense(self, text: str) -> Floats:
        """The first token's last hidden state, normalised: shape (1024,) for bge-m3."""
        vector: Floats = self._query(text).dense
        return vector

    def sparse_query(self, text: str) -> Any:
        """The learnt weight of each token; the largest where it occurs more than once."""
        return self._query(text).sparse

    def tokens(self, text: str) -> Floats:
        """The model's own vectors for late interaction, all but the first token's: shape (n, 1024) for bge-m3."""
        return unit(np.asarray(self._encoded([text], return_colbert_vecs=True)["colbert_vecs"][0], np.float32))

    def _embedded(self, texts: Sequence[str]) -> list[Embedded]:
        found = self._encoded(texts, return_dense=True, return_sparse=True)
        dense = np.asarray(found["dense_vecs"], np.float32)
        for text, vector in zip(texts, dense, strict=True):
            if not np.isfinite(vector).all():
                raise ArenaError(f"{self._folder.path}: gives no finite vector for {text[:40]!r}; set embedder.use_fp16 to false")
        return [Embedded(v, _weights(w)) for v, w in zip(dense, found["lexical_weights"], strict=True)]

    def _encoded(self, texts: Sequence[str], **wanted: bool) -> Any:
        params, model = self._params, self._model
        asked = {"return_dense": False, "return_sparse": False, "return_colbert_vecs": False, **wanted}
        with self._folder.computing(texts):
            return model.encode(list(texts), batch_size=params.batch_size, max_length=params.max_tokens, **asked)

    @cached_property
    def _model(self) -> Any:
        with self._folder.loading():
            from FlagEmbedding import BGEM3FlagModel

            params = self._params
            return BGEM3FlagModel(str(self._folder.path), use_fp16=params.use_fp16, devices=params.device)


def _weights(weights: dict[str, Any]) -> Weights:
    """By token id, so that equal texts have equal lists."""
    ordered = sorted((int(token), float(weight)) for token, weight in weights.items())
    return Weights([token for token, _ in ordered], [weight for _, weight in ordered])
