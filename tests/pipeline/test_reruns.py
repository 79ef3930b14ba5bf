"""What really runs again, with real Snakemake, DVC, Qdrant and ragas, on a stub endpoint that counts the requests."""

import re

import pyarrow.parquet as pq
import pytest

from tests.pipeline.workspace import Workspace, create, small_dataset, stub_experiment
from tests.stub import Stub

NOTHING = "Nothing to be done"
UP_TO_DATE = "Data and pipelines are up to date."


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory, server: Stub) -> Workspace:
    """A grid of one mode, since every stage takes seconds to start; another mode has its settings and waits."""
    folder = tmp_path_factory.mktemp("reruns")
    experiment = stub_experiment(server.url, small_dataset(folder / "dataset"))
    return create(folder / "project", folder / "ledger.sqlite", f"{experiment}grid:\n  modes: [dense]\n")


def _ran(output: str) -> set[str]:
    return set(re.findall(r"Running stage '([^']+)'", output))


def test_reruns_are_minimal_and_free(workspace: Workspace, server: Stub) -> None:
    """One workspace's life: each step starts from what the step before left."""
    workspace.snakemake(cores=1)  # side by side, two cells may both ask what neither has recorded yet
    first, asked = workspace.deterministic(), len(server.requests)
    assert len({str(body) for body in server.requests}) == asked, "an identical request was sent twice"

    # A finished run leaves nothing to do, for either runner.
    assert NOTHING in workspace.snakemake().stderr
    assert UP_TO_DATE in workspace.run("dvc", "repro").stdout

    # Everything deleted, the cache too: the other runner first. No request, the same bytes.
    workspace.wipe()
    workspace.run("dvc", "repro")
    assert workspace.deterministic() == first
    assert len(server.requests) == asked
    assert NOTHING in workspace.snakemake().stderr

    # A threshold concerns its own cells and what follows them.
    workspace.replace("params.yaml", "threshold: auto", "threshold: 0.95")
    ran = _ran(workspace.run("dvc", "repro").stdout)
    own_cell = "run@self_corrective-dense"
    assert {own_cell} <= ran <= _stages_of("self_corrective") | {"aggregate"}
    assert UP_TO_DATE in workspace.run("dvc", "repro").stdout
    assert NOTHING in workspace.snakemake().stderr
    workspace.replace("params.yaml", "threshold: 0.95", "threshold: auto")
    workspace.snakemake()
    assert workspace.deterministic() == first

    # A calibration that moves no number concerns no cell.
    workspace.replace("params.yaml", "  - 0.75\n", "  - 0.75\n  - 0.8\n")
    workspace.run("arena", "label", "dense")
    assert _ran(workspace.run("dvc", "repro").stdout) == {"calibrate@dense", "aggregate"}

    # One that moves a threshold concerns the cells that have it in force.
    before = workspace.resolved("self_corrective", "dense")
    sheet = workspace.folder / "data/labels.csv"
    header, *rows = sheet.read_text().splitlines()
    sheet.write_text("\n".join([header, *(f"{row}no" for row in rows), ""]))
    ran = _ran(workspace.run("dvc", "repro").stdout)
    assert workspace.resolved("self_corrective", "dense") != before
    assert {"calibrate@dense", "resolve@self_corrective-dense", "run@self_corrective-dense"} <= ran
    assert not any(stage.startswith(("run@vanilla", "judge@vanilla", "run_floor")) for stage in ran)

    # A prompt concerns the cells that read it, and only calls whose text changed are made.
    asked = len(server.requests)
    workspace.replace("src/rag_arena/strategies/shared/closed_book.md", "briefly", "in brief")
    ran = _ran(workspace.run("dvc", "repro").stdout)
    assert "run_floor@no_retrieval" in ran
    assert {stage for stage in ran if stage.startswith("run")} == {"run_floor@no_retrieval", "run@vanilla-dense", own_cell}
    new = [prompt for prompt in server.prompts[asked:] if prompt.endswith("Answer in brief.")]
    assert len(new) == pq.read_table(workspace.folder / "data/sample/evaluation.parquet").num_rows
    assert all("Answer briefly." not in prompt for prompt in server.prompts[asked:])

    # A prompt that one strategy alone reads concerns nobody else.
    asked = len(server.requests)
    workspace.replace("src/rag_arena/strategies/self_corrective/rewrite.md", "short", "brief")
    assert _ran(workspace.run("dvc", "repro").stdout) - {"aggregate"} == {own_cell}
    assert len(server.requests) == asked, "the correction is widen: nobody asked for a rewrite"

    # A mode put into the grid concerns no cell of another; one taken out leaves no row behind, and nothing else to do.
    workspace.replace("params.yaml", "  - self_corrective\n  modes:\n  - dense\n", "  modes:\n  - dense\n  - hybrid\n")
    ran = _ran(workspace.run("dvc", "repro").stdout) - {"aggregate"}
    assert "run@vanilla-hybrid" in ran
    assert all(stage.endswith("hybrid") for stage in ran)
    assert _modes(workspace, "leaderboard") == {"dense", "hybrid", "none"}
    assert pq.read_table(workspace.folder / "results/disagreement.parquet").num_rows > 0
    workspace.replace("params.yaml", "  modes:\n  - dense\n", "  modes:\n")
    assert "aggregate" in workspace.snakemake().stderr
    assert _modes(workspace, "leaderboard") == {"hybrid", "none"}
    assert _modes(workspace, "retrieval_quality") == {"hybrid"}
    assert pq.read_table(workspace.folder / "results/disagreement.parquet").num_rows == 0


def _modes(workspace: Workspace, table: str) -> set[str]:
    return set(pq.read_table(workspace.folder / f"results/{table}.parquet")["retrieval"].to_pylist())


def _stages_of(strategy: str) -> set[str]:
    return {f"{kind}@{strategy}-dense" for kind in ("resolve", "run", "judge")}
