"""corrective: an evaluator judges what was retrieved, and its verdict decides what is done next.

CRAG, Yan et al. 2024, arXiv:2401.15884. The paper's evaluator is a fine-tuned T5; this one is a prompt
(`grader: llm`) or the configured reranker (`grader: cross_encoder`).
"""

from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, model_validator

from rag_arena.params import Positive, Relevance, Share, Threshold, Web, calibrated
from rag_arena.strategies.base import StrategySettings

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph


class Settings(StrategySettings):
    """Retrieve, evaluate, then refine what is there, search elsewhere, or both."""

    k: Positive = Field(description="documents evaluated; shared with vanilla unless overridden")
    grader: Literal["llm", "cross_encoder"] = Field(
        description="who evaluates documents; strips are scored by the reranker always"
    )
    relevance: Relevance = Field(description="sigmoid that makes the reranker's score a probability")
    upper: Threshold = Field(
        description="a document from here on makes the action Correct", json_schema_extra=calibrated("relevance", "good")
    )
    lower: Threshold = Field(
        description="every document under it makes the action Incorrect", json_schema_extra=calibrated("relevance", "bad")
    )
    strips: Literal["sentences", "words"] = Field(description="what a strip is made of")
    strip_length: Positive = Field(description="sentences (paper: one to three) or words (paper: 50) in the longest strip")
    strip_filter: Share = Field(description="strips under this probability of relevance are dropped")
    max_strips: Positive = Field(
        description="strips kept of what was retrieved, and as many of what was found elsewhere; paper: 5"
    )
    elsewhere: Literal["second_lane", "searxng", "wikipedia"] = Field(
        description="second_lane: the other lexical or dense lane, without what was seen; the others search the web"
    )
    web: Web = Field(description="the engine, where elsewhere is searxng or wikipedia")
    widen_factor: Positive = Field(description="documents looked at elsewhere, as a multiple of k")
    rewrite_tokens: Positive = Field(description="longest list of keywords, in tokens")

    @model_validator(mode="after")
    def _in_order(self) -> "Settings":
        if isinstance(self.upper, float) and isinstance(self.lower, float) and self.upper < self.lower:
            raise ValueError(f"upper ({self.upper:g}) must not be under lower ({self.lower:g})")
        return self

    @model_validator(mode="after")
    def _has_url(self) -> "Settings":
        if self.elsewhere != "second_lane" and not self.web.base_url.startswith(("http://", "https://")):
            raise ValueError(f"web.base_url must start with http:// or https:// when elsewhere is {self.elsewhere}")
        return self

    @property
    def max_calls(self) -> int:
        """Two per document where a model evaluates, the keywords and the answer."""
        return (2 * self.k if self.grader == "llm" else 0) + 2


def build() -> "CompiledStateGraph[Any, Any, Any, Any]":
    """retrieve -> grade -> (rewrite -> search unless Correct) -> refine -> generate."""
    from langgraph.graph import END, START, StateGraph

    from rag_arena.strategies.corrective.nodes import grade, refine, rewrite, search
    from rag_arena.strategies.nodes.generate import generate
    from rag_arena.strategies.nodes.retrieve import retrieve
    from rag_arena.strategies.state import State, Toolbox
    from rag_arena.strategies.steps import verdict

    graph = StateGraph(State, context_schema=Toolbox)
    graph.add_node("retrieve", retrieve)
    graph.add_node("grade", grade)
    graph.add_node("rewrite", rewrite)
    graph.add_node("search", search)
    graph.add_node("refine", refine)
    graph.add_node("generate", generate)
    graph.add_edge(START, "retrieve")
    graph.add_edge("retrieve", "grade")
    graph.add_conditional_edges("grade", verdict("corrected"), {True: "rewrite", False: "refine"})
    graph.add_edge("rewrite", "search")
    graph.add_edge("search", "refine")
    graph.add_edge("refine", "generate")
    graph.add_edge("generate", END)
    return graph.compile()
