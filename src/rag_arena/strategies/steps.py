"""Small pieces of a trace and of a prompt that nodes have in common."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rag_arena.records import Document, Hit
from rag_arena.strategies.state import State, Toolbox

SEPARATOR = "\n\n"  # between two documents of a prompt


def document(state: State, tools: Toolbox, doc_id: str) -> Document:
    """A document as this question sees it: refined or from the web, else as the corpus has it."""
    return state.get("documents", {}).get(doc_id) or tools.document(doc_id)


def passage(document: Document) -> str:
    """A document as it stands in a prompt."""
    return f"{document.title}: {document.text}" if document.title else document.text


def context(state: State, tools: Toolbox, doc_ids: Sequence[str]) -> str:
    """Documents as they stand together in a prompt."""
    return SEPARATOR.join(passage(document(state, tools, doc_id)) for doc_id in doc_ids)


def ids(hits: list[Hit]) -> list[str]:
    """Document ids, in order."""
    return [hit.doc_id for hit in hits]


def hits_step(node: str, hits: list[Hit], **more: Any) -> dict[str, Any]:
    """A step that found documents."""
    found = [{"doc_id": h.doc_id, "score": rounded(h.score), "cosine": rounded(h.cosine)} for h in hits]
    return {"node": node, **more, "hits": found}


def verdict(key: str) -> Callable[[Mapping[str, Any]], Any]:
    """An edge that reads what a node wrote into the state; it is named after that, and so drawn."""

    def read(state: Mapping[str, Any]) -> Any:  # of no one class: each graph has a state of its own
        return state[key]

    read.__name__ = key
    return read


def rounded(value: float | None) -> float | None:
    """As traces show scores."""
    return None if value is None else round(value, 6)
