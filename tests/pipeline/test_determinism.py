"""The smoke experiment on real parts (SmolLM2, MiniLM, Qdrant, ragas, snakemake, dvc), on less data and in fewer cells."""

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow.parquet as pq

from tests.pipeline.workspace import Workspace, create, small_dataset


def _smoke(folder: Path, cores: int) -> Workspace:
    workspace = create(folder / "project", folder / "ledger.sqlite")
    data = ("dataset=folder", f"dataset.path={small_dataset(folder / 'dataset', per_type=2)}")
    grid = ("strategy=[self_corrective,no_retrieval]", "retrieval=[hybrid_rerank]")
    workspace.run("arena", "compose", "experiment=smoke", *data, *grid)
    workspace.snakemake(cores=cores)
    return workspace


def test_one_core_and_four_give_the_same_bytes_from_empty_ledgers(tmp_path: Path) -> None:
    """Both at once, so that they also disturb each other's timing as much as they can."""
    with ThreadPoolExecutor() as pool:
        one, four = pool.map(_smoke, (tmp_path / "one", tmp_path / "four"), (1, 4))
    made = one.deterministic()
    assert made == four.deterministic()
    assert {Path(path).name for path in made} >= {"answers.parquet", "hits.parquet", "index.parquet", "leaderboard.parquet"}

    board = pq.read_table(one.folder / "results/leaderboard.parquet").to_pylist()
    whole = [row for row in board if row["question_type"] == "all"]
    assert len(whole) == 1 + 1
    assert all(row["n_answered"] == row["n_planned"] == 3 and row["n_failed"] == 0 for row in whole)
    assert all(row["tokens_in"] > 0 and row["llm_calls"] == 3 for row in whole)

    table = one.run("arena", "leaderboard").stdout
    assert max(map(len, table.splitlines())) <= 120
    assert "smollm2-135m-instruct" in table
    calls = sum(pq.read_table(path).num_rows for path in one.folder.glob("data/runs/*/*/calls.parquet"))
    assert f": {_distinct(one)} calls" in one.run("arena", "ledger", "stats").stdout
    assert calls == 3 * len(whole)


def _distinct(workspace: Workspace) -> int:
    """Calls in the ledger: each cell's own, the judge's, and the known pairs', identical ones once."""
    with sqlite3.connect(workspace.ledger) as db:
        return int(db.execute("SELECT COUNT(DISTINCT key) FROM calls").fetchone()[0])
