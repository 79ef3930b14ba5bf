"""One loader per kind of dataset; each yields the same two tables, corpus and questions."""

import importlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Protocol, cast

from rag_arena import layout
from rag_arena.errors import ArenaError
from rag_arena.llm.lookups import Lookups
from rag_arena.params import Dataset, Wikipedia
from rag_arena.sources import wikipedia
from rag_arena.sources.chunks import chunked
from rag_arena.sources.table import Loaded

_MODULES = {"2wikimultihopqa": "hotpotqa"}  # a kind's loader is the module of its name, but for these


class _Loader(Protocol):
    def check(self, dataset: Dataset, /) -> None: ...
    def load(self, dataset: Dataset, /) -> Loaded: ...


def check(dataset: Dataset) -> None:
    """Is everything there that will be read?

    Raises:
        ArenaError: a file is missing, a folder stands in its place, or the dataset's folder holds what is made from it, on which
            no runner could depend.
    """
    if Path(dataset.path).resolve() in layout.CORPUS.resolve().parents:
        raise ArenaError(f"{dataset.path}: holds {layout.CORPUS}, made from it; put the dataset into a folder of its own")
    _loader(dataset).check(dataset)


def load(dataset: Dataset, lookups: Callable[[], Lookups] | None = None) -> Loaded:
    """The rows of both tables, documents cut into chunks if so asked, and the supporting facts that fit no document.

    Args:
        dataset: where they come from.
        lookups: opens what asks servers; needed by kinds that do.

    Raises:
        ArenaError: naming file and row, as the loader of the dataset's kind says.
    """
    if isinstance(dataset, Wikipedia):
        assert lookups is not None
        loaded = wikipedia.load(dataset, lookups())
    else:
        loaded = _loader(dataset).load(dataset)
    return replace(loaded, corpus=chunked(loaded.corpus, dataset.chunking)) if dataset.chunking else loaded


def _loader(dataset: Dataset) -> _Loader:
    return cast(_Loader, importlib.import_module(f"rag_arena.sources.{_MODULES.get(dataset.kind, dataset.kind)}"))
