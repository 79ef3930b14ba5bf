"""A sweep that is interrupted ends, DVC's background workers included, and leaves nothing in the queue."""

import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.pipeline.workspace import create, small_dataset, stub_experiment
from tests.stub import Stub

SWEEP = ("arena", "sweep", "strategy.self_corrective.threshold", "0.45")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_sweep_leaves_no_process_and_no_queue(tmp_path: Path, server: Stub, number: int) -> None:
    experiment = stub_experiment(server.url, small_dataset(tmp_path / "dataset"), "[self_corrective]", "[dense]")
    workspace = create(tmp_path / "project", tmp_path / "ledger.sqlite", experiment)
    sweep = subprocess.Popen(
        SWEEP, cwd=workspace.folder, env=workspace.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    _wait_until(lambda: any("arena download" in command for command in _running(workspace.folder)))
    sweep.send_signal(number)  # to it alone, as `kill` does
    said = sweep.communicate(timeout=60)[1]
    assert sweep.returncode == 130, said
    assert "arena: interrupted" in said
    _wait_until(lambda: not _running(workspace.folder))
    assert "No experiment tasks in the queue" in workspace.run("dvc", "queue", "status").stdout


def _wait_until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def _running(folder: Path) -> list[str]:
    """Commands of the processes that work somewhere in a folder."""
    processes = [process.info for process in psutil.process_iter(["cwd", "cmdline"])]
    return [" ".join(found["cmdline"] or []) for found in processes if (found["cwd"] or "").startswith(str(folder))]
