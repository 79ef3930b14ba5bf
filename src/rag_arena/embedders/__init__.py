"""Texts to vectors. `load` is the only way in; each kind of embedder lives in its own module and is imported on demand."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from rag_arena.params import Embedder as EmbedderParams

Floats = NDArray[np.float32]


def cosines(vectors: Floats, query: Floats) -> list[float]:
    """Dot product of each row with the query; a row's own, to the last bit, whatever rows stand beside it (BLAS's is not)."""
    found: list[float] = np.multiply(vectors, query, dtype=np.float64).sum(axis=1).tolist()
    return found


class Sparse(Protocol):
    """Lexical weights: parallel lists of dimension and weight."""

    indices: list[int]
    values: list[float]


class Embedder(Protocol):
    """Dense, sparse and token vectors of one text at a time, each a function of that text alone."""

    identity: str

    def dense(self, text: str) -> Floats:
        """Unit vector, shape (d,)."""

    def tokens(self, text: str) -> Floats:
        """Unit vectors of the text's tokens, shape (n, d)."""

    def sparse_document(self, text: str) -> Sparse:
        """Lexical weights of a document."""

    def sparse_query(self, text: str) -> Sparse:
        """Lexical weights of a query."""


def load(params: EmbedderParams) -> Embedder:
    """The embedder that the parameters name."""
    from rag_arena.embedders.minilm import MiniLm

    return MiniLm(params)
