# What the rules share: the grid, and the code that a stage depends on.
import os
import sys
from pathlib import Path

# Rules call `dvc` and `arena` of the environment that runs Snakemake, activated or not.
os.environ.update(
    PATH=os.pathsep.join([str(Path(sys.executable).parent), *os.get_exec_path()]),
    ARENA_DRIFT_CHECKED="1",  # said below, once for all stages
)

MODES = config["grid"]["modes"]
STRATEGIES = config["grid"]["strategies"]
FLOOR = config["grid"]["floor"]
RETRIEVING = [f"{s}/{m}" for s in STRATEGIES for m in MODES]
CELLS = [f"{s}/none" for s in FLOOR] + RETRIEVING
CALIBRATED = ["retrievals", "sigmoids", "thresholds", "candidates"]
RUN_TABLES = ["answers", "calls", "timings"]
SRC = "src/rag_arena"


wildcard_constraints:
    strategy="[a-z0-9_]+",
    retrieval="|".join(MODES) or "none",


def code(*places):
    """The source and prompt files below src/rag_arena that a stage depends on, each once."""
    files = []
    for place in places:
        path = Path(SRC, place)
        files += sorted(path.rglob("*")) if path.is_dir() else [path]
    return [str(f) for f in dict.fromkeys(files) if f.suffix in (".py", ".md")]


def files_of(place):
    """A file, or the files below a folder: the user's dataset, which both runners track whole.

    A name with braces would be a wildcard to Snakemake; such a file is left to DVC, which is asked what is stale.
    """
    below = [str(f) for f in sorted(Path(place).rglob("*")) if f.is_file()]
    return [f for f in below or [place] if "{" not in f]


STAGES = [
    *("download", "index", "sample", "judge_truth", "aggregate"),
    *(
        f"{kind}@{mode}"
        for kind in ("retrieve", "calibrate", "train")
        for mode in MODES
    ),
    *(
        f"{kind}@{s}-{m}"
        for kind in ("resolve", "run", "judge")
        for s in STRATEGIES
        for m in MODES
    ),
    *(f"{kind}_floor@{s}" for kind in ("run", "judge") for s in FLOOR),
]


def strategy_code(wildcards):
    """What a strategy alone reads: its graph and its prompts."""
    return code(f"strategies/{wildcards.strategy}")


LLM_CODE = ["artifacts", "llm", "metering.py", "records.py"]
JUDGE_CODE = [
    *LLM_CODE,
    "decisions.py",
    "scoring/answers.py",
    "scoring/judge.py",
    "stages/judge.py",
]
GRAPH_CODE = [
    "decisions.py",
    "strategies/nodes",
    *(
        f"strategies/{f}.py"
        for f in ("__init__", "base", "prompts", "sentences", "state", "steps")
    ),
]
EMBEDDING_CODE = [
    "embedders",
    *(f"llm/{f}.py" for f in ("exchange", "keys", "ledger", "served")),
    "records.py",
]
RETRIEVAL_CODE = [
    *EMBEDDING_CODE,
    "rerankers",
    "retrieval",
    "llm/lookups.py",
    "metering.py",
]
