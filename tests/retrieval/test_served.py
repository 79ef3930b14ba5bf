"""The stages up to calibration with an embedder and a reranker behind endpoints."""

import math

import numpy as np
import pytest

from rag_arena import artifacts, layout
from tests.project import CORPUS, OVERRIDES, QUESTIONS, Project
from tests.servedstub import DIMENSIONS, logit, served, vector
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
