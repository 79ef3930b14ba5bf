"""vanilla: retrieve the top k, paste them, generate. The pipeline that decides nothing."""

from typing import TYPE_CHECKING, Any

from pydantic import Field

from rag_arena.params import Positive
from rag_arena.strategies.base import StrategySettings

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph


class Settings(StrategySettings):
    """Retrieve, paste, generate."""

    k: Positive = Field(description="documents in the prompt")

    @property
    def max_calls(self) -> int:
        """The answer."""
        return 1


def build() -> "CompiledStateGraph[Any, Any, Any, Any]":
    """retrieve -> generate."""
    from langgraph.graph import END, START, StateGraph

    from rag_arena.strategies.nodes.generate import generate
    from rag_arena.strategies.nodes.retrieve import retrieve
    from rag_arena.strategies.state import State, Toolbox

    graph = StateGraph(State, context_schema=Toolbox)
    graph.add_node("retrieve", retrieve)
    graph.add_node("generate", generate)
    graph.add_edge(START, "retrieve")
    graph.add_edge("retrieve", "generate")
    graph.add_edge("generate", END)
    return graph.compile()
