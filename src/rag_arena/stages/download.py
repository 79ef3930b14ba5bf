"""download: a dataset's files to the corpus and questions tables."""

import pyarrow as pa

from rag_arena import artifacts, sources
from rag_arena.params import Dataset


def download(dataset: Dataset) -> tuple[pa.Table, pa.Table, list[str]]:
    """Corpus, questions, and the supporting facts that fit no document, one line each."""
    loaded = sources.load(dataset)
    note = {"arena.dataset": dataset.name, "arena.licence": dataset.licence}
    corpus = artifacts.table(artifacts.CORPUS, ({"metadata": (), **row} for row in loaded.corpus), note)
    questions = artifacts.table(artifacts.QUESTIONS, ({"where": (), **row} for row in loaded.questions), note)
    return corpus, questions, loaded.unresolved
