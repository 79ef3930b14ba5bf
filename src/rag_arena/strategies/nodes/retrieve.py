"""Fetch documents."""

from rag_arena.strategies.state import State, Tools
from rag_arena.strategies.steps import hits_step, ids


async def retrieve(state: State, runtime: Tools) -> State:
    """Fetch the top k by the question."""
    hits = runtime.context.retriever.search(state["question"], runtime.context.settings.k)
    return {"hits": hits, "retrieved": ids(hits), "trace": [hits_step("retrieve", hits, query=state["question"])]}
