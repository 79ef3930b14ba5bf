"""self_rag: retrieve on demand, write one continuation per document, criticise each, follow the best (Asai et al. 2023).

`variant: prompted` puts every reflection of the paper as a question to a general model and reads the probabilities of its
answers; `native` reads the reflection tokens of a served Self-RAG checkpoint. Formulas are in score.py.
"""

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from rag_arena.params import Positive, Relevance, Section, Share
from rag_arena.strategies.base import StrategySettings

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph

Weight = Annotated[float, Field(ge=0)]


class CritiqueWeights(Section):
    """What each critique counts beside the likelihood of the text."""

    relevant: Weight = Field(description="w_rel: the passage helps with the question")
    supported: Weight = Field(description="w_sup: the passage supports the text")
    useful: Weight = Field(description="w_use: the text answers the question")


class Settings(StrategySettings):
    """Retrieve on demand, write from every document, keep the best."""

    variant: Literal["prompted", "native"] = Field(
        description="prompted: reflections are questions to a general model; native: tokens of a served Self-RAG checkpoint"
    )
    k: Positive = Field(description="documents retrieved, each processed on its own; shared with vanilla unless overridden")
    retrieve: Literal["adaptive", "always", "never"] = Field(
        description="who decides that documents are needed: the model, or nobody"
    )
    threshold: Share = Field(description="retrieve when P(Yes) / (P(Yes) + P(No)) is over this (adaptive only)")
    form: Literal["short", "long"] = Field(
        description="short: the whole answer at once; long: sentence by sentence, by beam search"
    )
    segments: Positive = Field(description="most sentences of an answer (long form only)")
    segment_tokens: Positive = Field(description="longest sentence, in tokens (long form only)")
    beam_width: Positive = Field(description="paths kept after each sentence (long form only)")
    weights: CritiqueWeights
    grader: Literal["llm", "cross_encoder"] = Field(description="who grades the relevance of documents (prompted only)")
    relevance: Relevance = Field(description="sigmoid of the reranker's score (grader cross_encoder only)")

    @property
    def depth(self) -> int:
        """Most segments of an answer."""
        return 1 if self.form == "short" else self.segments

    @property
    def reads_raw_completions(self) -> bool:
        """The checkpoint's reflection tokens."""
        return self.variant == "native"

    @property
    def reranks(self) -> bool:
        """Only to grade."""
        return self.grader == "cross_encoder"

    @property
    def max_calls(self) -> int:
        """The first segment grows one path, the others as many as the beam is wide; a prompted verdict may take two calls."""
        verdict = 2 if self.variant == "prompted" else 0  # native: the critique comes with the text
        decide = max(1, verdict) if self.retrieve == "adaptive" else 0
        asked = {"llm": 3, "cross_encoder": 2}[self.grader]  # IsSup, IsUse and perhaps IsRel
        write = 1 + verdict if self.retrieve == "never" else self.k * (1 + asked * verdict)
        return (decide + write) * (1 + self.beam_width * (self.depth - 1))


def build() -> "CompiledStateGraph[Any, Any, Any, Any]":
    """decide -> (retrieve when needed) -> generate -> grade -> critique -> (decide anew until finished) -> conclude."""
    from langgraph.graph import END, START, StateGraph

    from rag_arena.strategies.self_rag.nodes import BeamState, conclude, critique, decide, generate, grade, retrieve
    from rag_arena.strategies.state import Toolbox
    from rag_arena.strategies.steps import verdict

    graph = StateGraph(BeamState, context_schema=Toolbox)
    graph.add_node("decide", decide)
    graph.add_node("retrieve", retrieve)
    graph.add_node("generate", generate)
    graph.add_node("grade", grade)
    graph.add_node("critique", critique)
    graph.add_node("conclude", conclude)
    graph.add_edge(START, "decide")
    graph.add_conditional_edges("decide", verdict("needed"), {True: "retrieve", False: "generate"})
    graph.add_edge("retrieve", "generate")
    graph.add_edge("generate", "grade")
    graph.add_edge("grade", "critique")
    graph.add_conditional_edges("critique", verdict("finished"), {True: "conclude", False: "decide"})
    graph.add_edge("conclude", END)
    return graph.compile()
