"""iterative: retrieval and a chain of thought take turns; each thought is the next query (IRCoT, Trivedi et al. 2023)."""

from typing import TYPE_CHECKING, Any

from rag_arena.strategies.base import LoopSettings

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph


class Settings(LoopSettings):
    """Retrieve by the question, then think and retrieve by the thought in turns, and answer from all that was collected."""

    @property
    def max_calls(self) -> int:
        """A thought per step, and the answer."""
        return self.max_steps + 1


def build() -> "CompiledStateGraph[Any, Any, Any, Any]":
    """retrieve -> reason <-> collect, until done -> generate."""
    from langgraph.graph import END, START, StateGraph

    from rag_arena.strategies.nodes.collect import collect
    from rag_arena.strategies.nodes.generate import generate
    from rag_arena.strategies.nodes.reason import reason
    from rag_arena.strategies.nodes.retrieve import retrieve
    from rag_arena.strategies.state import State, Toolbox
    from rag_arena.strategies.steps import verdict

    graph = StateGraph(State, context_schema=Toolbox)
    graph.add_node("retrieve", retrieve)
    graph.add_node("reason", reason)
    graph.add_node("collect", collect)
    graph.add_node("generate", generate)
    graph.add_edge(START, "retrieve")
    graph.add_edge("retrieve", "reason")
    graph.add_conditional_edges("reason", verdict("done"), {True: "generate", False: "collect"})
    graph.add_conditional_edges("collect", verdict("done"), {True: "generate", False: "reason"})
    graph.add_edge("generate", END)
    return graph.compile()
