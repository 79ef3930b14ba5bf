"""`dvc exp run` over Hydra: one override, a queued sweep, and the table that compares them."""

import json
import shlex
from typing import Any

from tests.pipeline.workspace import Workspace

SHOW = shlex.split("env COLUMNS=120 dvc exp show --only-changed --hide-workspace --drop '(Created|State|Executor|rev|.*/.*)'")


def test_sweeps_are_queued_run_and_compared(workspace: Workspace) -> None:
    workspace.run("dvc", "exp", "run", "--name", "start")
    workspace.run("git", "add", "dvc.lock", "params.yaml", "results/metrics.json")
    workspace.run("git", "commit", "--quiet", "--allow-empty", "--message", "run")
    workspace.run("dvc", "exp", "run", "--name", "high", "-S", "strategy.self_corrective.threshold=0.75")
    assert "threshold: 0.75" in workspace.params()
    workspace.run("dvc", "exp", "run", "--queue", "-S", "strategy.self_corrective.threshold=0.45,0.65")
    workspace.run("dvc", "exp", "run", "--run-all", "--jobs", "1")
    shown = json.loads(workspace.run("dvc", "exp", "show", "--json").stdout)
    thresholds = {
        e["revs"][0]["data"]["params"]["params.yaml"]["data"]["strategy"]["self_corrective"]["threshold"]
        for commit in shown
        for e in commit.get("experiments") or []
    }
    assert thresholds == {0.75, 0.45, 0.65}
    table = workspace.run(*SHOW).stdout
    assert max(map(len, table.splitlines())) <= 120
    heading = next(line for line in table.splitlines() if "Experiment" in line)
    assert heading.split()[1:] == [*_moved(shown), "strategy.self_corrective.threshold"]


def _moved(shown: list[Any]) -> list[str]:
    """Metrics that differ between the experiments, in the order of metrics.json."""
    found = [e["revs"][0]["data"]["metrics"]["results/metrics.json"]["data"] for c in shown for e in c.get("experiments") or []]
    return [name for name in found[0] if len({metrics[name] for metrics in found}) > 1]
