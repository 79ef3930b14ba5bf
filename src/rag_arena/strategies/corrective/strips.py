"""Knowledge refinement: documents into strips, the best strips back into documents (CRAG, Yan et al. 2024, section 4.4)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from rag_arena.records import Document
from rag_arena.strategies.sentences import sentences


@dataclass(frozen=True, slots=True)
class Strip:
    """A part of a document, the `position`-th from 0, and its probability of relevance once it is scored."""

    doc_id: str
    title: str
    position: int
    text: str
    p: float = 0.0

    @property
    def full_text(self) -> str:
        """What is scored: a strip says "it" of what its title names."""
        return Document(self.doc_id, self.title, self.text).full_text


def split(document: Document, unit: str, length: int) -> list[Strip]:
    """A document as strips of at most `length` sentences or words, as few as can be and as equal as can be."""
    parts = sentences(document.text) if unit == "sentences" else document.text.split()
    texts = (" ".join(part) for part in _evenly(parts, length))
    return [Strip(document.doc_id, document.title, position, text) for position, text in enumerate(texts)]


def _evenly(parts: Sequence[str], length: int) -> Iterator[Sequence[str]]:
    count = -(-len(parts) // length)
    for i in range(count):
        yield parts[i * len(parts) // count : (i + 1) * len(parts) // count]


def best(strips: Sequence[Strip], floor: float, limit: int) -> list[Strip]:
    """The `limit` likeliest strips from `floor` on, in the order given; of equals the first."""
    likeliest = sorted((strip for strip in strips if strip.p >= floor), key=lambda strip: -strip.p)[:limit]
    return [strip for strip in strips if strip in likeliest]


def recomposed(strips: Sequence[Strip]) -> list[Document]:
    """Documents that hold nothing but these strips, which come in the order of their documents."""
    groups = groupby(strips, key=lambda strip: (strip.doc_id, strip.title))
    return [Document(doc_id, title, " ".join(strip.text for strip in group)) for (doc_id, title), group in groups]
