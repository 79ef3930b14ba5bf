"""data/labels.csv: what a user says of documents that retrieval found, completing or overriding the dataset's gold documents.

One row per question and document; `label` is yes (the document holds evidence for the answer), no, or empty (not looked at yet).
"""

import csv
import io
from collections.abc import Collection, Iterable, Mapping
from dataclasses import astuple, dataclass, fields
from pathlib import Path

from rag_arena.errors import ArenaError

_VERDICTS: Mapping[str, bool | None] = {"yes": True, "no": False, "": None}


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the sheet, as it is written."""

    question_id: str
    doc_id: str
    question: str
    title: str
    score: str
    label: str = ""

    @property
    def verdict(self) -> bool | None:
        """Whether the document holds evidence; None where nobody has said."""
        return _VERDICTS[self.label.strip().lower()]


COLUMNS = tuple(field.name for field in fields(Row))


def read(path: Path) -> list[Row]:
    """The rows of a sheet.

    Raises:
        ArenaError: naming file and line: another header, a missing column, a label that is neither yes, no nor empty, or a pair
            that stands there twice.
    """
    try:
        lines = list(csv.reader(io.StringIO(path.read_text(encoding="utf-8-sig")), strict=True))
    except FileNotFoundError as error:
        raise ArenaError(f"{path}: missing; make it with the line {','.join(COLUMNS)}") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise ArenaError(f"{path}: not CSV in UTF-8 ({error}); save it as such") from error
    if not lines or tuple(lines[0]) != COLUMNS:
        raise ArenaError(f"{path}: must begin with the line {','.join(COLUMNS)}")
    rows: list[Row] = []
    seen: set[tuple[str, str]] = set()
    for number, line in enumerate(lines[1:], 2):
        if not line:
            continue
        if len(line) != len(COLUMNS):
            raise ArenaError(f"{path} row {number}: has {len(line)} columns instead of {len(COLUMNS)}")
        row = Row(*line)
        if row.label.strip().lower() not in _VERDICTS:
            raise ArenaError(f"{path} row {number}: label {row.label!r} must be yes, no or empty")
        if (row.question_id, row.doc_id) in seen:
            raise ArenaError(f"{path} row {number}: question {row.question_id} and document {row.doc_id} stand there twice")
        seen.add((row.question_id, row.doc_id))
        rows.append(row)
    return rows


def check(path: Path, rows: Iterable[Row], question_ids: Collection[str], doc_ids: Collection[str]) -> None:
    """Hold what is labelled against a dataset.

    Raises:
        ArenaError: a label is of a question or a document that the dataset does not have.
    """
    for row in rows:
        for kind, name, known in (("question", row.question_id, question_ids), ("document", row.doc_id, doc_ids)):
            if row.verdict is not None and name not in known:
                raise ArenaError(f"{path}: labels {kind} {name!r}, which the dataset does not have; delete the row")


def text(rows: Iterable[Row]) -> str:
    """A sheet as CSV."""
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(astuple(row) for row in rows)
    return written.getvalue()


def merged(old: Iterable[Row], new: Iterable[Row]) -> list[Row]:
    """The old rows as they are, then those of the new that are not among them."""
    kept = list(old)
    there = {(row.question_id, row.doc_id) for row in kept}
    return [*kept, *(row for row in new if (row.question_id, row.doc_id) not in there)]
