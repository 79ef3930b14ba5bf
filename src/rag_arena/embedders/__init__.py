"""Texts to vectors. `load` is the only way in; each kind of embedder lives in its own module and is imported on demand."""

import importlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from rag_arena.params import Embedder as EmbedderParams
from rag_arena.params import Transport

Floats = NDArray[np.float32]
_KINDS = {"minilm": "MiniLm", "flag": "Flag", "http": "Http"}


def cosines(vectors: Floats, query: Floats) -> list[float]:
    """Dot product of each row with the query; a row's own, to the last bit, whatever rows stand beside it (BLAS's is not)."""
    found: list[float] = np.multiply(vectors, query, dtype=np.float64).sum(axis=1).tolist()
    return found


def unit(vectors: Floats) -> Floats:
    """Rows (or one vector) at length one."""
    norms = np.linalg.norm(vectors, axis=-1, keepdims=True)
    scaled: Floats = (vectors / np.maximum(norms, 1e-12)).astype(np.float32)
    return scaled


class Sparse(Protocol):
    """Lexical weights: parallel lists of dimension and weight."""

    @property
    def indices(self) -> list[int]:
        """Dimensions."""

    @property
    def values(self) -> list[float]:
        """Weights."""


@dataclass(frozen=True, slots=True)
class Weights:
    """Lexical weights that a model computed."""

    indices: list[int]
    values: list[float]


@dataclass(frozen=True, slots=True)
class Embedded:
    """A document's vectors."""

    dense: Floats
    sparse: Sparse


class Embedder(Protocol):
    """Dense and sparse vectors of texts, and vectors of their tokens.

    `identity`: everything that can change a vector. `alone`: whether a document's vectors depend on its text alone; else, in
    their last bits, also on the texts of its group, so that `documents` must always be given the same groups. `group_size`: how
    many texts a group should have. `idf`: whether the store is to weigh a query's terms by inverse document frequency.
    """

    identity: str
    alone: bool
    group_size: int
    idf: bool

    def documents(self, groups: Iterable[Sequence[str]]) -> Iterator[list[Embedded]]:
        """The vectors of each group's texts, group by group."""

    def prepare(self, queries: Sequence[str]) -> None:
        """Make ready for many queries, where that is faster together."""

    def dense(self, text: str) -> Floats:
        """Unit vector of a query, shape (d,); a function of its text alone."""

    def sparse_query(self, text: str) -> Sparse:
        """Lexical weights of a query."""

    def tokens(self, text: str) -> Floats:
        """Unit vectors of the text's tokens, shape (n, d). An embedder over HTTP has none."""


def load(params: EmbedderParams, transport: Transport | None = None) -> Embedder:
    """The embedder that the parameters name. `transport` is how its requests travel, if it is one over HTTP."""
    module = importlib.import_module(f"{__name__}.{params.kind}")
    embedder: Embedder = getattr(module, _KINDS[params.kind])(params, *([transport] if params.kind == "http" else []))
    return embedder
