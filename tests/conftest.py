"""Fixtures that many tests share. No test reads the user's ledger, keys or cache."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from rag_arena.llm.ledger import Ledger
from rag_arena.params import Params, validate
from tests import project as projects
from tests.disk import small_disk as small_disk
from tests.project import Project
from tests.stub import Stub, serve

ROOT = Path(__file__).parent.parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whole-pipeline tests first: they take minutes, and the many fast ones fill the other worker meanwhile."""
    items.sort(key=lambda item: not {"pipeline", "faults"} & set(item.path.parts))


@pytest.fixture(autouse=True)
def _own_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARENA_LEDGER", str(tmp_path / "ledger.sqlite"))
    monkeypatch.setenv("ARENA_DRIFT_CHECKED", "1")
    monkeypatch.setenv("OPENAI_API_KEY", "stub-key")


@pytest.fixture(scope="session")
def params() -> Params:
    """Plain strategies under every mode, with the defaults of everything else."""
    from rag_arena.compose import compose

    chosen = ["strategy=[vanilla,self_corrective,no_retrieval]", "retrieval=[dense,sparse,hybrid,hybrid_rerank]"]
    return validate(yaml.safe_load(compose(ROOT / "conf", chosen)), "conf")


@pytest.fixture
def stub() -> Iterator[Stub]:
    """A chat-completions server."""
    with serve() as running:
        yield running


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    """An empty ledger."""
    opened = Ledger(tmp_path / "ledger.sqlite")
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def small_project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project on four hand-made documents and questions, not to be changed."""
    return projects.create(tmp_path_factory.mktemp("small") / "project")


@pytest.fixture
def project(small_project: Project, tmp_path: Path) -> Project:
    """A small project of the test's own."""
    shutil.copytree(small_project.folder, tmp_path / "project")
    return Project(tmp_path / "project")
