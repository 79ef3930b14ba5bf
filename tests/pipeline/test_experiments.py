"""`dvc exp run` over Hydra: one override, a queued sweep, and the table that compares them."""

import json
import re
import shlex
from typing import Any

import pytest

from tests.pipeline.workspace import Workspace, create, small_dataset, stub_experiment
from tests.stub import Stub

METRICS = ("recall", "precision", "f1", "contains", "correction_rate", "tokens_per_question")
SHOW = shlex.split(
    "env COLUMNS=120 dvc exp show --only-changed --hide-workspace --drop '(Created|State|Executor|rev|cell|.*focus|.*/.*)'"
)


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory, server: Stub) -> Workspace:
    """One cell, so that every experiment is short."""
    folder = tmp_path_factory.mktemp("experiments")
    experiment = stub_experiment(server.url, small_dataset(folder / "dataset"), strategies="[self_corrective]", modes="[dense]")
    return create(folder / "project", folder / "ledger.sqlite", experiment)


def test_sweeps_are_queued_run_and_compared(workspace: Workspace) -> None:
    workspace.run("dvc", "exp", "run", "--name", "high", "-S", "strategy.self_corrective.threshold=0.75")
    assert "threshold: 0.75" in workspace.params()
    workspace.run("git", "add", "dvc.lock", "params.yaml", "results/metrics.json")
    workspace.run("git", "commit", "--quiet", "--message", "run")
    swept = workspace.run("arena", "sweep", "strategy.self_corrective.threshold", "0.45", "0.65").stdout
    shown = json.loads(workspace.run("dvc", "exp", "show", "--json").stdout)
    thresholds = {
        e["revs"][0]["data"]["params"]["params.yaml"]["data"]["strategy"]["self_corrective"]["threshold"]
        for commit in shown
        for e in commit.get("experiments") or []
    }
    assert thresholds == {0.45, 0.65}
    table = workspace.run(*SHOW).stdout
    assert max(map(len, table.splitlines())) <= 120
    *metrics, key = _heading(table)
    assert key == "strategy.self_corrective.threshold"
    assert {*_moved(shown)} <= {*metrics} <= {*METRICS}
    compared = swept[swept.index("Experiment") - 200 :]
    assert max(map(len, compared.splitlines())) <= 120
    assert _heading(swept) == list(METRICS)
    assert re.findall(r"threshold-[0-9.]+", compared) == ["threshold-0.45", "threshold-0.65"]


def _heading(table: str) -> list[str]:
    return next(line for line in table.splitlines() if "Experiment" in line).split()[1:]


def _moved(shown: list[Any]) -> list[str]:
    """Metrics that differ between the experiments, in the order of metrics.json."""
    found = [e["revs"][0]["data"]["metrics"]["results/metrics.json"]["data"] for c in shown for e in c.get("experiments") or []]
    return [name for name in found[0] if len({metrics[name] for metrics in found}) > 1]
