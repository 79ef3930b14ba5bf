"""adaptive_self_rag: route, retrieve, grade, generate, verify; what fails is rewritten and tried again, twice at most.

Adaptive routing (Jeong et al. 2024, arXiv:2403.14403) around a prompted Self-RAG (Asai et al. 2023, arXiv:2310.11511): its
verdicts are one-token replies of a general model, not reflection tokens. How often a question may be tried again stands in the
edges, where no model has a say.
"""

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from rag_arena.params import Positive, Relevance, Share, Threshold, calibrated
from rag_arena.strategies.adaptive_self_rag.bounds import MOST_RETRIES
from rag_arena.strategies.base import StrategySettings

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph


class Settings(StrategySettings):
    """Retrieve when a router says so, keep what is relevant, answer, verify, and retry with a rewritten query."""

    k: Positive = Field(description="documents per query, and most in the prompt; shared with vanilla unless overridden")
    route_threshold: Share = Field(description="confidence that retrieval is needed from which a question is retrieved for")
    grader: Literal["llm", "cross_encoder"] = Field(description="who grades documents: the small model, or the reranker")
    relevance: Relevance = Field(description="sigmoid of the reranker's score, for grader: cross_encoder")
    keep_threshold: Threshold = Field(
        description="probability of relevance from which a document is kept", json_schema_extra=calibrated("relevance", "bad")
    )
    context_tokens: Positive = Field(description="longest first context, in tokens of four characters; later ones are no longer")
    grounded_threshold: Share = Field(description="probability from which an answer counts as supported by its documents")
    useful_threshold: Share = Field(description="probability from which an answer counts as answering the question")
    max_retries: Annotated[int, Field(ge=0, le=MOST_RETRIES)] = Field(description="attempts after the first")
    rewrite_tokens: Positive = Field(description="longest reply that holds rewritten queries")
    sub_queries: Positive = Field(description="most queries that one question may be split into")
    claims: Positive = Field(description="most unsupported claims that the rewriter is told")
    claims_tokens: Positive = Field(description="longest reply that lists unsupported claims")
    reuse_threshold: Share | None = Field(
        description="cosine to an earlier question over which its validated answer is reused; null: never, as it mixes questions"
    )

    @property
    def reranks(self) -> bool:
        """Only to grade."""
        return self.grader == "cross_encoder"

    @property
    def max_calls(self) -> int:
        """Route; per attempt an answer and two verdicts, a verdict taking up to two calls; a rewrite per retry; grades."""
        verdict, attempts = 2, self.max_retries + 1
        graded = self.k * (1 + self.max_retries * self.sub_queries) if self.grader == "llm" else 0
        return verdict + attempts * (1 + 2 * verdict) + self.max_retries + graded * verdict

    @property
    def one_by_one(self) -> bool:
        """A reused answer depends on the questions before it."""
        return self.reuse_threshold is not None


def build() -> "CompiledStateGraph[Any, Any, Any, Any]":
    """recall -> route -> retrieve -> grade -> generate -> verify -> assess; rewrite -> retrieve; admit."""
    from langgraph.graph import END, START, StateGraph

    from rag_arena.strategies.adaptive_self_rag.edges import after_assess, after_generate, after_grade, after_route, after_verify
    from rag_arena.strategies.adaptive_self_rag.nodes import admit, assess, grade, recall, retrieve, rewrite, route, verify
    from rag_arena.strategies.adaptive_self_rag.state import Loop
    from rag_arena.strategies.nodes.generate import generate
    from rag_arena.strategies.state import Toolbox
    from rag_arena.strategies.steps import verdict

    graph = StateGraph(Loop, context_schema=Toolbox)
    graph.add_node("recall", recall)
    graph.add_node("route", route)
    graph.add_node("retrieve", retrieve)
    graph.add_node("grade", grade)
    graph.add_node("rewrite", rewrite)
    graph.add_node("generate", generate)
    graph.add_node("verify", verify)
    graph.add_node("assess", assess)
    graph.add_node("admit", admit)
    graph.add_edge(START, "recall")
    graph.add_conditional_edges("recall", verdict("reused"), {True: END, False: "route"})
    graph.add_conditional_edges("route", after_route, ["retrieve", "generate"])
    graph.add_edge("retrieve", "grade")
    graph.add_conditional_edges("grade", after_grade, ["generate", "rewrite", "admit"])
    graph.add_edge("rewrite", "retrieve")
    graph.add_conditional_edges("generate", after_generate, ["verify", "admit", END])
    graph.add_conditional_edges("verify", after_verify, ["assess", "rewrite", "admit"])
    graph.add_conditional_edges("assess", after_assess, [END, "rewrite", "admit"])
    graph.add_edge("admit", END)
    return graph.compile()
