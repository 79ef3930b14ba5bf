"""One workspace whose data stages are done; a test gets a copy of it and a server of its own behaviour."""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.pipeline.workspace import Workspace, create, small_dataset, stub_experiment
from tests.stub import Answer, Body, Stub, sensible, serve

PREPARED = ("data/resolved/vanilla/dense.parquet", "data/sample/evaluation.parquet")


def slowly(body: Body) -> Answer:
    """A reply that takes long enough for a kill to land inside the call."""
    return replace(sensible(body), pause_s=0.05)


@pytest.fixture(scope="module")
def server() -> Iterator[Stub]:
    """A chat-completions server for the whole module."""
    with serve() as running:
        yield running


@pytest.fixture
def stub(server: Stub) -> Stub:
    """The server, well, and with nothing asked yet."""
    server.behave = slowly
    server.requests.clear()
    server.headers.clear()
    return server


@pytest.fixture(scope="module")
def composed(tmp_path_factory: pytest.TempPathFactory, server: Stub) -> Workspace:
    """Two cells over three questions: nothing has run yet."""
    folder: Path = tmp_path_factory.mktemp("faults")
    dataset = small_dataset(folder / "dataset", per_type=3, distractors=4)
    experiment = stub_experiment(server.url, dataset, strategies="[vanilla, no_retrieval]", modes="[dense]")
    for old, new in (
        ("evaluation: 6", "evaluation: 3"),
        (
            "    model: stub\njudge:\n",
            "    model: stub\n  transport:\n    max_retries: 1\njudge:\n  known_truth:\n    questions: 1\n",
        ),
        ("      model: stub\n", "      model: stub\n    transport:\n      max_retries: 1\n"),
    ):
        assert old in experiment
        experiment = experiment.replace(old, new)
    return create(folder / "project", folder / "ledger.sqlite", experiment)


@pytest.fixture(scope="module")
def prepared(composed: Workspace) -> Workspace:
    """Everything made that needs no model."""
    composed.run("snakemake", "--cores", "2", *PREPARED)
    return composed


@pytest.fixture
def workspace(prepared: Workspace, tmp_path: Path, stub: Stub) -> Workspace:
    """A copy of the prepared workspace with an empty ledger."""
    shutil.copytree(prepared.folder, tmp_path / "project", symlinks=True)
    return Workspace(tmp_path / "project", tmp_path / "ledger.sqlite")
