"""The typed form of params.yaml."""

from rag_arena.params.dataset import Dataset
from rag_arena.params.llm import Endpoint, Llm, Price, Transport, Web
from rag_arena.params.nearest import nearest
from rag_arena.params.reading import load, parse, read, section, validate
from rag_arena.params.retrieval import MODES, NO_MODE, Bm25, Embedder, Hybrid, HybridRerank, Lane, Reranker, Retrieval, Store
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

__all__ = [
    "MODES",
    "NO_MODE",
    "Bm25",
    "Calibration",
    "Dataset",
    "Embedder",
    "Endpoint",
    "Grid",
    "Hybrid",
    "HybridRerank",
    "Judge",
    "KnownTruth",
    "Lane",
    "Llm",
    "Metrics",
    "Money",
    "Natural",
    "Params",
    "Percentile",
    "Positive",
    "Price",
    "Relevance",
    "Report",
    "Reranker",
    "Retrieval",
    "Run",
    "Sample",
    "Section",
    "Share",
    "Sigmoid",
    "Silver",
    "Store",
    "Threshold",
    "Transport",
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
