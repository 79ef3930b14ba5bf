"""Answer."""

from typing import Any

from rag_arena.strategies.state import State, Tools
from rag_arena.strategies.steps import document, ids, passage


async def generate(state: State, runtime: Tools) -> State:
    """Answer from the documents at hand; without any, from the model's own knowledge."""
    tools = runtime.context
    used = ids(state.get("hits", []))
    if used:
        passages = "\n\n".join(passage(document(state, tools, doc_id)) for doc_id in used)
        prompt = tools.prompts.render("answer", question=state["question"], context=passages)
    else:
        prompt = tools.prompts.render("closed_book", question=state["question"])
    reply = await tools.model.complete("generate", prompt, tools.settings.max_tokens)
    step: dict[str, Any] = {"node": "generate", "used": used, "finish_reason": reply.finish_reason}
    if reply.thoughts:
        step["thoughts"] = reply.thoughts
    return {"used": used, "answer": reply.text, "trace": [step]}
