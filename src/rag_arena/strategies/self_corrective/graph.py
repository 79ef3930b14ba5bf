"""self_corrective: a threshold on the best cosine decides whether to look again.

With `correction: widen` in dense mode the wider ranking starts with the very documents that were judged too low, so filtered and
cut to k it is a subset of vanilla's top k: the correction can drop documents, never find new ones.
"""

from typing import Any

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from rag_arena.strategies import nodes
from rag_arena.strategies.state import State, Toolbox


def build() -> "CompiledStateGraph[State, Toolbox, Any, Any]":
    """retrieve -> assess -> (correct when low) -> keep -> generate."""
    graph = StateGraph(State, context_schema=Toolbox)
    graph.add_node("retrieve", nodes.retrieve)
    graph.add_node("assess", nodes.assess)
    graph.add_node("correct", nodes.correct)
    graph.add_node("keep", nodes.keep)
    graph.add_node("generate", nodes.generate)
    graph.add_edge(START, "retrieve")
    graph.add_edge("retrieve", "assess")
    graph.add_conditional_edges("assess", lambda state: state["verdict"], {nodes.LOW: "correct", nodes.ENOUGH: "keep"})
    graph.add_edge("correct", "keep")
    graph.add_edge("keep", "generate")
    graph.add_edge("generate", END)
    return graph.compile()
