"""One corpus out of the pools of paragraphs that come with every question of a multi-hop dataset."""

from typing import Any


class Pool:
    """Paragraphs of all questions, each kept once: equal title and text are one document, numbered as first met."""

    def __init__(self) -> None:
        self._ids: dict[tuple[str, str], str] = {}

    def add(self, title: str, text: str) -> str | None:
        """The id of a paragraph's document; None for a paragraph without text, which is no document."""
        title, text = title.strip(), text.strip()
        return self._ids.setdefault((title, text), str(len(self._ids))) if text else None

    @property
    def corpus(self) -> list[dict[str, Any]]:
        """Rows of the corpus."""
        return [{"doc_id": doc_id, "title": title, "text": text} for (title, text), doc_id in self._ids.items()]
