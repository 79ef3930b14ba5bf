"""Where every artifact lies, relative to the project's folder."""

from pathlib import Path

from rag_arena.records import Cell

PARAMS = Path("params.yaml")
CONF = Path("conf")
CORPUS = Path("data/corpus.parquet")
QUESTIONS = Path("data/questions.parquet")
INDEX = Path("data/index.parquet")
INDEX_PARTS = Path("data/index.parts")
EVALUATION = Path("data/sample/evaluation.parquet")
CALIBRATION = Path("data/sample/calibration.parquet")
LABELS = Path("data/labels.csv")
KNOWN_TRUTH = Path("data/judged/known_truth.parquet")
KNOWN_TRUTH_CALLS = Path("data/judged/known_truth.calls.parquet")
RESULTS = Path("results")


def hits(mode: str) -> Path:
    """First-pass hits of a mode."""
    return Path("data/retrieved") / mode / "hits.parquet"


def search_timings(mode: str) -> Path:
    """Seconds of a mode's first-pass searches."""
    return Path("data/retrieved") / mode / "timings.parquet"


def calibrated(mode: str, name: str) -> Path:
    """One of a mode's retrievals, sigmoids, thresholds and candidates."""
    return Path("data/calibrated") / mode / f"{name}.parquet"


def router(mode: str, name: str) -> Path:
    """One of a mode's silver, router, confusion, quality and calls."""
    return Path("data/routers") / mode / f"{name}.parquet"


def resolved(cell: Cell) -> Path:
    """The settings in force of a cell that retrieves."""
    return Path("data/resolved") / cell.strategy / f"{cell.retrieval}.parquet"


def run(cell: Cell, name: str) -> Path:
    """One of a cell's answers, calls and timings."""
    return Path("data/runs") / cell.strategy / cell.retrieval / f"{name}.parquet"


def judged(cell: Cell) -> Path:
    """A cell's judgements."""
    return Path("data/judged") / cell.strategy / f"{cell.retrieval}.parquet"


def judge_calls(cell: Cell) -> Path:
    """The model calls behind a cell's judgements."""
    return Path("data/judged") / cell.strategy / f"{cell.retrieval}.calls.parquet"


def result(name: str) -> Path:
    """A table of results/."""
    return RESULTS / f"{name}.parquet"
