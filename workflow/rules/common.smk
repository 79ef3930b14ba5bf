# What the rules share: the grid, the code that a stage depends on, and how a rule hands its stage to DVC.
import json
import os
import subprocess
import sys
import time
from pathlib import Path

from filelock import FileLock, Timeout
from snakemake.exceptions import WorkflowError

from rag_arena.compose import drift
from rag_arena.errors import ArenaError

# Rules call `dvc` and `arena` of the environment that runs Snakemake, activated or not.
os.environ.update(
    PATH=os.pathsep.join([str(Path(sys.executable).parent), *os.get_exec_path()]),
    ARENA_DRIFT_CHECKED="1",  # said below, once for all stages
)

MODES = config["grid"]["modes"]
STRATEGIES = config["grid"]["strategies"]
FLOOR = config["grid"]["floor"]
CELLS = [f"{s}/none" for s in FLOOR] + [f"{s}/{m}" for s in STRATEGIES for m in MODES]
RUN_TABLES = ["answers", "calls", "timings"]
SRC = "src/rag_arena"
STALE = Path(".snakemake/stale")

# DVC decides whether the stage is stale; a stage that is not only gets its files' times renewed.
DVC = "dvc --wait-for-lock repro --quiet --single-item"


wildcard_constraints:
    strategy="[a-z0-9_]+",
    retrieval="|".join(MODES) or "none",


def code(*places):
    """The source and prompt files below src/rag_arena that a stage depends on."""
    files = []
    for place in places:
        path = Path(SRC, place)
        files += sorted(path.rglob("*")) if path.is_dir() else [path]
    return [str(f) for f in files if f.suffix in (".py", ".md")]


STAGES = [
    *("download", "index", "sample", "judge_truth", "aggregate"),
    *(f"retrieve@{mode}" for mode in MODES),
    *(
        f"{kind}@{s}-{m}"
        for kind in ("run", "judge")
        for s in STRATEGIES
        for m in MODES
    ),
    *(f"{kind}_floor@{s}" for kind in ("run", "judge") for s in FLOOR),
]


def mark_stale():
    """Touch a file for every stage that DVC finds stale; each rule has its stage's file as an input.

    Snakemake compares files and parameters with its own last run, and so cannot see that DVC has run a stage otherwise since (a
    value changed, `dvc repro`, the value changed back). New content in the file makes the job run; it hands the stage to DVC.
    """
    status = subprocess.run(
        ["dvc", "--wait-for-lock", "status", "--json"], capture_output=True, text=True
    )
    if status.returncode:
        raise WorkflowError(f"dvc status: {status.stderr.strip()}")
    stale = json.loads(status.stdout or "{}")
    STALE.mkdir(parents=True, exist_ok=True)
    for stage in STAGES:
        mark = STALE / stage
        if stage in stale:
            mark.write_text(f"{time.time_ns()}\n")
        elif not mark.exists():
            mark.touch()
            os.utime(mark, (1, 1))  # older than any output


def strategy_code(wildcards):
    """What a strategy alone reads: its graph and its prompts."""
    return code(f"strategies/{wildcards.strategy}")


# Snakemake's own lock would outlive a killed run; this one ends with the process that holds it.
RUN_LOCK = FileLock(".snakemake/run.lock")

if workflow.is_main_process:
    try:
        RUN_LOCK.acquire(timeout=0)
        for line in drift(Path("conf"), Path("params.yaml")):
            print(f"note: params.yaml differs from conf/ in {line}", file=sys.stderr)
    except ArenaError as error:
        raise WorkflowError(str(error))
    except Timeout:
        raise WorkflowError(
            "another run is under way in this folder; wait for it to end, or end it"
        )
    mark_stale()

LLM_CODE = ["artifacts.py", "llm", "metering.py"]
GRAPH_CODE = [f"strategies/{f}.py" for f in ("nodes", "prompts", "state")]
RETRIEVAL_CODE = ["embedders", "rerankers", "retrieval"]
