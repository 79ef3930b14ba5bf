"""The stages up to calibration with an embedder and a reranker behind endpoints."""

import hashlib
import math
import subprocess
import time
from dataclasses import replace

import numpy as np
import pytest

from rag_arena import artifacts, layout
from tests.project import CORPUS, OVERRIDES, PROCESS, QUESTIONS, Project
from tests.servedstub import DIMENSIONS, logit, served, served_embedder, served_reranker, vector
from tests.stub import Stub, with_json

MODES = ("dense", "hybrid_rerank")


@pytest.fixture
def stages(project: Project, stub: Stub) -> Project:
    """A small project whose index, hits and calibration were made through endpoints."""
    stub.behave = served
    root = stub.url.removesuffix("/v1")
    chosen = [override for override in OVERRIDES if not override.startswith("retrieval=")]
    served_models = [
        *("embedder=http", f"embedder.base_url={stub.url}", "embedder.model=e", f"embedder.dimensions={DIMENSIONS}"),
        *("reranker=http", f"reranker.base_url={root}", "reranker.model=r"),
    ]
    project.ok("compose", *chosen, f"retrieval=[{','.join(MODES)}]", *served_models)
    project.ok("index")
    for mode in MODES:
        project.ok("retrieve", mode)
        project.ok("calibrate", mode)
    return project


def _hits(stages: Project, mode: str) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for row in artifacts.read(stages.folder / layout.hits(mode), artifacts.HITS).to_pylist():
        found.setdefault(row["question_id"], {})[row["doc_id"]] = row["score"]
    return found


def _cosine(one: list[float], other: list[float]) -> float:
    a, b = np.array(one), np.array(other)
    return float(a @ b / np.sqrt(a @ a) / np.sqrt(b @ b))


def test_hits_are_those_of_the_servers_vectors_and_scores(stages: Project) -> None:
    texts = {row["doc_id"]: f"{row['title']}\n{row['text']}" for row in CORPUS}
    dense, reranked = (_hits(stages, mode) for mode in MODES)
    for question_id, text, *_ in QUESTIONS:
        cosines = {doc_id: _cosine(vector(text), vector(document)) for doc_id, document in texts.items()}
        assert dense[question_id] == pytest.approx(cosines, abs=1e-6)
        relevance = {doc_id: 1 / (1 + math.exp(-logit(text, document))) for doc_id, document in texts.items()}
        assert reranked[question_id] == pytest.approx({d: p for d, p in relevance.items() if p >= 0.15}, abs=1e-9)


def test_every_stage_again_asks_no_server(stages: Project, stub: Stub) -> None:
    before = {mode: _hits(stages, mode) for mode in MODES}
    stub.behave = lambda _: with_json({}, 500)
    asked = len(stub.requests)
    stages.ok("index")
    for mode in MODES:
        stages.ok("retrieve", mode)
        stages.ok("calibrate", mode)
    assert len(stub.requests) == asked
    assert {mode: _hits(stages, mode) for mode in MODES} == before
    assert not (stages.folder / layout.INDEX_PARTS).exists()


def test_an_index_that_was_killed_goes_on_where_it_stopped(project: Project, stub: Stub) -> None:
    rows = [{"doc_id": f"d{i:02}", "title": "", "text": f"text {i}", "metadata": ()} for i in range(64)]
    project.write("data/corpus.parquet", artifacts.CORPUS, rows)
    project.change({"embedder": served_embedder(stub.url, batch_size=1), "reranker": served_reranker(stub.url)})
    stub.behave = served
    project.ok("index")
    whole = (project.folder / layout.INDEX).read_bytes()
    (project.folder / layout.INDEX).unlink()
    stub.behave = lambda body: replace(served(body), pause_s=0.05)
    parts = project.folder / layout.INDEX_PARTS
    process = subprocess.Popen([*PROCESS, "index"], cwd=project.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not list(parts.glob("*.parquet")):
        assert process.poll() is None
        time.sleep(0.01)
    process.kill()
    process.wait()
    pieces = [artifacts.read(file, artifacts.VECTORS) for file in parts.glob("*.parquet")]
    kept = {digest for piece in pieces for digest in piece["text_sha256"].to_pylist()}
    stub.behave = served
    stub.requests.clear()
    project.ok("index")
    asked = {hashlib.sha256(text.encode()).hexdigest() for request in stub.requests for text in request["input"]}
    assert 0 < len(kept) < len(rows)
    assert asked.isdisjoint(kept)
    assert (project.folder / layout.INDEX).read_bytes() == whole
