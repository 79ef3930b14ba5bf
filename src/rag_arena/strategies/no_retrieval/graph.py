"""no_retrieval: the model alone, closed book. The floor to hold everything else against."""

from typing import Any

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from rag_arena.strategies import nodes
from rag_arena.strategies.state import State, Toolbox


def build() -> "CompiledStateGraph[State, Toolbox, Any, Any]":
    """generate."""
    graph = StateGraph(State, context_schema=Toolbox)
    graph.add_node("generate", nodes.generate)
    graph.add_edge(START, "generate")
    graph.add_edge("generate", END)
    return graph.compile()
