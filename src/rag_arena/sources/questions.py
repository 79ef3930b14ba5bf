"""Questions from a table of the user's own. Gold documents are optional."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rag_arena.errors import ArenaError
from rag_arena.params import Tables
from rag_arena.sources import sheet
from rag_arena.sources.fields import Fields, cell, no_column
from rag_arena.sources.table import Ids, not_empty, type_named

_HOLDS = ("question_id", "question", "answer", "aliases", "gold_ids", "question_type")
Known = Mapping[str, Mapping[str, str]]  # metadata by document id


def questions(
    dataset: Tables, known: Known, names: Mapping[str, str] | None = None, filter_by: Sequence[str] = ()
) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    """Rows of the questions, and what a user should know of their file.

    Args:
        dataset: where they are, and in which columns.
        known: the documents.
        names: what else documents are called, each with its id.
        filter_by: columns in which a document must agree with a question to be found by it.

    Raises:
        ArenaError: naming file, row and column.
    """
    path = Path(dataset.path, dataset.questions)
    found = sheet.read(path, dataset.delimiter, {*dataset.columns.model_dump().values(), *filter_by})
    not_empty(found.rows, "questions", path)
    for column in filter_by:
        if column not in found.columns:
            raise no_column(found, column, "dataset.filter_by")
    fields, ids = Fields(found, dataset.columns, _HOLDS, dataset.list_separator), Ids("question")
    values = {column: {metadata.get(column) for metadata in known.values()} for column in sorted(filter_by)}
    rows = []
    for number, (where, row) in enumerate(found.rows, 1):
        question_id = fields.id("question_id", row, where) if fields.has("question_id") else str(number)
        named = fields.maybe("question_type", row, where).strip()
        agree = {column: cell(row, column, where).strip() for column in values}
        for column, value in agree.items():
            if not value:
                raise ArenaError(f"{where}: column {column!r} is empty, so that the question would find nothing")
            if value not in values[column]:
                raise ArenaError(f"{where}: column {column!r} is {value!r}, which no document has")
        gold = list(dict.fromkeys((names or {}).get(item, item) for item in fields.ids("gold_ids", row, where)))
        _check_gold(gold, known, agree, where)
        rows.append(
            {
                "question_id": ids.new(question_id, where),
                "question": fields.text("question", row, where),
                "answer": fields.text("answer", row, where),
                "aliases": fields.items("aliases", row, where),
                "question_type": type_named(named, where) if named else dataset.question_type,
                "gold_ids": gold,
                "decomposition": [],
                "where": agree,
            }
        )
    return rows, found.notes


def _check_gold(gold: Sequence[str], known: Known, agree: Mapping[str, str], where: str) -> None:
    """Gold documents must exist, and be among those that their question may find."""
    for doc_id in gold:
        if doc_id not in known:
            raise ArenaError(f"{where}: gold document {doc_id!r} is not among the documents{_separated(doc_id, known)}")
        for column, value in agree.items():
            if known[doc_id].get(column) != value:
                raise ArenaError(
                    f"{where}: gold document {doc_id!r} does not agree in {column!r}; dataset.filter_by would hide it"
                )


def _separated(doc_id: str, known: Known) -> str:
    """The end of a message about what is no id, if it is several with another separator between them."""
    for mark in ",;|":
        if mark in doc_id and all(part.strip() in known for part in doc_id.split(mark)):
            return f"; it is several with {mark!r} between them: set dataset.list_separator"
    return ""
