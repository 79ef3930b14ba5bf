"""Interruptions, two runs at once, servers that fail: what is kept, what is said, and that the same command goes on."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml

from tests.faults.conftest import PREPARED, slowly
from tests.faults.harness import RUN, Started, half_written, keys, recorded, until
from tests.pipeline.workspace import Workspace, small_dataset
from tests.stub import Answer, Body, Stub

CELL = "run@vanilla-dense"
CELL_ANSWERS = "data/runs/vanilla/dense/answers.parquet"
BOTH_CELLS = (*RUN, CELL_ANSWERS, "data/runs/no_retrieval/none/answers.parquet")
PLANTED = "sk-planted-5d41402abc4b2a76"


def board(workspace: Workspace) -> dict[str, dict[str, int]]:
    """The leaderboard's rows over all question types, by strategy."""
    rows = pq.read_table(workspace.folder / "results/leaderboard.parquet").to_pylist()
    return {row["strategy"]: row for row in rows if row["question_type"] == "all"}


def counts(row: dict[str, int]) -> tuple[int, ...]:
    return tuple(row[name] for name in ("n_planned", "n_answered", "n_failed", "n_judged"))


@pytest.mark.parametrize("torn_at", ["schema", "    params:"])
def test_a_torn_dvc_lock_is_made_anew(workspace: Workspace, torn_at: str) -> None:
    lock = workspace.folder / "dvc.lock"
    whole = lock.read_text()
    lock.write_text(whole[: whole.index(torn_at) + len(torn_at) // 2])
    done = workspace.run("snakemake", "--cores", "2", *PREPARED)
    assert "dvc.lock was torn" in done.stderr
    assert yaml.safe_load(lock.read_text()) == yaml.safe_load(whole)  # its order is that in which stages ended


@pytest.mark.parametrize("left", ["", '{"wri', "claimed"])
def test_claims_of_a_killed_dvc_stop_nobody(workspace: Workspace, left: str) -> None:
    sample = workspace.folder / "data/sample/evaluation.parquet"
    if left == "claimed":  # by a number that another program has meanwhile
        left = json.dumps({"write": {str(sample): {"pid": os.getppid(), "cmd": "dvc repro sample"}}, "read": {}})
    (workspace.folder / ".dvc/tmp/rwlock").write_text(left)
    temporary = sample.with_name(f".{sample.name}.1.tmp")
    temporary.touch()
    sample.unlink()
    workspace.run("snakemake", "--cores", "1", "data/sample/evaluation.parquet")
    assert sample.exists()
    assert half_written(workspace) == []


def test_a_stage_that_outlives_its_snakemake_is_named(workspace: Workspace) -> None:
    claimed = workspace.folder / "data/sample/evaluation.parquet"
    with subprocess.Popen([sys.executable, "-c", "input()", "dvc"], stdin=subprocess.PIPE) as alive:
        claims = {"write": {str(claimed): {"pid": alive.pid, "cmd": "dvc repro sample"}}, "read": {}}
        (workspace.folder / ".dvc/tmp/rwlock").write_text(json.dumps(claims))
        done = workspace.run(*RUN, check=False)
        assert alive.poll() is None
        alive.communicate(b"\n")
    said = f"arena: DVC is at work in this folder (process {alive.pid}, dvc repro sample); wait for it to end, or end it"
    assert (done.returncode, done.stderr.splitlines()[-1]) == (1, said)
    workspace.run("snakemake", "--cores", "1", "data/sample/evaluation.parquet")


def test_of_two_runs_in_one_folder_one_says_so_and_ends(workspace: Workspace) -> None:
    both = [Started(workspace, "snakemake", "--cores", "1", CELL_ANSWERS) for _ in range(2)]
    ends = [run.end() for run in both]
    assert sorted(map(bool, ends)) == [False, True], [run.printed for run in both]
    refused = both[ends.index(0) - 1].printed
    said = [line for line in refused.splitlines() if "another run is under way in this folder" in line]
    assert len(said) == 1
    assert "Traceback" not in refused
    assert (workspace.folder / CELL_ANSWERS).exists()


def test_dvc_repro_beside_snakemake_breaks_nothing(workspace: Workspace, stub: Stub) -> None:
    run = Started(workspace, *BOTH_CELLS)
    until(lambda: bool(stub.requests), "a cell asks")
    beside = workspace.run("dvc", "repro", CELL, check=False)
    run.end()
    if beside.returncode:
        assert "is busy" in beside.stderr or "Unable to acquire lock" in beside.stderr
    workspace.run(*BOTH_CELLS)
    assert pq.read_table(workspace.folder / CELL_ANSWERS)["status"].to_pylist() == ["answered"] * 3
    assert len(keys(stub)) == len(set(keys(stub)))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "missing; make it with `arena compose` in the project's folder"),
        ("", "not a mapping of parameters; make it anew with `arena compose`"),
        ("grid: [", "not YAML (while parsing a flow "),
    ],
    ids=["missing", "empty", "not YAML"],
)
def test_parameters_that_cannot_be_read_end_a_run_before_it_begins(workspace: Workspace, content: str | None, said: str) -> None:
    (workspace.folder / "params.yaml").unlink()
    if content is not None:
        (workspace.folder / "params.yaml").write_text(content)
    done = workspace.run(*RUN, check=False)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith(f"arena: params.yaml: {said}")
    assert "Error" not in done.stderr


@pytest.mark.parametrize("name", ["rivers of it's own", 'a "b", c=d (e) {f} é'])
def test_any_name_of_a_folder_may_be_given_to_make(workspace: Workspace, tmp_path: Path, name: str) -> None:
    dataset = small_dataset(tmp_path / name, per_type=1, distractors=0)
    (workspace.folder / "venv").mkdir()
    (workspace.folder / "venv/.ready").touch()
    workspace.run("make", "compose", "VENV=venv", "EXPERIMENT=test", f"DATA={dataset}")
    assert yaml.safe_load(workspace.params())["dataset"]["path"] == str(dataset)
    workspace.run("snakemake", "--cores", "1", "data/corpus.parquet")
    documents = (dataset / "Corpus.json").read_text().splitlines()
    assert pq.read_table(workspace.folder / "data/corpus.parquet").num_rows == len(documents)


@pytest.mark.parametrize(("command", "seconds"), [(("arena", "run", "vanilla", "dense"), 2), (BOTH_CELLS, 5)])
def test_an_interrupted_call_ends_at_once_and_the_same_command_goes_on(
    workspace: Workspace, stub: Stub, command: tuple[str, ...], seconds: float
) -> None:
    stub.behave = lambda body: Answer(pause_s=30)
    run = Started(workspace, *command)
    until(lambda: bool(stub.requests), "a call is under way")
    start = time.monotonic()
    run.signal(signal.SIGINT)
    status = run.end(30)
    took = time.monotonic() - start
    assert status != 0
    assert "the same command goes on from here" in run.printed
    assert "Traceback" not in run.printed
    assert run.members() == []
    assert took < seconds
    stub.behave = slowly
    workspace.run(*command)
    assert (workspace.folder / CELL_ANSWERS).exists()


def test_a_failed_question_is_counted_and_asked_alone_by_make_retry(workspace: Workspace, stub: Stub) -> None:
    asked = pq.read_table(workspace.folder / "data/sample/evaluation.parquet")["question_id"].to_pylist()
    texts = {r["question_id"]: r["question"] for r in pq.read_table(workspace.folder / "data/questions.parquet").to_pylist()}

    def ill(body: Body) -> Answer:
        prompt = body["messages"][-1]["content"]
        broken = texts[asked[1]] in prompt and "using the passages" in prompt
        return Answer(500, b'{"error": {"message": "out of order"}}') if broken else slowly(body)

    stub.behave = ill
    workspace.snakemake(cores=2)
    answers = pq.read_table(workspace.folder / CELL_ANSWERS).to_pylist()
    assert {row["question_id"]: row["status"] == "failed" for row in answers} == {q: q == asked[1] for q in asked}
    (error,) = (row["error"] for row in answers if row["error"])
    assert error.startswith(f"{stub.url}: 500")
    assert "out of order" in error
    assert counts(board(workspace)["vanilla"]) == (3, 2, 1, 2)
    assert counts(board(workspace)["no_retrieval"]) == (3, 3, 0, 3)
    assert workspace.run("arena", "failed").stdout.split() == [CELL]

    stub.behave = slowly
    stub.requests.clear()
    held = recorded(workspace)
    (workspace.folder / "venv").mkdir()
    (workspace.folder / "venv/.ready").touch()  # what `make setup` leaves
    workspace.run("make", "retry", "VENV=venv")
    (again,) = (body["messages"][-1]["content"] for body in stub.requests if "response_format" not in body)
    assert texts[asked[1]] in again
    assert held.isdisjoint(keys(stub)), "everything else is replayed"
    assert counts(board(workspace)["vanilla"]) == (3, 3, 0, 3)
    assert workspace.run("arena", "failed").stdout == ""


def test_a_refusing_server_ends_the_cell_with_one_line(workspace: Workspace, stub: Stub) -> None:
    stub.behave = lambda body: Answer(401, b'{"error": {"message": "no"}}')
    assert "refuses the key (401); check OPENAI_API_KEY" in refusal(workspace, stub)
    assert 0 < len(stub.requests) <= 3, "at most the questions under way"


def test_a_dead_port_ends_the_cell_with_one_line(workspace: Workspace, stub: Stub) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    workspace.replace("params.yaml", stub.url, f"http://127.0.0.1:{port}/v1")
    assert "nobody answers" in refusal(workspace, stub)
    assert stub.requests == []


def test_a_cell_with_too_many_failures_ends_with_one_line(workspace: Workspace, stub: Stub) -> None:
    stub.behave = lambda body: Answer(500, b'{"error": {"message": "out of order"}}')
    assert "3 of 3 questions failed, over run.max_failed_share 0.5; the first, " in refusal(workspace, stub)
    assert recorded(workspace) == set()


def refusal(workspace: Workspace, stub: Stub) -> str:
    """The one line of arena's with which a run of the cell ends, found in its log and shown by snakemake."""
    done = workspace.run(*RUN, CELL_ANSWERS, check=False)
    assert done.returncode != 0
    log = (workspace.folder / "logs/run/vanilla-dense.log").read_text()
    (line,) = [line for line in log.splitlines() if line.startswith("arena: ")]
    assert done.stderr.splitlines()[-1] == line, "what to mend is the last thing said"
    assert "Traceback" not in log
    assert not list(workspace.folder.glob("data/runs/vanilla/dense/*"))
    assert half_written(workspace) == []
    return line


class Planted(Workspace):
    """A workspace whose key can be told from any other bytes."""

    def environment(self) -> dict[str, str]:
        return {**super().environment(), "OPENAI_API_KEY": PLANTED}


def test_the_key_is_found_in_no_byte_that_a_run_leaves_or_prints(workspace: Workspace, stub: Stub) -> None:
    planted = Planted(workspace.folder, workspace.ledger)
    printed: list[subprocess.CompletedProcess[str]] = []
    stub.behave = lambda body: Answer(401, json.dumps({"error": {"message": f"Incorrect key: {PLANTED}"}}).encode())
    printed.append(planted.run(*RUN, CELL_ANSWERS, check=False))
    assert printed[0].returncode != 0
    question = stub.prompts[0]

    def ill(body: Body) -> Answer:
        broken = body["messages"][-1]["content"] == question
        return Answer(500, json.dumps({"error": {"message": f"out of order for {PLANTED}"}}).encode()) if broken else slowly(body)

    stub.behave = ill
    printed.append(planted.snakemake())
    more = (("arena", "leaderboard"), ("arena", "ledger", "stats"), ("arena", "trace", "demo_001"), ("arena", "doctor"))
    printed += [planted.run(*command, check=False) for command in more]
    assert any(PLANTED in value for headers in stub.headers for value in headers.values()), "the server saw it"
    assert [done.args for done in printed if PLANTED in done.stdout + done.stderr] == []
    places = [planted.folder, *planted.ledger.parent.glob(f"{planted.ledger.name}*")]
    files = [file for place in places for file in ([place] if place.is_file() else place.rglob("*")) if file.is_file()]
    assert len(files) > 100
    assert [str(file) for file in files if PLANTED.encode() in file.read_bytes()] == []
