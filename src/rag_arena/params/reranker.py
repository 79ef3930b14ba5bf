"""reranker: what takes a second look at candidates, each kind with a module of its name in `rerankers/`.

All have a sigmoid that makes their score a probability: it is what hybrid_rerank reads scores with.
"""

from typing import Annotated, Literal

from pydantic import Field

from rag_arena.params.checkpoint import Checkpoint
from rag_arena.params.sections import Sigmoid
from rag_arena.params.served import Served


class MaxSimReranker(Sigmoid):
    """Late interaction, which needs an embedder with token vectors."""

    kind: Literal["maxsim"] = Field(description="late interaction over the embedder's token vectors")


class CrossEncoderReranker(Checkpoint, Sigmoid):
    """A cross-encoder in process. Its score is a logit: tau 0 and temperature 1 are the model's own sigmoid."""

    kind: Literal["cross_encoder"] = Field(description="bge-reranker-v2-m3, or a model of its layout, through FlagEmbedding")


class HttpReranker(Served, Sigmoid):
    """A rerank endpoint. Its score is a logit, as a cross-encoder's."""

    kind: Literal["http"] = Field(description="POST base_url/rerank, as TEI, vLLM, Jina and Cohere speak it")
    documents_key: Literal["documents", "texts"] = Field(
        description="what the server calls the documents: texts in TEI, documents elsewhere"
    )
    scores: Literal["logits", "probabilities"] = Field(
        description="what the server's scores are; probabilities (0 to 1) are taken back to logits"
    )


Reranker = Annotated[MaxSimReranker | CrossEncoderReranker | HttpReranker, Field(discriminator="kind")]
