"""A small project folder with hand-made data, and `arena` in it."""

import hashlib
import io
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import yaml

from rag_arena import artifacts, layout
from rag_arena.artifacts import Artifact
from rag_arena.cli import main
from rag_arena.cli.common import CALIBRATED
from rag_arena.compose import compose
from rag_arena.params import Params, validate
from rag_arena.records import Cell
from rag_arena.sources import labels
from rag_arena.stages.calibrate import calibrate
from rag_arena.stages.index import index
from rag_arena.stages.resolve import resolve
from rag_arena.stages.retrieve import retrieve
from tests.stub import serve

ROOT = Path(__file__).parent.parent
PROCESS = (sys.executable, "-m", "rag_arena")
DATASET = "data/rivers"
CORPUS = [
    {"doc_id": "d1", "title": "Rhine", "text": "The Rhine begins in the Alps.", "metadata": ()},
    {"doc_id": "d2", "title": "Danube", "text": "The Danube begins in the Black Forest.", "metadata": ()},
    {"doc_id": "d3", "title": "Cheese", "text": "Cheese is made of milk.", "metadata": ()},
    {"doc_id": "d4", "title": "Elbe", "text": "The Elbe begins in Bohemia.", "metadata": ()},
]
QUESTIONS = [
    ("q1", "Where does the Rhine begin?", "the Alps", ["Alps"], "single_hop", ["d1"]),
    ("q2", "Where does the Danube begin?", "the Black Forest", [], "single_hop", ["d2"]),
    ("q3", "What is cheese made of?", "milk", [], "multi_hop", ["d3"]),
    ("q4", "Where does the Elbe begin?", "Bohemia", [], "summary", ["d4"]),
]
OVERRIDES = [
    "llm=openai_compatible",
    "llm.endpoint.base_url=http://server/v1",
    "llm.endpoint.model=stub",
    "llm@judge.llm=openai_compatible",
    "judge.llm.endpoint.base_url=http://server/v1",
    "judge.llm.endpoint.model=stub",
    "dataset=folder",
    f"dataset.path={DATASET}",
    "retrieval=[dense]",
    "strategy=[vanilla,self_corrective,no_retrieval]",
    "strategy.self_corrective.threshold=0.55",
    *(f"{llm}.transport.{key}" for llm in ("llm", "judge.llm") for key in ("max_retries=0", "max_concurrency=1")),
]


@dataclass(frozen=True)
class Project:
    """A folder with conf/, params.yaml, a dataset and the artifacts up to first-pass retrieval."""

    folder: Path

    def arena(self, *arguments: str, program: tuple[str, ...] = (), **environment: str | None) -> CompletedProcess[str]:
        """Run one command of the command line; a variable given as None is taken out of its environment.

        It runs in this process, since half of a short command is its start; with `program`, such as PROCESS, in one of its own.
        """
        known = {key: value for key, value in {**os.environ, "COLUMNS": "", **environment}.items() if value}
        if program:
            command = (*program, *arguments)
            return subprocess.run(command, cwd=self.folder, env=known, capture_output=True, text=True, timeout=120, check=False)
        out, err = io.StringIO(), io.StringIO()
        interrupt = signal.getsignal(signal.SIGINT)
        status: Any = 0
        with (
            patch.dict(os.environ, known, clear=True),
            patch.object(sys, "argv", ["arena", *arguments]),
            chdir(self.folder),
            redirect_stdout(out),
            redirect_stderr(err),
        ):
            try:
                main()
            except SystemExit as ended:
                status = ended.code or 0
            finally:
                signal.signal(signal.SIGINT, interrupt)
        return CompletedProcess(arguments, status, out.getvalue(), err.getvalue())

    def ok(self, *arguments: str, **environment: str | None) -> str:
        """What a command that must succeed prints."""
        done = self.arena(*arguments, **environment)
        assert done.returncode == 0, done.stderr
        assert "Traceback" not in done.stderr
        return str(done.stdout)

    def run_every_stage(self) -> None:
        """From the dataset's files to results/, with a stub as model and judge."""
        cells = [("no_retrieval", "none"), ("vanilla", "dense"), ("self_corrective", "dense")]
        stages = [["download"], ["index"], ["sample"], ["retrieve", "dense"], ["calibrate", "dense"], ["train", "dense"]]
        stages += [["resolve", *cell] for cell in cells[1:]]
        stages += [[stage, *cell] for cell in cells for stage in ("run", "judge")]
        known = {"ARENA_LEDGER": str(self.folder / "ledger.sqlite"), "ARENA_DRIFT_CHECKED": "1", "OPENAI_API_KEY": "k"}
        with serve() as server:
            self.point_at(server.url)
            for stage in (*stages, ["judge-truth"], ["aggregate"]):
                self.ok(*stage, **known)

    def change(self, changes: Mapping[str, Any]) -> None:
        """Set keys of params.yaml, each named by its dotted path."""
        path = self.folder / "params.yaml"
        values = yaml.safe_load(path.read_text())
        for key, value in changes.items():
            *parents, last = key.split(".")
            section = values
            for parent in parents:
                section = section[parent]
            section[last] = value
        path.write_text(yaml.safe_dump(values, sort_keys=False))

    def point_at(self, url: str) -> None:
        """Name one server as both models and judge."""
        self.change({f"{llm}.endpoint.base_url": url for llm in ("llm", "small_llm", "judge.llm")})

    def write(self, path: str, artifact: Artifact, rows: Iterable[Mapping[str, Any]]) -> None:
        """Make an artifact by hand."""
        artifacts.write(self.folder / path, artifacts.table(artifact, rows))

    def read(self, path: str, artifact: Artifact) -> list[dict[str, Any]]:
        """The rows of an artifact."""
        rows: list[dict[str, Any]] = artifacts.read(self.folder / path, artifact).to_pylist()
        return rows

    def listing(self) -> dict[str, str]:
        """Everything in the folder: files by their digest, folders as such."""
        found = sorted(self.folder.rglob("*"))
        return {
            str(path.relative_to(self.folder)): hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "folder"
            for path in found
        }


def lines(rows: Iterable[Mapping[str, Any]]) -> str:
    """Rows as JSON Lines."""
    return "".join(json.dumps(row) + "\n" for row in rows)


def corpus_rows() -> list[dict[str, Any]]:
    """The dataset's documents as its Corpus.json has them."""
    return [{"id": row["doc_id"], "title": row["title"], "context": row["text"]} for row in CORPUS]


def question_rows() -> list[dict[str, Any]]:
    """The dataset's questions as its Question.json has them."""
    return [
        {
            "id": question_id,
            "question": question,
            "answer": answer,
            "aliases": aliases,
            "type": kind,
            "supporting_facts": [{"doc_id": doc_id} for doc_id in gold],
        }
        for question_id, question, answer, aliases, kind, gold in QUESTIONS
    ]


def question_table(questions: Sequence[tuple[Any, ...]]) -> pa.Table:
    """The questions artifact."""
    columns = ("question_id", "question", "answer", "aliases", "question_type", "gold_ids")
    return artifacts.table(
        artifacts.QUESTIONS,
        [{**dict(zip(columns, q, strict=True)), "decomposition": [], "where": (), "origin": None} for q in questions],
    )


def sample_table(questions: Sequence[tuple[Any, ...]]) -> pa.Table:
    """A split that holds these questions."""
    strata = {"stratum_size": 4, "stratum_weight": 1.0}
    return artifacts.table(artifacts.SAMPLE, [{"question_id": q[0], "question_type": q[4], **strata} for q in questions])


def create(folder: Path) -> Project:
    """A project whose model is asked nothing yet."""
    made = Project(folder)
    shutil.copytree(ROOT / "conf", folder / "conf")
    text = compose(folder / "conf", OVERRIDES)
    (folder / "params.yaml").write_text(text)
    params: Params = validate(yaml.safe_load(text), "conf")
    (folder / DATASET).mkdir(parents=True)
    (folder / DATASET / "Corpus.json").write_text(lines(corpus_rows()))
    (folder / DATASET / "Question.json").write_text(lines(question_rows()))
    corpus, questions = artifacts.table(artifacts.CORPUS, CORPUS), question_table(QUESTIONS)
    built = index(corpus, params.embedder, None)
    hits, timings = retrieve("dense", params, corpus, built, questions)
    for path, table in {
        "data/corpus.parquet": corpus,
        "data/questions.parquet": questions,
        "data/index.parquet": built,
        "data/retrieved/dense/hits.parquet": hits,
        "data/retrieved/dense/timings.parquet": timings,
    }.items():
        artifacts.write(folder / path, table)
    artifacts.write(folder / "data/sample/evaluation.parquet", sample_table(QUESTIONS))
    made.write("data/sample/calibration.parquet", artifacts.SAMPLE, [])
    (folder / layout.LABELS).write_text(labels.text([]))
    calibrated = calibrate("dense", params, corpus, built, questions, artifacts.table(artifacts.SAMPLE, []), hits, [])
    for name in CALIBRATED:
        artifacts.write(folder / layout.calibrated("dense", name), getattr(calibrated, name))
    untrained = artifacts.table(artifacts.ROUTER, [])
    artifacts.write(folder / layout.router("dense", "router"), untrained)
    for cell in (Cell(strategy, "dense") for strategy in params.grid.strategies):
        settings = resolve(cell, params, lambda name: getattr(calibrated, name), lambda: untrained)
        artifacts.write(folder / layout.resolved(cell), settings)
    return made
