"""Where the loop goes next, by the verdicts that its nodes wrote; how often it may turn is bounded here."""

from langgraph.graph import END

from rag_arena.strategies.adaptive_self_rag.bounds import MOST_RETRIES
from rag_arena.strategies.adaptive_self_rag.state import Loop
from rag_arena.strategies.state import Tools


def after_route(state: Loop) -> str:
    """A question that needs no retrieval is answered at once."""
    return "retrieve" if state["choice"] == "several" else "generate"


def after_grade(state: Loop, runtime: Tools) -> str:
    """A context that was not tried yet is answered from; without one, retry; in the end, make do with what there is."""
    if state["enough"]:
        return "generate"
    if may_retry(state, runtime):
        return "rewrite"
    return "admit" if "answer" in state else "generate"


def after_generate(state: Loop) -> str:
    """A direct answer stands as it is; one without documents, after all retries, cannot be verified."""
    if state["choice"] == "none":
        return END
    return "verify" if state["enough"] else "admit"


def after_verify(state: Loop, runtime: Tools) -> str:
    """A grounded answer may still be beside the question."""
    return "assess" if state["grounded"] else _again(state, runtime)


def after_assess(state: Loop, runtime: Tools) -> str:
    """A grounded and useful answer is done."""
    return END if state["useful"] else _again(state, runtime)


def may_retry(state: Loop, runtime: Tools) -> bool:
    """The bound of the loop."""
    limit: int = min(runtime.context.settings.max_retries, MOST_RETRIES)
    return state["retries"] < limit


def _again(state: Loop, runtime: Tools) -> str:
    return "rewrite" if may_retry(state, runtime) else "admit"
