"""One loader per kind of dataset; each yields the same two tables, corpus and questions."""

import importlib
from dataclasses import replace
from typing import Protocol, cast

from rag_arena.params import Dataset
from rag_arena.sources.chunks import chunked
from rag_arena.sources.table import Loaded

_MODULES = {"2wikimultihopqa": "hotpotqa"}  # a kind's loader is the module of its name, but for these


class _Loader(Protocol):
    def check(self, dataset: Dataset, /) -> None: ...
    def load(self, dataset: Dataset, /) -> Loaded: ...


def check(dataset: Dataset) -> None:
    """Is everything there that will be read?

    Raises:
        ArenaError: a file is missing, or a folder stands in its place.
    """
    _loader(dataset).check(dataset)


def load(dataset: Dataset) -> Loaded:
    """The rows of both tables, documents cut into chunks if so asked, and the supporting facts that fit no document.

    Raises:
        ArenaError: naming file and row, as the loader of the dataset's kind says.
    """
    loaded = _loader(dataset).load(dataset)
    return replace(loaded, corpus=chunked(loaded.corpus, dataset.chunking)) if dataset.chunking else loaded


def _loader(dataset: Dataset) -> _Loader:
    return cast(_Loader, importlib.import_module(f"rag_arena.sources.{_MODULES.get(dataset.kind, dataset.kind)}"))
