"""vanilla: retrieve the top k, paste them, generate. The pipeline that decides nothing."""

from typing import Any

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from rag_arena.strategies import nodes
from rag_arena.strategies.state import State, Toolbox


def build() -> "CompiledStateGraph[State, Toolbox, Any, Any]":
    """retrieve -> generate."""
    graph = StateGraph(State, context_schema=Toolbox)
    graph.add_node("retrieve", nodes.retrieve)
    graph.add_node("generate", nodes.generate)
    graph.add_edge(START, "retrieve")
    graph.add_edge("retrieve", "generate")
    graph.add_edge("generate", END)
    return graph.compile()
