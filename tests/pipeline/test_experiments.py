"""`dvc exp run` over Hydra: one override, a queued sweep, and the table that compares them."""

import json

from tests.pipeline.workspace import Workspace

SHOW = ("dvc", "exp", "show", "--only-changed", "--no-pager", "--hide-workspace", "--drop", "params.yaml:(grid|experiment).*")


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
    assert "threshold" in table
