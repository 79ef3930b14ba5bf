"""Answer."""

from typing import Any

from rag_arena.strategies.state import State, Tools
from rag_arena.strategies.steps import context, ids


async def generate(state: State, runtime: Tools) -> State:
    """Answer from the documents at hand; without any, from the model's own knowledge."""
    tools = runtime.context
    used = ids(state.get("hits", []))
    if used:
        prompt = tools.prompts.render("answer", question=state["question"], context=context(state, tools, used))
    else:
        prompt = tools.prompts.render("closed_book", question=state["question"])
    reply = await tools.model.complete("generate", prompt, tools.settings.max_tokens)
    step: dict[str, Any] = {"node": "generate", "used": used, "finish_reason": reply.finish_reason}
    if reply.thoughts:
        step["thoughts"] = reply.thoughts
    return {"used": used, "answer": reply.text, "trace": [step]}
