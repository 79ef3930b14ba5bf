"""The stage graph as each runner declares it, in one shape, so that they can be compared."""

import json
import re
from dataclasses import dataclass
from typing import Any

from tests.pipeline.workspace import Workspace


@dataclass(frozen=True)
class Stage:
    """What one stage declares. `deps` and `outs` are files; directories are expanded."""

    deps: frozenset[str]
    outs: frozenset[str]
    params: frozenset[str]


def dvc_stages(workspace: Workspace) -> dict[str, Stage]:
    """Stages of dvc.yaml, its matrices expanded by DVC itself."""
    script = (
        "import json; from dvc.repo import Repo; r = Repo();"
        "print(json.dumps({s.addressing: {'deps': [d.def_path for d in s.deps if not hasattr(d, 'params')],"
        "'outs': [o.def_path for o in s.outs],"
        "'params': [p for d in s.deps if hasattr(d, 'params') for p in d.params]} for s in r.index.stages}))"
    )
    found = json.loads(workspace.run("python", "-c", script).stdout)
    outs = [out for stage in found.values() for out in stage["outs"]]
    return {
        name: Stage(
            frozenset(f for dep in stage["deps"] for f in _files(workspace, dep, outs)),
            frozenset(stage["outs"]),
            frozenset(stage["params"]),
        )
        for name, stage in found.items()
    }


def snakemake_stages(workspace: Workspace) -> dict[str, Stage]:
    """Jobs of the Snakefile, each under the name of the DVC stage that its command runs.

    A rule states the values of its parameters; their keys are read off the rule by value, so `params` is compared apart.
    """
    script = """
import json, sys
from pathlib import Path
from snakemake.api import SnakemakeApi
from snakemake.settings.types import ConfigSettings, DAGSettings, OutputSettings, ResourceSettings
with SnakemakeApi(OutputSettings()) as api:
    resources = ResourceSettings(cores=1, resources={"model_slots": 2})
    workflow = api.workflow(resource_settings=resources, snakefile=Path("Snakefile"))
    dag_api = workflow.dag(DAGSettings(forceall=True))
    inner = dag_api.workflow_api._workflow
    inner._prepare_dag(forceall=True, ignore_incomplete=True, lock_warn_only=True)
    inner._build_dag()
    jobs = {}
    for job in inner.dag.jobs:
        if job.shellcmd:
            jobs[job.shellcmd] = {"deps": [str(f) for f in job.input], "outs": [str(f) for f in job.output],
                                  "params": {k: v for k, v in job.params.items()}}
    Path(sys.argv[1]).write_text(json.dumps(jobs, default=dict))
"""
    target = workspace.folder.parent / "jobs.json"
    workspace.run("python", "-c", script, str(target))
    jobs: dict[str, Any] = json.loads(target.read_text())
    stages = {}
    for command, job in jobs.items():
        name = re.search(r"--single-item (\S+)", command)
        assert name, command
        deps = frozenset(dep for dep in job["deps"] if not dep.startswith(".snakemake/"))
        stages[name.group(1)] = Stage(
            deps, frozenset(job["outs"]), frozenset(json.dumps(v) for k, v in job["params"].items() if k != "dvc")
        )
    return stages


def _files(workspace: Workspace, dep: str, outs: list[str]) -> list[str]:
    inside = [out for out in outs if out.startswith(f"{dep}/")]
    folder = workspace.folder / dep
    if inside or not folder.is_dir():
        return inside or [dep]
    if not folder.is_relative_to(workspace.folder):  # the dataset, of which every file counts
        return [str(p) for p in folder.rglob("*") if p.is_file()]
    return [str(p.relative_to(workspace.folder)) for p in folder.rglob("*") if p.suffix in (".py", ".md")]
