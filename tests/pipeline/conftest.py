"""One workspace per module, since a run through the real runners takes half a minute."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.pipeline.workspace import Workspace, create, small_dataset, stub_experiment
from tests.stub import Stub, serve


@pytest.fixture(scope="module")
def server() -> Iterator[Stub]:
    """A chat-completions server for the whole module."""
    with serve() as running:
        yield running


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory, server: Stub) -> Workspace:
    """A composed workspace on a small dataset; nothing has run yet."""
    folder: Path = tmp_path_factory.mktemp("arena")
    dataset = small_dataset(folder / "dataset")
    return create(folder / "project", folder / "ledger.sqlite", stub_experiment(server.url, dataset))
