"""What the two runners declare: the same graph, and for every parameter exactly the stages that depend on it."""

import json
from collections.abc import Iterator
from typing import Any

import grimp
import pytest
import yaml

from tests.pipeline.graphs import Stage, dvc_stages, snakemake_stages
from tests.pipeline.workspace import Workspace

MODES, STRATEGIES = ("dense", "hybrid"), ("vanilla", "self_corrective")
CELLS = [f"{s}-{m}" for s in STRATEGIES for m in MODES]
RESOLVE, RUN, JUDGE = ({f"{kind}@{cell}" for cell in CELLS} for kind in ("resolve", "run", "judge"))
RETRIEVE, CALIBRATE, TRAIN = ({f"{kind}@{mode}" for mode in MODES} for kind in ("retrieve", "calibrate", "train"))
FLOOR = {"run_floor@no_retrieval", "judge_floor@no_retrieval"}
EVERY = {"download", "index", "sample", "judge_truth", "aggregate"} | RETRIEVE | CALIBRATE | TRAIN | RESOLVE | RUN | JUDGE | FLOOR
JUDGING = JUDGE | {"judge_floor@no_retrieval", "aggregate"}


def _cells(part: str) -> set[str]:
    return {stage for stage in RESOLVE | RUN | JUDGE if part in stage} | {"aggregate"}


# The longest matching prefix of a key says which stages run again when its value changes.
AFFECTED = {
    "experiment": set(),
    "grid": {"aggregate"},
    "dataset": EVERY,
    "embedder": EVERY - {"download", "sample", "judge_truth"} - FLOOR,
    "store": RETRIEVE | CALIBRATE | TRAIN | RESOLVE | RUN | JUDGE | {"aggregate"},
    "retrieval.dense": {"retrieve@dense", "calibrate@dense", "train@dense"} | _cells("-dense"),
    "retrieval.hybrid": {"retrieve@hybrid", "calibrate@hybrid", "train@hybrid"} | _cells("-hybrid"),
    "sample": EVERY - {"download", "index"} - RETRIEVE,
    "calibration": CALIBRATE | RESOLVE | RUN | JUDGE | {"aggregate"},
    "calibration.high_correction_rate": set(),
    "silver": TRAIN | RESOLVE | RUN | JUDGE | {"aggregate"},
    "strategy.vanilla": _cells("vanilla-"),
    "strategy.self_corrective": _cells("self_corrective-"),
    "floor.no_retrieval": FLOOR | {"aggregate"},
    "reranker": CALIBRATE | RESOLVE | RUN | JUDGE | {"aggregate"},
    "served": set(),
    "small_llm.endpoint": TRAIN | RESOLVE | RUN | JUDGE | FLOOR | {"aggregate"},
    "small_llm.transport": set(),
    "small_llm.price": {"aggregate"},
    "llm.endpoint": TRAIN | RESOLVE | RUN | JUDGE | FLOOR | {"aggregate"},
    "llm.transport": set(),
    "llm.price": {"aggregate"},
    "judge.llm.endpoint": JUDGING | {"judge_truth"},
    "judge.llm.transport": set(),
    "judge.llm.price": {"aggregate"},
    "judge.metrics": JUDGING,
    "judge.metrics.rating_tokens": JUDGING | {"judge_truth"},
    "judge.known_truth": {"judge_truth", "aggregate"},
    "run": TRAIN | RESOLVE | RUN | JUDGE | FLOOR | {"aggregate"},
    "report": {"aggregate"},
}


@pytest.fixture(scope="module")
def declared(workspace: Workspace) -> dict[str, Stage]:
    """The stages of dvc.yaml."""
    return dvc_stages(workspace)


def test_both_runners_declare_the_same_stages_files_and_parameters(workspace: Workspace, declared: dict[str, Stage]) -> None:
    params = yaml.safe_load(workspace.params())
    by_value = {
        name: Stage(s.deps, s.outs, frozenset(json.dumps(_value(params, key)) for key in s.params))
        for name, s in declared.items()
    }
    assert snakemake_stages(workspace) == by_value


def test_the_stages_are_those_of_the_grid(declared: dict[str, Stage]) -> None:
    assert set(declared) == EVERY


def test_every_parameter_reaches_exactly_its_stages(workspace: Workspace, declared: dict[str, Stage]) -> None:
    keys = list(_leaves(yaml.safe_load(workspace.params())))
    found = {key: _closure(declared, key) for key in keys}
    expected = {key: AFFECTED[max((p for p in AFFECTED if f"{key}.".startswith(f"{p}.")), key=len)] for key in keys}
    assert found == expected


# Changes no artifact, or reaches a stage as the values of its parameters.
NOT_CODE = {"concurrency", "errors", "layout", "params", "progress", "wording"}
NEVER_CALLED = {"embedders", "rerankers", "retrieval"}  # by the floor, which retrieves nothing


def test_every_module_that_a_stage_imports_is_declared(declared: dict[str, Stage]) -> None:
    imports = grimp.build_graph("rag_arena")
    undeclared = {}
    for name, stage in declared.items():
        own = {_module(dep) for dep in stage.deps if dep.startswith("src/") and dep.endswith(".py")}
        run = {module for module in own if not (name.startswith("resolve") and module.endswith(".graph"))}  # settings alone
        reached = own.union(*map(imports.find_upstream_modules, run)) - {"rag_arena"}
        excused = NOT_CODE | (NEVER_CALLED if name.startswith("run_floor") else set())
        undeclared[name] = sorted(module for module in reached - own if module.split(".")[1] not in excused)
    assert undeclared == {name: [] for name in declared}


def test_calibration_and_training_never_see_the_evaluation_split(declared: dict[str, Stage]) -> None:
    for stage in CALIBRATE | TRAIN:
        splits = {dep for dep in declared[stage].deps if dep.startswith("data/sample/")}
        assert splits == {"data/sample/calibration.parquet"}, stage


def test_every_artifact_of_every_stage_is_a_target_of_plain_snakemake(workspace: Workspace, declared: dict[str, Stage]) -> None:
    targets = workspace.run("snakemake", "--summary").stdout
    missing = [out for stage in declared.values() for out in stage.outs if out not in targets]
    assert missing == []


def _closure(stages: dict[str, Stage], key: str) -> set[str]:
    """Stages that declare the key or a part of the tree above it, and all that follow them."""
    stale = {name for name, s in stages.items() if any(f"{key}.".startswith(f"{p}.") for p in s.params)}
    while True:
        made = {out for name in stale for out in stages[name].outs}
        more = {name for name, s in stages.items() if s.deps & made} | stale
        if more == stale:
            return stale
        stale = more


def _leaves(values: Any, prefix: str = "") -> Iterator[str]:
    if isinstance(values, dict) and values:
        for key, value in values.items():
            yield from _leaves(value, f"{prefix}.{key}" if prefix else key)
    else:
        yield prefix


def _module(path: str) -> str:
    return path.removeprefix("src/").removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _value(params: Any, key: str) -> Any:
    for part in key.split("."):
        params = params[part]
    return params
