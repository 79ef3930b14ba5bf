"""What loaders share: the rows of both tables, and the checks of their fields."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rag_arena.errors import ArenaError
from rag_arena.records import CHUNK, QUESTION_TYPES

_TYPE_ALIASES = {"factual": "single_hop", "reasoning": "multi_hop"}


@dataclass(frozen=True, slots=True)
class Loaded:
    """Rows of the corpus and questions artifacts, the supporting facts that fit no document, and what else a user should know.

    `source` says where the rows come from more precisely than the parameters do; it names no place of this machine.
    """

    corpus: list[dict[str, Any]]
    questions: list[dict[str, Any]]
    unresolved: list[str]
    notes: list[str] = field(default_factory=list)
    source: str = ""


class Ids:
    """The ids of one table, each of which may occur once."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._seen: set[str] = set()

    def new(self, value: str, where: str) -> str:
        """An id not seen before.

        Raises:
            ArenaError: it has been seen, or looks like that of a chunk.
        """
        if CHUNK in value:
            raise ArenaError(f"{where}: {self._kind} id {value!r} holds {CHUNK}, which marks chunks; write another character")
        if value in self._seen:
            raise ArenaError(f"{where}: {self._kind} id {value!r} occurs twice; ids must be unique")
        self._seen.add(value)
        return value


def text_of(row: Mapping[str, Any], keys: Iterable[str], where: str) -> str:
    """The first of these fields that is set, as text.

    Raises:
        ArenaError: none is, or it holds only spaces, or what is neither text nor number.
    """
    value = next((row[key] for key in keys if row.get(key) is not None), None)
    if value is None or not str(value).strip():
        raise ArenaError(f"{where}: {' or '.join(keys)} is missing or empty")
    if isinstance(value, bool | list | dict):
        raise ArenaError(f"{where}: {' or '.join(keys)} holds a {type(value).__name__}, where a text should be")
    return str(value)


def list_of(row: Mapping[str, Any], key: str, where: str) -> list[Any]:
    """A field that is a list, or may be missing.

    Raises:
        ArenaError: it is something else.
    """
    value = row.get(key)
    if value is not None and not isinstance(value, list):
        raise ArenaError(f"{where}: {key} is not a list")
    return value or []


def question_type_of(row: Mapping[str, Any], keys: Iterable[str], where: str) -> str:
    """A question's type, under its own name or RAGRouter's.

    Raises:
        ArenaError: it is missing or unknown.
    """
    return type_named(text_of(row, keys, where), where)


def type_named(named: str, where: str) -> str:
    """A question type by its own name or RAGRouter's.

    Raises:
        ArenaError: it is unknown.
    """
    kind = _TYPE_ALIASES.get(named, named)
    if kind not in QUESTION_TYPES:
        raise ArenaError(f"{where}: unknown question type {named!r}; known: {', '.join((*QUESTION_TYPES, *_TYPE_ALIASES))}")
    return kind


def not_empty(rows: Sequence[object], kind: str, path: object) -> None:
    """A table must have rows.

    Raises:
        ArenaError: it has none.
    """
    if not rows:
        raise ArenaError(f"{path}: no {kind}; the file is empty")
