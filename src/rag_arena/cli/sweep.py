"""A sweep: one key at several values, each an experiment of DVC's, and DVC's table that compares them."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer
import yaml

from rag_arena import layout, strategies
from rag_arena.compose import compose
from rag_arena.errors import ArenaError
from rag_arena.wording import count

app = typer.Typer()
_DROPPED = r"^(Created|State|Executor|rev|experiment|cell|.*/.*|.*\..*)$"  # all but names and metrics


@app.command()
def sweep(
    key: Annotated[str, typer.Argument(help="a key of params.yaml")],
    values: Annotated[list[str], typer.Argument(help="its values, one experiment each")],
    override: Annotated[
        list[str] | None, typer.Option("--set", "-S", help="further overrides, the same in every experiment")
    ] = None,
) -> None:
    """Run one experiment per value and compare them. Example: arena sweep strategy.self_corrective.threshold 0.45 0.55 0.65 0.75

    Experiments start from conf/, as those of `dvc exp run` do. The numbers are of one cell: the one that report.focus names if it
    is of the swept strategy, else that strategy's last. A strategy that is not in the grid is put there beside vanilla.
    Experiments are named after the key's last part and the value, as threshold-0.45; one of the same name is replaced.
    """
    common = _common(key, override or [])
    for value in values:
        compose(layout.CONF, [*common, f"{key}={value}"])
    if subprocess.run(["git", "rev-parse", "--verify", "--quiet", "HEAD"], capture_output=True, check=False).returncode:
        raise ArenaError(".git: DVC keeps experiments beside a git commit, and there is none; `git init`, add and commit first")
    names = {f"{key.rpartition('.')[2]}-{re.sub(r'[^A-Za-z0-9_.]+', '-', value).strip('-')}": value for value in values}
    if replaced := [name for name in _listed() if name in names]:
        _dvc("exp", "remove", *replaced)
    for name, value in reversed(names.items()):  # DVC lists the latest first
        _dvc("exp", "run", "--queue", "--name", name, *(word for text in (*common, f"{key}={value}") for word in ("-S", text)))
    _run_all()
    _dvc("exp", "show", "--no-pager", "--hide-workspace", "--drop", _DROPPED)
    done = _listed()
    if failed := [name for name in names if name not in done]:
        raise ArenaError(f"{len(failed)} of {count(len(names), 'experiment')} failed; `dvc queue logs {failed[0]}` says why")


def _run_all() -> None:
    """Run what is queued. DVC runs it in the background and would go on when interrupted; here an interruption ends the sweep."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    try:
        _dvc("exp", "run", "--run-all", "--jobs", "1")
    except KeyboardInterrupt:
        _dvc("queue", "stop", "--kill", show=False)
        _dvc("queue", "remove", "--queued", "--failed", show=False)
        typer.echo("\narena: interrupted; DVC's background is stopped, finished experiments and calls are kept", err=True)
        raise typer.Exit(130) from None


def _listed() -> list[str]:
    return _dvc("exp", "list", "--name-only", show=False).split()


def _common(key: str, overrides: list[str]) -> list[str]:
    """The overrides that all experiments share: the swept strategy in the grid, and one of its cells in focus."""
    strategy = key.split(".")[1] if key.startswith("strategy.") else ""
    if strategy not in strategies.known():
        return overrides
    named = {text.partition("=")[0] for text in overrides}
    composed = yaml.safe_load(compose(layout.CONF, overrides))
    added = []
    if strategy not in composed["strategy"] and "strategy" not in named:
        added.append(f"strategy=[vanilla,{strategy},no_retrieval]")
    if "report.focus" not in named and not composed["report"]["focus"].startswith(f"{strategy}-"):
        added.append(f"report.focus={strategy}-{composed['grid']['modes'][-1]}")
    return [*overrides, *added]


def _dvc(*arguments: str, show: bool = True) -> str:
    """Run DVC in this environment, activated or not; its output, unless it was shown.

    Raises:
        ArenaError: it failed.
    """
    environment = {
        **os.environ,
        "COLUMNS": "160",  # as wide as the table needs: one that is cut says nothing
        "ARENA_DRIFT_CHECKED": "1",  # experiments differ from conf/ on purpose
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), *os.get_exec_path()]),
    }
    done = subprocess.run(
        [sys.executable, "-m", "dvc", *arguments],
        env=environment,
        stdout=None if show else subprocess.PIPE,
        stderr=None if show else subprocess.PIPE,
        text=True,
        check=False,
    )
    if "Unable to acquire lock" in (done.stderr or ""):
        left = "perhaps experiments of a sweep that was killed"
        raise ArenaError(f".dvc: another DVC is at work in this folder, {left}; wait for it, or `dvc queue stop --kill`")
    if done.returncode:
        sys.stderr.write(done.stderr or "")
        raise ArenaError(f"dvc {' '.join(arguments[:2])} exited with {done.returncode}; its lines above say why")
    return done.stdout or ""
