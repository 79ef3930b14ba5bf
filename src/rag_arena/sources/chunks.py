"""Texts cut into chunks at word boundaries."""

import re
from collections.abc import Iterator
from typing import Any

from rag_arena.params import Chunking
from rag_arena.records import chunk_id

_SOMETHING = re.compile(r"\S")
_WORD = re.compile(r"(?<=\s)\S")


def chunked(corpus: list[dict[str, Any]], chunking: Chunking) -> list[dict[str, Any]]:
    """A corpus whose documents are the chunks of the given ones; each keeps every other column of its document."""
    return [
        {**row, "doc_id": chunk_id(row["doc_id"], number), "text": text}
        for row in corpus
        for number, text in enumerate(cut(row["text"], chunking.characters, chunking.overlap), 1)
    ]


def cut(text: str, characters: int, overlap: int) -> Iterator[str]:
    """The chunks of a text in order, none longer than `characters`, none empty, without spaces at their ends.

    A chunk ends between words, and the next one begins with the whole words of its last `overlap` characters. What is longer than
    a chunk without a space (a long word, or a text in a script without spaces) is cut at exactly so many characters.
    """
    start = reached = 0
    while (first := _SOMETHING.search(text, start)) is not None:
        start = first.start()
        end, between = _end(text, start, start + characters)
        if end <= reached:  # the overlap left no room for the next word
            start = reached
            continue
        yield text[start:end].rstrip()
        reached = end
        low = max(end - overlap, start + 1)
        word = _WORD.search(text, low, end)
        start = word.start() if word else end if between else low


def _end(text: str, start: int, limit: int) -> tuple[int, bool]:
    """Where a chunk that begins at `start` ends, at most at `limit`, and whether that is between two words."""
    if limit >= len(text):
        return len(text), True
    if text[limit].isspace() or text[limit - 1].isspace():
        return limit, True
    words = text[start:limit].rsplit(maxsplit=1)
    return (start + len(words[0]), True) if len(words) == 2 else (limit, False)
