"""Which document a supporting fact points at."""

import json
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any

from rag_arena.errors import ArenaError


class Resolver:
    """Finds the documents that supporting facts point at: by id, else by text (exact, then normalised), else by a title that
    only one document bears."""

    def __init__(self, corpus: Iterable[Mapping[str, Any]]) -> None:
        self._ids: set[str] = set()
        self._by_text: dict[str, str] = {}
        self._by_exact_text: dict[str, str] = {}
        titles: dict[str, list[str]] = {}
        for row in corpus:
            self._ids.add(row["doc_id"])
            self._by_exact_text.setdefault(row["text"], row["doc_id"])
            self._by_text.setdefault(normalised(row["text"]), row["doc_id"])
            titles.setdefault(normalised(row["title"]), []).append(row["doc_id"])
        self._by_title = {title: ids[0] for title, ids in titles.items() if len(ids) == 1}

    def resolve(self, facts: Iterable[Any], where: str) -> tuple[list[str], list[str]]:
        """Ids of the documents in order, each once, and the facts that fit none, as JSON.

        Raises:
            ArenaError: a fact names an id that no document has.
        """
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
                raise ArenaError(f"{where}: gold document {doc_id!r} is not in the corpus")
            return doc_id
        if isinstance(fact, dict):
            texts = [str(fact[key]) for key in ("text", "paragraph_text") if fact.get(key)]
            title = str(fact.get("title") or "")
        elif isinstance(fact, list) and fact:
            texts, title = [], str(fact[0])
        else:
            texts, title = [str(fact)], str(fact)
        for text in texts:
            if (found := self._by_exact_text.get(text) or self._by_text.get(normalised(text))) is not None:
                return found
        return self._by_title.get(normalised(title)) if title else None


def normalised(text: str) -> str:
    """A text without differences of case, spacing and Unicode form (NFKC)."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())
