"""docs/adding-a-strategy.md, followed to the letter: files and commands are taken from the page, so that the two cannot drift."""

import json
import re
import shlex
import shutil
from dataclasses import dataclass
from functools import reduce
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml

from tests.pipeline.graphs import Stage, dvc_stages, snakemake_stages
from tests.pipeline.workspace import ROOT, Workspace, create, small_dataset, stub_experiment
from tests.stub import Stub

PAGE = ROOT / "docs/adding-a-strategy.md"
# A file is a path in backticks, a colon, and a block; a command stands in a block of its own, marked sh.
STEP = re.compile(r"^`(?P<path>[^`\n]+)`:\n\n```\w+\n(?P<text>.*?)^```$|^```sh\n(?P<commands>.*?)^```$", re.MULTILINE | re.DOTALL)
OWN = "src/rag_arena/strategies/keyword/"
CELL = "keyword-hybrid"


@dataclass(frozen=True)
class Followed:
    """What was there before the page was followed, what was said, and what was made."""

    artifacts: dict[str, str]
    requests: int
    printed: str
    written: list[str]


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory, server: Stub) -> Workspace:
    """The page's strategies in one mode."""
    folder = tmp_path_factory.mktemp("tutorial")
    experiment = stub_experiment(server.url, small_dataset(folder / "dataset"), modes="[hybrid]")
    return create(folder / "project", folder / "ledger.sqlite", experiment)


@pytest.fixture(scope="module")
def followed(workspace: Workspace, server: Stub) -> Followed:
    """A finished run, and then the page; its experiment is the workspace's, so that the stub is asked."""
    shutil.copy(workspace.folder / "conf/experiment/test.yaml", workspace.folder / "conf/experiment/smoke.yaml")
    workspace.snakemake()
    workspace.run("git", "add", "--all")
    workspace.run("git", "commit", "--quiet", "--message", "run")
    artifacts, requests = workspace.artifacts(), len(server.requests)
    printed, written = "", []
    for step in STEP.finditer(PAGE.read_text(encoding="utf-8")):
        if step["path"]:
            written.append(step["path"])
            (workspace.folder / step["path"]).write_text(step["text"], encoding="utf-8")
        else:
            printed += "".join(workspace.run(*shlex.split(line)).stdout for line in step["commands"].splitlines())
    return Followed(artifacts, requests, printed, written)


def test_the_page_writes_a_prompt_a_graph_and_a_settings_file_and_touches_nothing_else(
    workspace: Workspace, followed: Followed
) -> None:
    assert followed.written == [f"{OWN}keywords.md", f"{OWN}graph.py", "conf/strategy/keyword.yaml"]
    status = workspace.run("git", "status", "--porcelain", "--untracked-files=all").stdout.splitlines()
    made = {"params.yaml", "dvc.lock", "results/metrics.json"}
    assert {line[3:] for line in status} == {*followed.written, f"{OWN}__init__.py", *made}


def test_what_the_page_says_is_composed_is_what_changes(followed: Followed) -> None:
    changes = [line for line in followed.printed.splitlines() if " -> " in line]
    assert len(changes) == 2
    assert "\n".join(changes) in PAGE.read_text(encoding="utf-8")


def test_its_cells_stand_on_the_leaderboard_without_failed_questions(workspace: Workspace, followed: Followed) -> None:
    board = pq.read_table(workspace.folder / "results/leaderboard.parquet").to_pylist()
    (row,) = (row for row in board if row["strategy"] == "keyword" and row["question_type"] == "all")
    assert (row["n_answered"], row["n_failed"], row["llm_calls"]) == (row["n_planned"], 0, 2 * row["n_planned"])
    assert re.search(r"keyword +hybrid", followed.printed)


def test_the_other_cells_were_not_run_and_their_calls_not_made_again(
    workspace: Workspace, server: Stub, followed: Followed
) -> None:
    before = {path: digest for path, digest in followed.artifacts.items() if path.startswith("data/")}
    after = {path: digest for path, digest in workspace.artifacts().items() if path.startswith("data/")}
    assert {path: after[path] for path in before} == before, "calls.parquet and timings.parquet would differ if a cell had run"
    assert {path.split("/")[2] for path in after if path not in before} == {"keyword"}
    old, new = server.requests[: followed.requests], server.requests[followed.requests :]
    assert {str(body) for body in old}.isdisjoint(map(str, new)), "a recorded call was made again"
    asked = {prompt for prompt in server.prompts[followed.requests :] if prompt.startswith("List the names")}
    assert len(asked) == pq.read_table(workspace.folder / "data/sample/evaluation.parquet").num_rows


def test_both_runners_declare_the_same_stages_with_it(workspace: Workspace, followed: Followed) -> None:
    declared = dvc_stages(workspace)
    assert {name.partition("@")[2] for name in declared if "keyword" in name} == {CELL}
    assert {path for path in declared[f"run@{CELL}"].deps if path.startswith(OWN)} == {
        f"{OWN}{name}" for name in ("__init__.py", "graph.py", "keywords.md")
    }
    params = yaml.safe_load(workspace.params())
    by_value = {
        name: Stage(s.deps, s.outs, frozenset(json.dumps(_value(params, key)) for key in s.params))
        for name, s in declared.items()
    }
    assert snakemake_stages(workspace) == by_value


def test_nothing_is_left_to_do(workspace: Workspace, server: Stub, followed: Followed) -> None:
    asked = len(server.requests)
    assert "Data and pipelines are up to date." in workspace.run("dvc", "repro").stdout
    assert "Nothing to be done" in workspace.snakemake().stderr
    assert len(server.requests) == asked


def _value(params: Any, key: str) -> Any:
    return reduce(lambda section, part: section[part], key.split("."), params)
