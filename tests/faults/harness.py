"""Commands that are watched, interrupted and killed, and what they leave behind."""

import os
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import psutil

from rag_arena.llm.ledger import call_key, canonical
from tests.pipeline.workspace import Workspace
from tests.stub import Stub

RUN = ("snakemake", "--cores", "2")


class Started:
    """A command in a process group of its own, as a terminal would start it; what it prints goes to a file."""

    def __init__(self, workspace: Workspace, *command: str) -> None:
        self._said = workspace.folder.parent / f"printed-{time.monotonic_ns()}.txt"
        with self._said.open("wb") as out:
            self.process = subprocess.Popen(
                command, cwd=workspace.folder, env=workspace.environment(), stdout=out, stderr=out, start_new_session=True
            )

    @property
    def printed(self) -> str:
        return self._said.read_text()

    def end(self, timeout: float = 120) -> int:
        """Wait for it; its exit status."""
        return self.process.wait(timeout)

    def signal(self, number: int) -> None:
        """To the whole group."""
        os.killpg(self.process.pid, number)

    def kill(self) -> None:
        """Kill the whole group and wait until nothing of it is left."""
        self.signal(signal.SIGKILL)
        self.process.wait()
        until(lambda: not self.members(), "the killed group is gone")

    def members(self) -> list[int]:
        """Living processes of the group."""
        found = []
        for process in psutil.process_iter(["status"]):
            try:
                if os.getpgid(process.pid) == self.process.pid and process.info["status"] != psutil.STATUS_ZOMBIE:
                    found.append(process.pid)
            except ProcessLookupError:
                continue
        return found


def until(holds: Callable[[], bool], what: str, seconds: float = 60) -> None:
    """Poll until it holds."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.01)


def recorded(workspace: Workspace) -> set[str]:
    """Keys in the ledger."""
    if not workspace.ledger.exists():
        return set()
    with closing(sqlite3.connect(workspace.ledger, timeout=60)) as db:
        made = db.execute("SELECT 1 FROM sqlite_master WHERE name = 'calls'").fetchone()
        return {key for (key,) in db.execute("SELECT key FROM calls")} if made else set()


def keys(server: Stub, start: int = 0) -> list[str]:
    """Ledger keys of the requests that the server received."""
    identity = canonical({"base_url": server.url, "model": "stub"})
    return [call_key(identity, canonical(body)) for body in server.requests[start:]]


def half_written(workspace: Workspace) -> list[Path]:
    return [*workspace.folder.glob("data/**/.*.tmp"), *workspace.folder.glob("results/.*.tmp")]
