"""embedder: what turns texts into vectors. One section per kind, each with a module of its name in `embedders/`."""

from typing import Annotated, Literal

from pydantic import Field

from rag_arena.params.checkpoint import Checkpoint
from rag_arena.params.sections import Positive, Section, Share
from rag_arena.params.served import Served


class Bm25(Section):
    """Lexical weights of the sparse lane."""

    k: Annotated[float, Field(gt=0)] = Field(description="term frequency saturation (k1)")
    b: Share = Field(description="length normalisation")
    average_words: Annotated[float, Field(gt=0)] = Field(description="document length taken as average, in words")


class MiniLmEmbedder(Section):
    """all-MiniLM-L6-v2 in process, with BM25 weights for the sparse lane."""

    kind: Literal["minilm"] = Field(description="all-MiniLM-L6-v2, int8 ONNX, from an installed package")
    max_tokens: Annotated[int, Field(ge=8, le=512)] = Field(description="tokens read of a text; the rest is cut")
    bm25: Bm25


class FlagEmbedder(Checkpoint):
    """bge-m3 in process: dense vectors and lexical weights in one pass."""

    kind: Literal["flag"] = Field(description="bge-m3, or a model of its layout, through FlagEmbedding")


class HttpEmbedder(Served):
    """Any server that speaks OpenAI's embeddings, with BM25 weights for the sparse lane."""

    kind: Literal["http"] = Field(description="POST base_url/embeddings, as OpenAI, vLLM, TEI, llama.cpp and Ollama speak it")
    dimensions: Positive = Field(description="length of the vectors; a reply of another length is refused")
    send_dimensions: bool = Field(description="ask the server for vectors of that length, where it can shorten them")
    query_prefix: str = Field(description="put before a question, for models that want it, as e5's 'query: '")
    document_prefix: str = Field(description="put before a document")
    bm25: Bm25


Embedder = Annotated[MiniLmEmbedder | FlagEmbedder | HttpEmbedder, Field(discriminator="kind")]
