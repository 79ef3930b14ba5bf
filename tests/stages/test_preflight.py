"""Refusals before anything is spent."""

from collections.abc import Sequence
from typing import Any

import pytest
import yaml

from rag_arena import strategies
from rag_arena.compose import compose
from rag_arena.errors import ArenaError
from rag_arena.params import Params, validate
from rag_arena.sources.labels import Row
from rag_arena.stages.preflight import check_calibration
from tests.conftest import ROOT

YES, NOT_YET = (Row("q1", "d1", "Where?", "Rhine", "0.5", label) for label in ("yes", ""))
TYPED = {"upper": 0.6, "lower": 0.4}
SIGMOID = {"relevance": {"tau": 0.5, "temperature": 0.1}}


@pytest.fixture(scope="module")
def everything() -> dict[str, Any]:
    """The defaults of every strategy."""
    return dict(yaml.safe_load(compose(ROOT / "conf", [f"strategy=[{','.join(strategies.known())}]"])))


def running(everything: dict[str, Any], strategy: str, **settings: Any) -> Params:
    """A grid of vanilla and one other strategy, with some of its settings changed."""
    grid = everything["grid"] | {"strategies": ["vanilla", strategy]}
    changed = everything["strategy"] | {strategy: everything["strategy"][strategy] | settings}
    return validate(everything | {"grid": grid, "strategy": changed}, "test")


@pytest.mark.parametrize(
    ("strategy", "settings", "key"),
    [
        ("self_corrective", {}, "threshold"),
        ("corrective", {}, "upper"),
        ("corrective", TYPED, "relevance"),
        ("adaptive_self_rag", {}, "relevance"),
        ("self_rag", {"grader": "cross_encoder"}, "relevance"),
    ],
)
def test_without_gold_documents_or_labels_a_setting_that_is_auto_is_refused(
    everything: dict[str, Any], strategy: str, settings: dict[str, Any], key: str
) -> None:
    told = (
        f"params.yaml: strategy.{strategy}.{key} is auto, and there is nothing to calibrate it on: no question has gold documents"
    )
    with pytest.raises(ArenaError, match=told) as refused:
        check_calibration(running(everything, strategy, **settings), any_gold=False, labels=[NOT_YET])
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(("any_gold", "labels"), [(True, []), (False, [YES])], ids=["gold documents", "a label"])
def test_with_either_of_them_calibration_is_left_to_find_out(
    everything: dict[str, Any], any_gold: bool, labels: Sequence[Row]
) -> None:
    check_calibration(running(everything, "corrective"), any_gold, labels)


@pytest.mark.parametrize(
    ("strategy", "settings"),
    [
        ("iterative", {}),
        ("adaptive", {}),
        ("self_rag", {}),
        ("self_corrective", {"threshold": {"percentile": 15}}),
        ("corrective", TYPED | SIGMOID),
        ("adaptive_self_rag", {"grader": "llm"}),
    ],
    ids=["no threshold", "a router", "a model grades", "a percentile", "everything is typed", "the reranker is not asked"],
)
def test_settings_that_need_no_label_are_not_refused(everything: dict[str, Any], strategy: str, settings: dict[str, Any]) -> None:
    check_calibration(running(everything, strategy, **settings), any_gold=False, labels=[])
