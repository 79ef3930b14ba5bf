"""Which store for which size: python -m bench.stores PROJECT

Opens each store in this process on the project's index, asks it the first 20 questions, and prints seconds to open and
milliseconds per dense, sparse and fused query as a table. Ends with an error if two stores rank differently.
"""

import os
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from rag_arena import artifacts, embedders, layout
from rag_arena.params import Store, load
from rag_arena.retrieval.index import join
from rag_arena.retrieval.store import Ranking, open_store

BACKENDS = ("local", "edge")
ASKED, DEPTH, CONSTANT = 20, 20, 60


def main(project: str) -> None:
    """Print a row per store."""
    os.chdir(project)
    embedder = embedders.load(load(layout.PARAMS).embedder)
    index = join(artifacts.read(layout.CORPUS, artifacts.CORPUS), artifacts.read(layout.INDEX, artifacts.INDEX), embedder)
    questions = artifacts.read(layout.QUESTIONS, artifacts.QUESTIONS)["question"].to_pylist()[:ASKED]
    queries = [(embedder.dense(q), embedder.sparse_query(q)) for q in questions]
    print(f"| store, {len(index.documents):,} documents | s to open | ms dense | ms sparse | ms fused |")
    print("|---|---:|---:|---:|---:|")
    rankings: list[list[list[str]]] = []
    for backend in BACKENDS:
        start = time.perf_counter()
        store = open_store(Store(backend=backend), index)
        opened = time.perf_counter() - start
        lanes: list[Callable[[Any, Any], Ranking]] = [
            lambda vector, _, store=store: store.dense(vector, DEPTH, frozenset()),
            lambda _, terms, store=store: store.sparse(terms.indices, terms.values, DEPTH, frozenset()),
            lambda vector, terms, store=store: store.fused(vector, terms.indices, terms.values, DEPTH, CONSTANT, frozenset()),
        ]
        found, milliseconds = zip(*(timed(lane, queries) for lane in lanes), strict=True)
        rankings.append([*found[0], *found[1]])  # a store's own fusion may order ties as it likes
        print(f"| {' | '.join([backend, f'{opened:.1f}', *(f'{ms:.1f}' for ms in milliseconds)])} |")
    if any(other != rankings[0] for other in rankings[1:]):
        sys.exit("the stores rank differently")


def timed(lane: Callable[[Any, Any], Ranking], queries: list[tuple[Any, Any]]) -> tuple[list[list[str]], float]:
    """Document ids of every query, and the median of their milliseconds."""
    rankings, seconds = [], []
    for vector, terms in queries:
        start = time.perf_counter()
        ranking = lane(vector, terms)
        seconds.append(time.perf_counter() - start)
        rankings.append([doc_id for doc_id, _ in ranking])
    return rankings, 1000 * float(np.median(seconds))


if __name__ == "__main__":
    main(sys.argv[1])
