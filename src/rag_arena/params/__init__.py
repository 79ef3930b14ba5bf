"""The typed form of params.yaml."""

from rag_arena.params.checkpoint import Checkpoint
from rag_arena.params.dataset import Chunking, Dataset, HotpotQa, RagRouter, Synthetic, TwoWiki
from rag_arena.params.embedder import Bm25, Embedder, FlagEmbedder, HttpEmbedder, MiniLmEmbedder
from rag_arena.params.llm import Endpoint, Llm, Price, Transport, Web
from rag_arena.params.nearest import nearest
from rag_arena.params.reading import load, parse, read, section, validate
from rag_arena.params.reranker import CrossEncoderReranker, HttpReranker, MaxSimReranker, Reranker
from rag_arena.params.retrieval import MODES, NO_MODE, Hybrid, HybridRerank, Lane, Retrieval, Store
from rag_arena.params.root import Calibration, Grid, Judge, KnownTruth, Metrics, Params, Report, Run, Sample, Silver
from rag_arena.params.sections import (
    Money,
    Natural,
    Percentile,
    Positive,
    Relevance,
    Section,
    Share,
    Sigmoid,
    Threshold,
    calibrated,
    or_say,
)
from rag_arena.params.served import Served

__all__ = [
    "MODES",
    "NO_MODE",
    "Bm25",
    "Calibration",
    "Checkpoint",
    "Chunking",
    "CrossEncoderReranker",
    "Dataset",
    "Embedder",
    "Endpoint",
    "FlagEmbedder",
    "Grid",
    "HotpotQa",
    "HttpEmbedder",
    "HttpReranker",
    "Hybrid",
    "HybridRerank",
    "Judge",
    "KnownTruth",
    "Lane",
    "Llm",
    "MaxSimReranker",
    "Metrics",
    "MiniLmEmbedder",
    "Money",
    "Natural",
    "Params",
    "Percentile",
    "Positive",
    "Price",
    "RagRouter",
    "Relevance",
    "Report",
    "Reranker",
    "Retrieval",
    "Run",
    "Sample",
    "Section",
    "Served",
    "Share",
    "Sigmoid",
    "Silver",
    "Store",
    "Synthetic",
    "Threshold",
    "Transport",
    "TwoWiki",
    "Web",
    "calibrated",
    "load",
    "nearest",
    "or_say",
    "parse",
    "read",
    "section",
    "validate",
]
