"""The cells of a user's table, by what the configuration says their columns hold."""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from rag_arena.errors import ArenaError
from rag_arena.params import QuestionColumns, nearest
from rag_arena.sources.sheet import Sheet

_DELIMITERS = (";", "\t", ",", "|")
OPTIONAL = ("doc_id", "title", "question_id", "aliases", "gold_ids", "question_type")
_DECIMAL = re.compile(r"\d+\.0")


class Fields:
    """Reads rows of one table.

    Where the file has only texts (CSV), an id that a spreadsheet wrote as a decimal number (`7.0`) is a whole one.

    Raises:
        ArenaError: a column is not there that is needed, or that does not go by its default name.
    """

    def __init__(self, sheet: Sheet, columns: QuestionColumns, holds: Iterable[str], separator: str) -> None:
        self._names: dict[str, str] = {}
        self._separator = separator
        self._only_texts = sheet.only_texts
        for role in holds:
            name = getattr(columns, role)
            if name in sheet.columns:
                self._names[role] = name
            elif role not in OPTIONAL or name != type(columns).model_fields[role].default:
                raise no_column(sheet, name, f"dataset.columns.{role}")

    def has(self, role: str) -> bool:
        """Is there a column for it?"""
        return role in self._names

    def text(self, role: str, row: Mapping[str, Any], where: str) -> str:
        """A cell that must not be empty.

        Raises:
            ArenaError: it is, or holds something that is no text.
        """
        found = self.maybe(role, row, where)
        if not found.strip():
            raise ArenaError(f"{where}: column {self._names[role]!r} is empty")
        return found

    def id(self, role: str, row: Mapping[str, Any], where: str) -> str:
        """A cell that identifies its row.

        Raises:
            ArenaError: it is empty, or neither a text nor a number.
        """
        if isinstance(row.get(self._names[role]), bool):
            raise ArenaError(f"{where}: column {self._names[role]!r} holds true or false, where an id should be")
        return self._whole(self.text(role, row, where).strip())

    def ids(self, role: str, row: Mapping[str, Any], where: str) -> list[str]:
        """The items of a list of ids, as `items`."""
        return [self._whole(item) for item in self.items(role, row, where)]

    def _whole(self, identity: str) -> str:
        return identity[:-2] if self._only_texts and _DECIMAL.fullmatch(identity) else identity

    def maybe(self, role: str, row: Mapping[str, Any], where: str) -> str:
        """A cell that may be empty, or have no column.

        Raises:
            ArenaError: it holds something that is no text.
        """
        return cell(row, self._names[role], where) if role in self._names else ""

    def items(self, role: str, row: Mapping[str, Any], where: str) -> list[str]:
        """The items of a list: a list, a text that holds a JSON list, or a text with separators.

        Raises:
            ArenaError: it begins as a JSON list and is none, or an item is no text.
        """
        if role not in self._names:
            return []
        name = self._names[role]
        value = row.get(name)
        if isinstance(value, str) and value.lstrip().startswith("["):
            try:
                value = json.loads(value)
                json.dumps(value, ensure_ascii=False).encode()
            except ValueError as error:
                reason = error.msg if isinstance(error, json.JSONDecodeError) else "half a surrogate pair"
                raise ArenaError(f"{where}: column {name!r} begins with [ and is no JSON list ({reason})") from error
        if not isinstance(value, list):
            value = cell(row, name, where).split(self._separator)
        items = [cell({name: item}, name, where).strip() for item in value]
        return [item for item in items if item]


def cell(row: Mapping[str, Any], column: str, where: str) -> str:
    """A cell as text: a whole number without a decimal point, a missing value as an empty text.

    Raises:
        ArenaError: it holds a list, an object or bytes.
    """
    value = row.get(column)
    if value is None or value != value:  # NaN
        return ""
    if isinstance(value, list | dict | bytes):
        raise ArenaError(f"{where}: column {column!r} holds a {type(value).__name__}, where a text should be")
    if isinstance(value, bool):
        return str(value).lower()
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def no_column(sheet: Sheet, name: str, key: str) -> ArenaError:
    """What to say of a column that is not there, with the key of params.yaml that names it."""
    if sheet.only_texts and len(sheet.columns) == 1 and (other := next((d for d in _DELIMITERS if d in sheet.columns[0]), None)):
        return ArenaError(f"{sheet.path}: has one column, {sheet.columns[0]!r}; set dataset.delimiter=\"'{other}'\"")
    return ArenaError(f"{sheet.path}: no column {name!r}{nearest(name, sheet.columns)}; set {key}")
