"""The strategies that decide, through the whole pipeline at once: they finish, and ask for nothing that was asked before."""

import shutil
from pathlib import Path

import pyarrow.parquet as pq

from rag_arena import strategies
from tests.pipeline.workspace import Workspace, create, small_dataset, stub_experiment
from tests.stub import Stub

SIMPLE = {"no_retrieval", "self_corrective", "vanilla"}  # the other pipeline tests run these


def test_a_second_run_elsewhere_repeats_no_call_and_gives_the_same_bytes(tmp_path: Path, server: Stub) -> None:
    """With the first run's ledger: equal requests, therefore equal replies from an empty one too."""
    deciding = [name for name in strategies.known() if name not in SIMPLE]
    data = small_dataset(tmp_path / "dataset", per_type=3)
    experiment = stub_experiment(server.url, data, f"[{', '.join(deciding)}]", "[hybrid]")
    first = create(tmp_path / "first", tmp_path / "first.sqlite", experiment)
    first.snakemake()
    asked = len(server.requests)
    assert asked > 0
    board = pq.read_table(first.folder / "results/leaderboard.parquet").to_pylist()
    whole = {row["strategy"]: row for row in board if row["question_type"] == "all"}
    assert sorted(whole) == deciding
    assert all(row["n_answered"] == row["n_planned"] > 0 for row in whole.values())

    shutil.copy2(first.ledger, tmp_path / "second.sqlite")
    shutil.copytree(first.folder, tmp_path / "second")
    second = Workspace(tmp_path / "second", tmp_path / "second.sqlite")
    for made in ("data/runs", ".dvc/cache", ".snakemake"):
        shutil.rmtree(second.folder / made)
    second.run("snakemake", "--cores", "4", *(f"data/runs/{name}/hybrid/answers.parquet" for name in deciding))
    assert len(server.requests) == asked
    assert second.deterministic() == first.deterministic()
