# How Snakemake and DVC get along: DVC decides what is stale and runs it, Snakemake orders and parallelises.
import atexit
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import psutil
from filelock import FileLock, Timeout

from rag_arena import layout, sources
from rag_arena.compose import drift
from rag_arena.errors import ArenaError
from rag_arena.sources import labels
from rag_arena.wording import count

STALE = Path(".snakemake/stale")
TORN = Path(".snakemake/dvc.lock.torn")
CLAIMS = Path(".dvc/tmp/rwlock")
BEGAN = time.time()

# DVC decides whether the stage is stale; a stage that is not only gets its files' times renewed.
DVC = "dvc --wait-for-lock repro --quiet --single-item"


def tidy():
    """Remove what a killed DVC leaves in its way, unless another one is at work.

    It writes its table of claims in place, so that a kill may tear it, and believes a claim as long as any process has the number
    of the one that made it, which after a restart of the machine says nothing.
    """
    if not CLAIMS.exists():
        return
    from dvc.lock import Lock  # half a second to import, and rarely needed

    with Lock(f"{CLAIMS}.lock", wait=True):
        try:
            claims = json.loads(CLAIMS.read_text())
        except ValueError:
            claims = {}
        readers = [c for each in claims.get("read", {}).values() for c in each]
        if any(
            at_work(c["pid"]) for c in [*readers, *claims.get("write", {}).values()]
        ):
            return
        CLAIMS.unlink()
        for place in ("data", "results"):
            for temporary in Path(place).rglob(".*.tmp"):
                temporary.unlink()


def at_work(pid):
    """Is this process a DVC?"""
    try:
        return any("dvc" in word for word in psutil.Process(pid).cmdline())
    except psutil.Error:
        return False


def dvc_status():
    """What DVC finds stale, as JSON on the standard output."""
    return subprocess.run(
        ["dvc", "--wait-for-lock", "status", "--json"], capture_output=True, text=True
    )


def mark_stale():
    """Touch a file for every stage that DVC finds stale; each rule has its stage's file as an input.

    Snakemake compares files and parameters with its own last run, and so cannot see that DVC has run a stage otherwise since (a
    value changed, `dvc repro`, the value changed back). New content in the file makes the job run; it hands the stage to DVC.
    """
    status = dvc_status()
    if status.returncode and "dvc.lock'" in status.stderr:
        Path("dvc.lock").rename(TORN)
        print(
            f"note: dvc.lock was torn and is now {TORN}; DVC makes it anew",
            file=sys.stderr,
        )
        status = dvc_status()
    if busy := re.search(r"is busy.*\n *\(PID (\d+)\): (.*)", status.stderr):
        sys.exit(
            f"arena: DVC is at work in this folder (process {busy[1]}, {busy[2]}); wait for it to end, or end it"
        )
    if status.returncode:
        sys.exit(f"arena: dvc status: {status.stderr.strip()}")
    stale = json.loads(status.stdout or "{}")
    STALE.mkdir(parents=True, exist_ok=True)
    for stage in STAGES:
        mark = STALE / stage
        if stage in stale:
            mark.write_text(f"{time.time_ns()}\n")
        elif not mark.exists():
            mark.touch()
            os.utime(mark, (1, 1))  # older than any output


# Snakemake's own lock would outlive a killed run; this one ends with the process that holds it.
RUN_LOCK = FileLock(".snakemake/run.lock")


onerror:
    # Snakemake's own report follows what a stage said: what stages said is repeated as the last thing
    logs = [
        log for log in Path("logs").rglob("*.log") if log.stat().st_mtime > BEGAN
    ]
    lines = [line for log in logs for line in log.read_text().splitlines()]
    for said in sorted({line for line in lines if line.startswith("arena: ")}):
        atexit.register(print, said, file=sys.stderr)


if workflow.is_main_process:
    try:
        RUN_LOCK.acquire(timeout=0)
        # a rule whose input is gone would be left out in silence, and old numbers shown as new
        sources.check(PARAMS.dataset)
        labels.read(layout.LABELS)
        if changed := drift(Path("conf"), Path("params.yaml")):
            print(
                f"note: params.yaml differs from conf/ in {count(len(changed), 'key')}; see `arena compose --check`",
                file=sys.stderr,
            )
    except ArenaError as error:
        sys.exit(f"arena: {error}")
    except Timeout:
        sys.exit(
            "arena: another run is under way in this folder; wait for it to end, or end it"
        )
    tidy()
    mark_stale()
