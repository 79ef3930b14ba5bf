"""vanilla: retrieve the top k, paste them, generate. The pipeline that decides nothing."""

from typing import TYPE_CHECKING, Any

from pydantic import Field

from rag_arena.params import Positive, Section

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph


class Settings(Section):
    """Retrieve, paste, generate."""

    k: Positive = Field(description="documents in the prompt")
    max_tokens: Positive = Field(description="longest answer, in tokens")


def build() -> "CompiledStateGraph[Any, Any, Any, Any]":
    """retrieve -> generate."""
    from langgraph.graph import END, START, StateGraph

    from rag_arena.strategies import nodes
    from rag_arena.strategies.state import State, Toolbox

    graph = StateGraph(State, context_schema=Toolbox)
    graph.add_node("retrieve", nodes.retrieve)
    graph.add_node("generate", nodes.generate)
    graph.add_edge(START, "retrieve")
    graph.add_edge("retrieve", "generate")
    graph.add_edge("generate", END)
    return graph.compile()
