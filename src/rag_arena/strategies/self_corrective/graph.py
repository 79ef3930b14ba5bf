"""self_corrective: a threshold on the best cosine decides whether to look again.

With `correction: widen` in dense mode the wider ranking starts with the very documents that were judged too low, so filtered and
cut to k it is a subset of vanilla's top k: the correction can drop documents, never find new ones.
"""

from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from rag_arena.params import Positive, Section, Share

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph


class Settings(Section):
    """Retrieve, judge by cosine, correct when the best score is under the threshold."""

    k: Positive = Field(description="documents in the prompt; shared with vanilla unless overridden")
    max_tokens: Positive = Field(description="longest answer, in tokens; shared with vanilla unless overridden")
    threshold: Share = Field(description="best cosine under which the correction fires")
    keep_ratio: Share = Field(description="documents with cosine under keep_ratio x threshold are dropped")
    correction: Literal["widen", "rewrite", "other_lane"] = Field(description="what the correction does")
    widen_factor: Positive = Field(description="documents looked at after a correction, as a multiple of k")
    rewrite_tokens: Positive = Field(description="longest rewritten query, in tokens")


def build() -> "CompiledStateGraph[Any, Any, Any, Any]":
    """retrieve -> assess -> (correct when low) -> keep -> generate."""
    from langgraph.graph import END, START, StateGraph

    from rag_arena.strategies import nodes
    from rag_arena.strategies.state import State, Toolbox

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
