"""retrieve: first-pass hits of one mode for every question of the dataset."""

import time

import pyarrow as pa

from rag_arena import artifacts
from rag_arena.params import Params
from rag_arena.progress import track
from rag_arena.retrieval.retriever import open_retrievers


def retrieve(mode: str, params: Params, corpus: pa.Table, index: pa.Table, questions: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Hits and seconds per question. Every question is asked, not the sample alone: retrieval can be judged on all of them."""
    opened = open_retrievers(params, corpus, index)
    retriever = opened.of(mode)
    depth = params.retrieval.mode(mode).candidates
    hits, timings = [], []
    opened.embedder.prepare(questions["question"].to_pylist())
    for row in track(f"retrieve {mode}", questions.to_pylist(), questions.num_rows):
        start = time.perf_counter()
        found = retriever.search(row["question"], depth, where=tuple(row["where"]))
        timings.append({"question_id": row["question_id"], "seconds": time.perf_counter() - start})
        hits += [
            {"question_id": row["question_id"], "rank": rank, "doc_id": hit.doc_id, "score": hit.score, "cosine": hit.cosine}
            for rank, hit in enumerate(found, 1)
        ]
    return artifacts.table(artifacts.HITS, hits), artifacts.table(artifacts.SEARCH_TIMINGS, timings)
