"""download: a dataset's files to the corpus and questions tables."""

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from rag_arena import artifacts, sources
from rag_arena.llm.lookups import Lookups
from rag_arena.params import Dataset
from rag_arena.records import document_of
from rag_arena.wording import count


@dataclass(frozen=True, slots=True)
class Downloaded:
    """Both tables, the supporting facts that fit no document and what else a user should know, one line each."""

    corpus: pa.Table
    questions: pa.Table
    unresolved: list[str]
    notes: list[str]

    @property
    def size(self) -> str:
        """How much there is, as `2 documents, 1 question` or `9 chunks of 2 documents, 1 question`."""
        documents = len({document_of(doc_id) for doc_id in self.corpus["doc_id"].to_pylist()})
        chunks = f"{count(self.corpus.num_rows, 'chunk')} of " if documents < self.corpus.num_rows else ""
        return f"{chunks}{count(documents, 'document')}, {count(self.questions.num_rows, 'question')}"


def download(dataset: Dataset, lookups: Callable[[], Lookups] | None = None) -> Downloaded:
    """Read a dataset.

    Raises:
        ArenaError: as `sources.load`.
    """
    loaded = sources.load(dataset, lookups)
    note = {"arena.dataset": dataset.name, "arena.kind": dataset.kind, "arena.licence": dataset.licence}
    if loaded.source:
        note["arena.source"] = loaded.source
    corpus = artifacts.table(artifacts.CORPUS, ({"metadata": (), **row} for row in loaded.corpus), note)
    questions = artifacts.table(artifacts.QUESTIONS, ({"where": (), "origin": None, **row} for row in loaded.questions), note)
    return Downloaded(corpus, questions, loaded.unresolved, loaded.notes)
