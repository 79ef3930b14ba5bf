"""no_retrieval: the model alone, closed book. The floor to hold everything else against."""

from typing import TYPE_CHECKING, Any

from pydantic import Field

from rag_arena.params import Positive, Section

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph


class Settings(Section):
    """Closed book: the model answers alone."""

    max_tokens: Positive = Field(description="longest answer, in tokens")


def build() -> "CompiledStateGraph[Any, Any, Any, Any]":
    """generate."""
    from langgraph.graph import END, START, StateGraph

    from rag_arena.strategies import nodes
    from rag_arena.strategies.state import State, Toolbox

    graph = StateGraph(State, context_schema=Toolbox)
    graph.add_node("generate", nodes.generate)
    graph.add_edge(START, "generate")
    graph.add_edge("generate", END)
    return graph.compile()
