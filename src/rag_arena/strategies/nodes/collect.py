"""Add to the documents at hand what the latest thought leads to."""

from rag_arena.strategies.state import State, Tools
from rag_arena.strategies.steps import hits_step, ids


async def collect(state: State, runtime: Tools) -> State:
    """Fetch the top k by the latest thought, if it asks for anything, and keep what is new up to `max_paragraphs`.

    Done when as many thoughts have been thought as `max_steps` allows.
    """
    tools, settings = runtime.context, runtime.context.settings
    found = tools.retriever.search(state["query"], settings.k) if state["query"] else []
    held = set(ids(state["hits"]))
    hits = [*state["hits"], *(hit for hit in found if hit.doc_id not in held)][: settings.max_paragraphs]
    done = len(state["chain"]) >= settings.max_steps
    step = hits_step("collect", found, query=state["query"], held=len(hits), done=done)
    return {"hits": hits, "retrieved": ids(found), "done": done, "trace": [step]}
