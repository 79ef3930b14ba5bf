"""Kills at any moment of a whole run: nothing recorded is lost or asked again, and the bytes are the same in the end."""

import random
import subprocess
import time

from tests.faults.harness import RUN, Started, half_written, keys, recorded
from tests.pipeline.workspace import Workspace
from tests.stub import Stub

KILLS = 30


def forget(workspace: Workspace) -> None:
    """Back to a fresh checkout with an empty ledger."""
    workspace.wipe()
    (workspace.folder / "dvc.lock").unlink(missing_ok=True)
    for part in workspace.ledger.parent.glob(f"{workspace.ledger.name}*"):
        part.unlink()


def test_thirty_kills_lose_no_recorded_call_and_change_no_byte(composed: Workspace, stub: Stub) -> None:
    workspace = composed
    start = time.monotonic()
    workspace.snakemake(cores=2)
    longest = 0.25 * (time.monotonic() - start)  # longer than any one stage takes, so that every sequence gets on
    undisturbed, asked = workspace.deterministic(), set(keys(stub))
    chance = random.Random(30)
    moments = [chance.uniform(0.1, longest) for _ in range(KILLS)]
    while moments:
        forget(workspace)
        complete = False
        while not complete:
            held, before = recorded(workspace), len(stub.requests)
            run = Started(workspace, *RUN)
            try:
                status = run.end(moments.pop() if moments else 120)
            except subprocess.TimeoutExpired:
                run.kill()
            else:
                assert status == 0, run.printed
                complete = True
            assert held.isdisjoint(keys(stub, before)), "a recorded request was sent again"
        assert workspace.deterministic() == undisturbed
        assert set(keys(stub)) == recorded(workspace) == asked
        assert half_written(workspace) == []
    assert "Nothing to be done" in workspace.snakemake().stderr
