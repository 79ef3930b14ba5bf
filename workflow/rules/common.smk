# What the rules share: the grid, the code that a stage depends on, and how a rule hands its stage to DVC.
import os
import sys
from pathlib import Path

from snakemake.exceptions import WorkflowError

from rag_arena.compose import drift
from rag_arena.errors import ArenaError

# Rules call `dvc` and `arena` of the environment that runs Snakemake, activated or not.
os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"

if "ARENA_DRIFT_CHECKED" not in os.environ:
    os.environ["ARENA_DRIFT_CHECKED"] = "1"  # once per run, not once per job
    try:
        for line in drift(Path("conf"), Path("params.yaml")):
            print(f"note: params.yaml differs from conf/ in {line}", file=sys.stderr)
    except ArenaError as error:
        raise WorkflowError(str(error))

MODES = config["grid"]["modes"]
STRATEGIES = config["grid"]["strategies"]
FLOOR = config["grid"]["floor"]
CELLS = [f"{s}/none" for s in FLOOR] + [f"{s}/{m}" for s in STRATEGIES for m in MODES]
RUN_TABLES = ["answers", "calls", "timings"]
SRC = "src/rag_arena"

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


LLM_CODE = ["artifacts.py", "llm", "metering.py"]
GRAPH_CODE = [f"strategies/{f}.py" for f in ("nodes", "prompts", "state")]
RETRIEVAL_CODE = ["embedders", "rerankers", "retrieval"]

