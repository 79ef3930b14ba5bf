"""Two tables of the user's own, documents and questions, with metadata that questions may be held to."""

from pathlib import Path
from typing import Any

from rag_arena.params import Local
from rag_arena.sources import sheet
from rag_arena.sources.fields import Fields, cell, no_column
from rag_arena.sources.questions import questions
from rag_arena.sources.table import Ids, Loaded, not_empty

_HOLDS = ("doc_id", "title", "text")


def check(dataset: Local) -> None:
    """Are both files there, under suffixes that tell how to read them?

    Raises:
        ArenaError: one is not.
    """
    for key in ("documents", "questions"):
        sheet.check(Path(dataset.path, getattr(dataset, key)), f"dataset.path and dataset.{key} name it")


def load(dataset: Local) -> Loaded:
    """Read both files.

    Raises:
        ArenaError: naming file, row and column.
    """
    check(dataset)
    corpus, notes = _documents(dataset)
    known = {row["doc_id"]: row["metadata"] for row in corpus}
    asked, more = questions(dataset, known, filter_by=dataset.filter_by)
    return Loaded(corpus, asked, [], [*notes, *more])


def _documents(dataset: Local) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    path = Path(dataset.path, dataset.documents)
    kept = sorted({*dataset.metadata, *dataset.filter_by})
    found = sheet.read(path, dataset.delimiter, {*dataset.columns.model_dump().values(), *kept})
    not_empty(found.rows, "documents", path)
    fields = Fields(found, dataset.columns, _HOLDS, dataset.list_separator)
    for key in ("metadata", "filter_by"):
        for column in getattr(dataset, key):
            if column not in found.columns:
                raise no_column(found, column, f"dataset.{key}")
    ids = Ids("document")
    rows = [
        {
            "doc_id": ids.new(fields.id("doc_id", row, where) if fields.has("doc_id") else str(number), where),
            "title": fields.maybe("title", row, where).strip(),
            "text": fields.text("text", row, where),
            "metadata": {column: value for column in kept if (value := cell(row, column, where).strip())},
        }
        for number, (where, row) in enumerate(found.rows, 1)
    ]
    return rows, found.notes
