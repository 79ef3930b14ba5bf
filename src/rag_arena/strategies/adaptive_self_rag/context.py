"""What of the kept documents is shown to the model: the best, within a budget."""

from collections.abc import Callable, Sequence

from rag_arena.records import Document, Hit
from rag_arena.strategies.steps import SEPARATOR, passage


def best_within(
    pool: Sequence[Hit], k: int, budget: int, document: Callable[[str], Document]
) -> tuple[list[Hit], dict[str, Document]]:
    """At most k documents, best score first, that together stay within the budget, and the first one as cut if it had to be.

    The best is always among them, cut at a word's end if it is too long; of the others those that fit whole.

    Args:
        pool: documents to choose from.
        k: most documents.
        budget: longest context, in characters, separators included.
        document: finds a document by id.
    """
    chosen: list[Hit] = []
    cut: dict[str, Document] = {}
    left = budget
    for hit in sorted(pool, key=lambda hit: (-hit.score, hit.doc_id)):
        size = len(passage(document(hit.doc_id))) + (len(SEPARATOR) if chosen else 0)
        if size > left and not chosen:
            cut[hit.doc_id] = _shortened(document(hit.doc_id), size - left)
            size = left
        if size <= left and len(chosen) < k:
            chosen.append(hit)
            left -= size
    return chosen, cut


def _shortened(document: Document, by: int) -> Document:
    """Without so many characters at the end, nor the part of a word before them, unless that is all there is."""
    end = max(0, len(document.text) - by)
    kept, rest = document.text[:end], document.text[end:]
    if not rest[:1].isspace() and " " in kept:
        kept = kept[: kept.rindex(" ")]
    return Document(document.doc_id, document.title, kept.rstrip())
