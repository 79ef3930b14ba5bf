"""adaptive: a router decides how much retrieval a question needs: none, one or several (Adaptive-RAG, Jeong et al. 2024)."""

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from rag_arena.params import or_say
from rag_arena.strategies.adaptive.router import Router
from rag_arena.strategies.base import LoopSettings

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph


class Settings(LoopSettings):
    """Route, then answer closed book, as vanilla does, or as iterative does."""

    router: Annotated[Literal["trained", "prompted"] | Router, or_say("trained or prompted")] = Field(
        description="who chooses: a classifier learnt from the calibration split, or a small model that is asked"
    )

    @property
    def max_calls(self) -> int:
        """The prompted router's two, a thought per step, and the answer."""
        return (2 if self.router == "prompted" else 0) + self.max_steps + 1


def build() -> "CompiledStateGraph[Any, Any, Any, Any]":
    """route -> generate | retrieve -> generate | retrieve -> reason <-> collect, until done -> generate."""
    from langgraph.graph import END, START, StateGraph

    from rag_arena.decisions import NONE, ONE, SEVERAL
    from rag_arena.strategies.adaptive.nodes import route
    from rag_arena.strategies.nodes.collect import collect
    from rag_arena.strategies.nodes.generate import generate
    from rag_arena.strategies.nodes.reason import reason
    from rag_arena.strategies.nodes.retrieve import retrieve
    from rag_arena.strategies.state import State, Toolbox
    from rag_arena.strategies.steps import verdict

    graph = StateGraph(State, context_schema=Toolbox)
    graph.add_node("route", route)
    graph.add_node("retrieve", retrieve)
    graph.add_node("reason", reason)
    graph.add_node("collect", collect)
    graph.add_node("generate", generate)
    graph.add_edge(START, "route")
    graph.add_conditional_edges("route", verdict("choice"), {NONE: "generate", ONE: "retrieve", SEVERAL: "retrieve"})
    graph.add_conditional_edges("retrieve", verdict("choice"), {ONE: "generate", SEVERAL: "reason"})
    graph.add_conditional_edges("reason", verdict("done"), {True: "generate", False: "collect"})
    graph.add_conditional_edges("collect", verdict("done"), {True: "generate", False: "reason"})
    graph.add_edge("generate", END)
    return graph.compile()
