"""A table of the user's: JSON, JSON Lines, CSV or Parquet by the file's suffix, its rows with where they stand."""

import csv
import io
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from rag_arena.errors import ArenaError
from rag_arena.sources.files import Row, objects, present, text
from rag_arena.wording import count, first_line

_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_OBJECTS = (".json", ".jsonl", ".ndjson")
SUFFIXES = (*_DELIMITERS, *_OBJECTS, ".parquet")


@dataclass(frozen=True, slots=True)
class Sheet:
    """Rows in the file's order, every column that any of them has, and what a user should know of the file."""

    path: Path
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()

    @property
    def only_texts(self) -> bool:
        """Does its format know nothing but texts?"""
        return self.path.suffix.lower() in _DELIMITERS


def check(path: Path, mend: str) -> None:
    """Is the file there, under a suffix that tells how to read it?

    Raises:
        ArenaError: it is not.
    """
    present(path, mend)
    if path.suffix.lower() not in SUFFIXES:
        raise ArenaError(
            f"{path}: nobody knows how to read {path.suffix or 'a file without a suffix'}; known: {', '.join(SUFFIXES)}"
        )


def read(path: Path, delimiter: str | None, wanted: Collection[str]) -> Sheet:
    """A file as a table.

    Args:
        path: the file.
        delimiter: what stands between the cells of a line of CSV; None: a comma, in .tsv a tab.
        wanted: columns that will be looked at; of Parquet no other is read.

    Raises:
        ArenaError: naming file and row, or as `files.objects`.
    """
    suffix = path.suffix.lower()
    if suffix in _OBJECTS:
        rows = list(objects(path))
        return Sheet(path, tuple(dict.fromkeys(column for _, row in rows for column in row)), tuple(rows))
    if suffix in _DELIMITERS:
        return _csv(path, delimiter or _DELIMITERS[suffix])
    return _parquet(path, wanted)


def _csv(path: Path, delimiter: str) -> Sheet:
    numbered = _lines(path, delimiter)
    columns = [name.strip() for name in next(numbered, (0, []))[1]]
    if not columns:
        raise ArenaError(f"{path}: empty; its first line must name the columns")
    if twice := next((name for name in columns if columns.count(name) > 1), None):
        raise ArenaError(f"{path}:1: column {twice!r} occurs twice; rename one")
    rows = []
    suspects: list[tuple[int, int]] = []  # where a record begins, and how many lines of it look like others
    for number, cells in numbered:
        if len(cells) != len(columns):
            mend = f"quote cells that hold {delimiter!r}" if len(cells) > len(columns) else "an empty cell has its delimiter too"
            raise ArenaError(f"{path}:{number}: has {len(cells)} cells instead of {len(columns)}; {mend}")
        if lines := _like_records(cells, delimiter):
            suspects.append((number, lines))
        rows.append((f"{path}:{number}", dict(zip(columns, cells, strict=True))))
    return Sheet(path, tuple(columns), tuple(rows), _stray_quotes(path, suspects))


def _like_records(cells: Sequence[str], delimiter: str) -> int:
    """Lines within cells that have as many cells themselves; one with a space after a delimiter is taken for prose."""
    if len(cells) == 1:
        return 0
    lines = (line.rstrip("\r") for cell in cells for line in cell.split("\n")[1:])
    return sum(line.count(delimiter) == len(cells) - 1 and f"{delimiter} " not in f"{line} " for line in lines)


def _stray_quotes(path: Path, suspects: Sequence[tuple[int, int]]) -> tuple[str, ...]:
    if not suspects:
        return ()
    number, lines = suspects[0]
    more = f" ({len(suspects)} such records in all)" if len(suspects) > 1 else ""
    held = f"a cell between quotes holds {count(lines, 'line')} with as many cells as a record"
    return (f"{path}:{number}: {held}; is a quote stray or missing?{more}",)


def _lines(path: Path, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """The cells of each line that is not empty, by the number of the line that they begin on."""
    csv.field_size_limit(2**31 - 1)  # a document is longer than the 131,072 characters that the library takes for a mistake
    reader = csv.reader(io.StringIO(text(path), newline=""), delimiter=delimiter, strict=True)
    while True:
        begins = reader.line_num + 1
        try:
            cells = next(reader, None)
        except csv.Error as error:
            raise ArenaError(f"{path}:{begins}: not CSV ({error})") from error
        if cells is None:
            return
        if cells:
            yield begins, cells


def _parquet(path: Path, wanted: Collection[str]) -> Sheet:
    try:
        file = pq.ParquetFile(path, memory_map=False)
        columns = file.schema_arrow.names
        table = file.read([name for name in columns if name in wanted])
    except (pa.ArrowException, OSError) as error:
        raise ArenaError(f"{path}: not a whole Parquet file ({first_line(error)})") from error
    rows = tuple((f"{path} row {number}", row) for number, row in enumerate(table.to_pylist(), 1))
    return Sheet(path, tuple(columns), rows)
