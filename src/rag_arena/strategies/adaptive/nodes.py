"""Decide how much retrieval a question needs."""

from collections.abc import Mapping

from rag_arena.decisions import CHOICES, NONE, RETRIEVE, verdict_step
from rag_arena.llm.verdicts import classify
from rag_arena.strategies.adaptive.router import likeliest
from rag_arena.strategies.state import State, Toolbox, Tools
from rag_arena.strategies.steps import rounded


async def route(state: State, runtime: Tools) -> State:
    """Choose none, one or several retrievals, the likeliest; `p` in the trace is the probability of any."""
    probabilities, source = await _judge(runtime.context, state["question"])
    choice = likeliest(probabilities)
    p = 1 - probabilities.get(NONE, 0.0)  # a trained router may never have seen the class
    step = verdict_step("route", RETRIEVE, choice != NONE, choice=choice, p=rounded(p), source=source)
    return {"choice": choice, "trace": [step]}


async def _judge(tools: Toolbox, question: str) -> tuple[Mapping[str, float], str]:
    if tools.settings.router == "prompted":
        verdict = await classify(tools.small_model, "route", tools.prompts.render("route", question=question), CHOICES)
        return verdict.probabilities, verdict.source
    return tools.settings.router.probabilities(tools.embed(question)), "trained"
