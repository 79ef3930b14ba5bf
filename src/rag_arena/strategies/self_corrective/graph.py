"""self_corrective: a threshold on the best cosine decides whether to look again.

With `correction: widen` in dense mode the wider ranking starts with the very documents that were judged too low, so filtered and
cut to k it is a subset of vanilla's top k: the correction can drop documents, never find new ones.
"""

from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from rag_arena.params import Positive, Share, Threshold, calibrated
from rag_arena.strategies.base import StrategySettings

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph


class Settings(StrategySettings):
    """Retrieve, judge by cosine, correct when the best score is under the threshold."""

    k: Positive = Field(description="documents in the prompt; shared with vanilla unless overridden")
    threshold: Threshold = Field(
        description="best cosine under which the correction fires", json_schema_extra=calibrated("cosine", "bad")
    )
    keep_ratio: Share = Field(description="documents with cosine under keep_ratio x threshold are dropped")
    correction: Literal["widen", "rewrite", "other_lane"] = Field(description="what the correction does")
    widen_factor: Positive = Field(description="documents looked at after a correction, as a multiple of k")
    rewrite_tokens: Positive = Field(description="longest rewritten query, in tokens")

    @property
    def max_calls(self) -> int:
        """The answer, and the rewritten query."""
        return 2 if self.correction == "rewrite" else 1


def build() -> "CompiledStateGraph[Any, Any, Any, Any]":
    """retrieve -> assess -> (correct when low) -> keep -> generate."""
    from langgraph.graph import END, START, StateGraph

    from rag_arena.strategies.nodes.generate import generate
    from rag_arena.strategies.nodes.retrieve import retrieve
    from rag_arena.strategies.self_corrective.nodes import assess, correct, keep
    from rag_arena.strategies.state import State, Toolbox
    from rag_arena.strategies.steps import verdict

    graph = StateGraph(State, context_schema=Toolbox)
    graph.add_node("retrieve", retrieve)
    graph.add_node("assess", assess)
    graph.add_node("correct", correct)
    graph.add_node("keep", keep)
    graph.add_node("generate", generate)
    graph.add_edge(START, "retrieve")
    graph.add_edge("retrieve", "assess")
    graph.add_conditional_edges("assess", verdict("enough"), {False: "correct", True: "keep"})
    graph.add_edge("correct", "keep")
    graph.add_edge("keep", "generate")
    graph.add_edge("generate", END)
    return graph.compile()
