"""no_retrieval: the model alone, closed book. The floor to hold everything else against."""

from typing import TYPE_CHECKING, Any

from rag_arena.strategies.base import StrategySettings

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph


class Settings(StrategySettings):
    """Closed book: the model answers alone."""

    @property
    def max_calls(self) -> int:
        """The answer."""
        return 1


def build() -> "CompiledStateGraph[Any, Any, Any, Any]":
    """generate."""
    from langgraph.graph import END, START, StateGraph

    from rag_arena.strategies.nodes.generate import generate
    from rag_arena.strategies.state import State, Toolbox

    graph = StateGraph(State, context_schema=Toolbox)
    graph.add_node("generate", generate)
    graph.add_edge(START, "generate")
    graph.add_edge("generate", END)
    return graph.compile()
