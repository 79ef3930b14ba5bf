"""RAGRouter-Bench's shape: Corpus.json and Question.json, JSON Lines (or one JSON array) in spite of the suffix.

Source: the dataset `Chaplain0908/RAGRouter`. Two shapes of supporting facts occur in it, with and without a document id;
facts without one are resolved by their text, else by a title that only one document bears.
"""

import json
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rag_arena.errors import ArenaError
from rag_arena.records import QUESTION_TYPES

_TYPE_ALIASES = {"factual": "single_hop", "reasoning": "multi_hop"}


@dataclass(frozen=True, slots=True)
class Loaded:
    """Rows of the corpus and questions artifacts, and the supporting facts that fit no document."""

    corpus: list[dict[str, Any]]
    questions: list[dict[str, Any]]
    unresolved: list[str]


def check(folder: Path) -> None:
    """Are both files there?

    Raises:
        ArenaError: one is missing or is a folder.
    """
    for path in (folder / "Corpus.json", folder / "Question.json"):
        if path.is_dir():
            raise ArenaError(f"{path}: a folder, where a file should be; put the file in its place")
        if not path.is_file():
            raise ArenaError(f"{path}: missing; the folder must hold Corpus.json and Question.json")


def load(folder: Path) -> Loaded:
    """Read a folder in RAGRouter's shape.

    Raises:
        ArenaError: naming file and line, for text that is not UTF-8 or not JSON, a missing or empty field, a duplicate
            id, a gold id that is not in the corpus, an unknown question type, or an empty file.
    """
    check(folder)
    corpus_path, question_path = folder / "Corpus.json", folder / "Question.json"
    corpus: list[dict[str, Any]] = []
    seen: set[str] = set()
    for where, row in _rows(corpus_path):
        doc_id = _text(row, ("id", "doc_id"), where)
        if doc_id in seen:
            raise ArenaError(f"{where}: document id {doc_id!r} occurs twice; ids must be unique")
        seen.add(doc_id)
        title = row.get("title") or ""
        corpus.append({"doc_id": doc_id, "title": str(title), "text": _text(row, ("context", "text"), where)})
    if not corpus:
        raise ArenaError(f"{corpus_path}: no documents; the corpus is empty")

    resolver = _Resolver(corpus)
    questions: list[dict[str, Any]] = []
    unresolved: list[str] = []
    asked: set[str] = set()
    for where, row in _rows(question_path):
        question_id = _text(row, ("id", "question_id"), where)
        if question_id in asked:
            raise ArenaError(f"{where}: question id {question_id!r} occurs twice; ids must be unique")
        asked.add(question_id)
        gold, missing = resolver.resolve(_list(row, "supporting_facts", where), where)
        if not gold and not missing:
            raise ArenaError(f"{where}: question {question_id!r} has no supporting_facts; recall needs gold documents")
        unresolved += [f"{question_id}: {fact}" for fact in missing]
        questions.append(
            {
                "question_id": question_id,
                "question": _text(row, ("question",), where),
                "answer": _text(row, ("answer",), where),
                "aliases": [str(a) for a in _list(row, "aliases", where)],
                "question_type": _question_type(row, where),
                "gold_ids": gold,
                "decomposition": [_hop(hop, where) for hop in _list(row, "decomposition", where)],
            }
        )
    if not questions:
        raise ArenaError(f"{question_path}: no questions; the file is empty")
    return Loaded(corpus, questions, unresolved)


def _rows(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    try:
        text = path.read_bytes().decode("utf-8-sig").rstrip()  # else a fault at the end is told by the line after
    except UnicodeDecodeError as error:
        raise ArenaError(f"{path}: byte {error.start} is not UTF-8; convert the file to UTF-8") from error
    if text.lstrip().startswith("["):
        try:
            array = json.loads(text)
        except json.JSONDecodeError as error:
            raise ArenaError(f"{path}:{error.lineno}: not JSON ({error.msg})") from error
        numbered = [(f"{path}, entry {i}", entry) for i, entry in enumerate(array, 1)]
    else:
        numbered = []
        for number, line in enumerate(text.split("\n"), 1):
            if line.strip():
                try:
                    numbered.append((f"{path}:{number}", json.loads(line)))
                except json.JSONDecodeError as error:
                    raise ArenaError(f"{path}:{number}: not JSON ({error.msg})") from error
    for where, entry in numbered:
        if not isinstance(entry, dict):
            raise ArenaError(f"{where}: not a JSON object")
        try:
            json.dumps(entry, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            raise ArenaError(f"{where}: holds half a surrogate pair, which is no text; mend the escape") from error
        yield where, entry


def _text(row: Mapping[str, Any], keys: tuple[str, ...], where: str) -> str:
    value = next((row[key] for key in keys if row.get(key) is not None), None)
    if value is None or not str(value).strip():
        raise ArenaError(f"{where}: {' or '.join(keys)} is missing or empty")
    return str(value)


def _list(row: Mapping[str, Any], key: str, where: str) -> list[Any]:
    value = row.get(key)
    if value is not None and not isinstance(value, list):
        raise ArenaError(f"{where}: {key} is not a list")
    return value or []


def _hop(hop: Any, where: str) -> dict[str, str]:
    if not isinstance(hop, dict) or not {"question", "answer", "doc_id"} <= set(hop):
        raise ArenaError(f"{where}: an entry of decomposition lacks question, answer or doc_id")
    return {key: str(hop[key]) for key in ("question", "answer", "doc_id")}


def _question_type(row: Mapping[str, Any], where: str) -> str:
    named = _text(row, ("type", "query_type"), where)
    kind = _TYPE_ALIASES.get(named, named)
    if kind not in QUESTION_TYPES:
        raise ArenaError(f"{where}: unknown question type {named!r}; known: {', '.join((*QUESTION_TYPES, *_TYPE_ALIASES))}")
    return kind


class _Resolver:
    """Finds the document that a supporting fact points at."""

    def __init__(self, corpus: list[dict[str, Any]]) -> None:
        self._ids = {row["doc_id"] for row in corpus}
        self._by_text: dict[str, str] = {}
        self._by_exact_text: dict[str, str] = {}
        titles: dict[str, list[str]] = {}
        for row in corpus:
            self._by_exact_text.setdefault(row["text"], row["doc_id"])
            self._by_text.setdefault(_normalised(row["text"]), row["doc_id"])
            titles.setdefault(_normalised(row["title"]), []).append(row["doc_id"])
        self._by_title = {title: ids[0] for title, ids in titles.items() if len(ids) == 1}

    def resolve(self, facts: list[Any], where: str) -> tuple[list[str], list[str]]:
        gold: list[str] = []
        missing: list[str] = []
        for fact in facts:
            found = self._resolve_one(fact, where)
            if found is None:
                missing.append(json.dumps(fact, ensure_ascii=False)[:120])
            elif found not in gold:
                gold.append(found)
        return gold, missing

    def _resolve_one(self, fact: Any, where: str) -> str | None:
        if isinstance(fact, dict) and fact.get("doc_id") is not None:
            doc_id = str(fact["doc_id"])
            if doc_id not in self._ids:
                raise ArenaError(f"{where}: gold document {doc_id!r} is not in Corpus.json")
            return doc_id
        if isinstance(fact, dict):
            texts = [str(fact[key]) for key in ("text", "paragraph_text") if fact.get(key)]
            title = str(fact.get("title") or "")
        elif isinstance(fact, list) and fact:
            texts, title = [], str(fact[0])
        else:
            texts, title = [str(fact)], str(fact)
        for text in texts:
            if (found := self._by_exact_text.get(text) or self._by_text.get(_normalised(text))) is not None:
                return found
        return self._by_title.get(_normalised(title)) if title else None


def _normalised(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())
