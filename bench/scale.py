"""Seconds and peak memory of every stage at growing sizes: python -m bench.scale FOLDER

Makes a synthetic dataset of each size in FOLDER and runs the stages by their own commands: all four retrieval modes for every
question, two strategies and the judge under hybrid retrieval, against a local server that answers after a fixed latency. A stage
that has its figures in FOLDER is not run again. Prints the table of docs/scale.md.
"""

import argparse
import json
import math
import multiprocessing
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from tests.stub import Answer, sensible, serve

from rag_arena import layout
from rag_arena.sources import labels

ROOT = Path(__file__).parent.parent
FULL = {"documents": 21_100, "multi_hop": 2_590, "single_hop": 398, "summary": 368}  # RAGRouter-Bench's MuSiQue subset
SPLITS = {"sample.evaluation": 3_000, "sample.calibration": 200, "judge.metrics.questions": 3_000}  # at the full size
SIZES = (5_000, 10_000, FULL["documents"])
LATENCY_S = 0.05
CONCURRENCY = 16
MODES = ("dense", "sparse", "hybrid", "hybrid_rerank")
STRATEGIES = ("vanilla", "self_corrective")
STAGES = {
    "download": ["download"],
    "index": ["index"],
    "sample": ["sample"],
    **{f"retrieve {mode}": ["retrieve", mode] for mode in MODES},
    "calibrate hybrid": ["calibrate", "hybrid"],
    "train hybrid": ["train", "hybrid"],
    **{f"{stage} {strategy}": [stage, strategy, "hybrid"] for stage in ("resolve", "run", "judge") for strategy in STRATEGIES},
    "judge-truth": ["judge-truth"],
    "aggregate": ["aggregate"],
}
QUIET = {"train hybrid", *(f"resolve {strategy}" for strategy in STRATEGIES)}  # read little and do little: not in the table


def main() -> None:
    """Run what has no figures yet, then print the table."""
    parser = argparse.ArgumentParser(description="seconds and peak memory of every stage at growing sizes")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--documents", type=int, nargs="+", default=SIZES)
    parser.add_argument("--stage", nargs="+", default=list(STAGES), choices=list(STAGES), metavar="NAME")
    parser.add_argument("--candidates", type=int, default=20, help="documents that hybrid_rerank reorders")
    chosen = parser.parse_args()
    figures = chosen.folder / "figures.json"
    measured: dict[str, dict[str, Any]] = json.loads(figures.read_text()) if figures.is_file() else {}
    with stub_process() as url:
        for documents in chosen.documents:
            project = chosen.folder / str(documents)
            configure(project, documents, chosen.candidates, url)
            done = measured.setdefault(str(documents), {})
            for stage in (stage for stage in STAGES if stage in chosen.stage and stage not in done):
                done[stage] = run(project, STAGES[stage])
                figures.write_text(json.dumps(measured, indent=1))
    print(table({int(documents): stages for documents, stages in measured.items()}))


def scaled(number: int, documents: int) -> int:
    """A number of the full size in the proportion of a size."""
    return round(number * documents / FULL["documents"])


def configure(project: Path, documents: int, candidates: int, url: str) -> None:
    """A project on a synthetic dataset, with its models behind a URL; `candidates` are what hybrid_rerank reorders."""
    project.mkdir(parents=True, exist_ok=True)
    shutil.copytree(ROOT / "conf", project / "conf", dirs_exist_ok=True)
    endpoints = [f"{llm}.endpoint.{key}" for llm in ("llm", "judge.llm") for key in ("model=stub", f"base_url={url}")]
    overrides = [
        "dataset=synthetic",
        f"dataset.path={ROOT / 'data/synthetic/words.txt'}",
        *(f"dataset.{key}={scaled(number, documents)}" for key, number in FULL.items()),
        "store=edge",
        f"retrieval=[{','.join(MODES)}]",
        "grid.modes=[hybrid]",
        f"strategy=[{','.join(STRATEGIES)}]",
        f"retrieval.hybrid_rerank.candidates={candidates}",
        *(f"{key}={scaled(number, documents)}" for key, number in SPLITS.items()),
        "llm=openai",
        "llm@judge.llm=openai",
        *endpoints,
        *(f"{llm}.transport.max_concurrency={CONCURRENCY}" for llm in ("llm", "judge.llm")),
    ]
    compose = (sys.executable, "-m", "rag_arena", "compose", *overrides)
    subprocess.run(compose, cwd=project, env=environment(project, ["compose"]), stdout=subprocess.DEVNULL, check=True)
    (project / layout.LABELS).parent.mkdir(exist_ok=True)
    (project / layout.LABELS).write_text(labels.text([]))


def run(project: Path, command: list[str]) -> dict[str, float]:
    """One stage's seconds on the clock, those of the processor, and its peak memory in MB; a failure ends the benchmark."""
    start = time.perf_counter()
    process = subprocess.Popen((sys.executable, "-m", "rag_arena", *command), cwd=project, env=environment(project, command))
    _, status, usage = os.wait4(process.pid, 0)  # this child's own figures, not those of the largest so far
    if status:
        sys.exit(f"arena {' '.join(command)} failed in {project}")
    seconds = time.perf_counter() - start
    return {"seconds": seconds, "cpu_s": usage.ru_utime + usage.ru_stime, "peak_mb": usage.ru_maxrss / 1024}


def environment(project: Path, command: Sequence[str]) -> dict[str, str]:
    """Of one command: a ledger of its own, so that every call is made, whatever another strategy has asked."""
    ledger = project.resolve() / "ledgers" / f"{'-'.join(command)}.sqlite"
    return {**os.environ, "ARENA_LEDGER": str(ledger), "OPENAI_API_KEY": "stub", "ARENA_DRIFT_CHECKED": "1"}


def table(measured: dict[int, dict[str, dict[str, float]]]) -> str:
    """Markdown: processor seconds at each size, the exponent by which they grow, peak MB; seconds on the clock at the last."""
    sizes = sorted(measured)
    columns = [*(f"{size:,}: CPU s" for size in sizes), "exponent", *(f"{size:,}: MB" for size in sizes), f"{sizes[-1]:,}: s"]
    lines = [f"| stage | {' | '.join(columns)} |", f"|---|{'---:|' * len(columns)}"]
    for stage in (stage for stage in STAGES if stage not in QUIET):
        found = {size: measured[size][stage] for size in sizes if stage in measured[size]}
        processor, peaks, clock = (
            [f"{found[size][figure]:.{digits}f}" if size in found else "" for size in sizes]
            for figure, digits in (("cpu_s", 1), ("peak_mb", 0), ("seconds", 0))
        )
        lines.append(f"| {' | '.join([stage, *processor, exponent(found), *peaks, clock[-1]])} |")
    return "\n".join(lines)


def exponent(found: dict[int, dict[str, float]]) -> str:
    """x of processor seconds ~ documents^x between the smallest and the largest size: 1 is linear; empty where there is one."""
    if len(found) < 2:
        return ""
    smallest, largest = min(found), max(found)
    return f"{math.log(found[largest]['cpu_s'] / found[smallest]['cpu_s']) / math.log(largest / smallest):.2f}"


@contextmanager
def stub_process() -> Iterator[str]:
    """The URL of a server in a process of its own, which answers after LATENCY_S."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=serve_slowly, args=(theirs,), daemon=True)
    process.start()
    yield ours.recv()
    process.terminate()


def serve_slowly(told: Connection) -> None:
    """Serve until the process is ended; nothing asked is kept."""

    def behave(body: dict[str, Any]) -> Answer:
        for kept in (stub.paths, stub.requests, stub.headers):
            kept.clear()
        return replace(sensible(body), pause_s=LATENCY_S)

    with serve() as stub:
        stub.behave = behave
        told.send(stub.url)
        threading.Event().wait()


if __name__ == "__main__":
    main()
