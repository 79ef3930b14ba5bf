"""Settings in force: what is typed stays, what is calibrated becomes a number."""

import json
from types import SimpleNamespace
from typing import Any, Literal

import pyarrow as pa
import pytest
from pydantic import Field, model_validator

from rag_arena import artifacts, rerankers, strategies
from rag_arena.errors import ArenaError
from rag_arena.params import Params, Relevance, Sigmoid, Threshold, calibrated, validate
from rag_arena.records import Cell
from rag_arena.stages.calibrate import Calibrated
from rag_arena.stages.resolve import resolve
from rag_arena.strategies.base import StrategySettings
from tests.strategies.harness import nobody

CELL = Cell("gate", "dense")
COSINES, SCORES = (0.2, 0.4, 0.6, 0.8), (0.3, 0.5, 0.7)
FITTED = Sigmoid(tau=0.5, temperature=0.1)


class Gate(StrategySettings):
    """Every kind of setting that calibration may fill in."""

    grader: Literal["llm", "cross_encoder"] = "cross_encoder"
    low: Threshold = Field(0.5, json_schema_extra=calibrated("cosine", "bad"))
    lower: Threshold = Field(0.5, json_schema_extra=calibrated("relevance", "bad"))
    upper: Threshold = Field(0.5, json_schema_extra=calibrated("relevance", "good"))
    relevance: Relevance = Sigmoid(tau=0.4, temperature=0.2)

    @property
    def reranks(self) -> bool:
        """Only to grade."""
        return self.grader == "cross_encoder"

    @property
    def max_calls(self) -> int:
        return 1

    @model_validator(mode="after")
    def _ordered(self) -> "Gate":
        if isinstance(self.lower, float) and isinstance(self.upper, float) and self.lower > self.upper:
            raise ValueError("lower must not be over upper")
        return self


@pytest.fixture(autouse=True)
def _gate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strategies, "_module", lambda _: SimpleNamespace(Settings=Gate))


@pytest.fixture
def resolved(params: Params) -> Any:
    """Settings in force by key, as value and origin."""

    def resolving(calibration: Any = None, **settings: Any) -> dict[str, tuple[Any, str]]:
        values = params.model_dump()
        values["strategy"]["gate"] = {"max_tokens": 8, **settings}
        table = resolve(CELL, validate(values, "test"), lambda name: getattr(calibration or CALIBRATED, name), nobody)
        return {row["key"]: (json.loads(row["value"]), row["origin"]) for row in table.to_pylist()}

    return resolving


def tables(cuts: dict[tuple[str, str], float | None], sigmoid: Sigmoid | None, scores: bool = True) -> Calibrated:
    counts = {"n_good": 1, "n_acceptable": 1, "n_bad": 1, "n_unlabelled": 0, "precision": None, "recall": None}
    return Calibrated(
        artifacts.table(
            artifacts.RETRIEVALS,
            [
                {"scorer": scorer, "question_id": f"q{i}", "best": best, "label": None}
                for scorer, bests in (("cosine", (*COSINES, None)), ("relevance", SCORES))
                for i, best in enumerate(bests)
                if scores
            ],
        ),
        artifacts.table(
            artifacts.SIGMOIDS,
            [
                {
                    "scorer": scorer,
                    "n_relevant": 3,
                    "n_other": 4,
                    "tau": sigmoid.tau if sigmoid else None,
                    "temperature": sigmoid.temperature if sigmoid else None,
                }
                for scorer in ("cosine", "relevance")
            ],
        ),
        artifacts.table(
            artifacts.THRESHOLDS, [{"scorer": s, "separates": kind, **counts, "cut": cut} for (s, kind), cut in cuts.items()]
        ),
        artifacts.table(artifacts.CANDIDATES, []),
    )


CUTS = {("cosine", "bad"): 0.4321, ("cosine", "good"): 0.6, ("relevance", "bad"): 0.4, ("relevance", "good"): 0.7}
CALIBRATED = tables(CUTS, FITTED)
NOTHING = tables(dict.fromkeys(CUTS), None, scores=False)


def test_typed_settings_stay_as_they_are_and_calibration_is_not_read(params: Params) -> None:
    values = params.model_dump()
    values["strategy"]["gate"] = {"max_tokens": 8, "low": 0.123456}
    table = resolve(CELL, validate(values, "test"), nobody, nobody)
    assert table.to_pylist() == [
        {"key": "grader", "value": '"cross_encoder"', "origin": "typed"},
        {"key": "low", "value": "0.123456", "origin": "typed"},
        {"key": "lower", "value": "0.5", "origin": "typed"},
        {"key": "max_tokens", "value": "8", "origin": "typed"},
        {"key": "relevance", "value": '{"tau": 0.4, "temperature": 0.2}', "origin": "typed"},
        {"key": "upper", "value": "0.5", "origin": "typed"},
    ]


def test_what_was_resolved_is_what_a_cell_has_in_force(params: Params) -> None:
    values = params.model_dump()
    values["strategy"]["gate"] = {"max_tokens": 8, "low": "auto", "relevance": "auto"}
    table: pa.Table = resolve(CELL, validate(values, "test"), lambda name: getattr(CALIBRATED, name), nobody)
    assert strategies.in_force("gate", table) == Gate(max_tokens=8, low=0.4321, relevance=FITTED)


def test_auto_is_the_cut_of_the_scorer_and_kind_that_the_setting_names(resolved: Any) -> None:
    assert resolved(low="auto")["low"] == (0.4321, "auto")


def test_auto_relevance_is_the_fitted_sigmoid(resolved: Any) -> None:
    assert resolved(relevance="auto")["relevance"] == ({"tau": 0.5, "temperature": 0.1}, "auto")


def test_a_sigmoid_that_is_not_used_needs_no_calibration(params: Params) -> None:
    values = params.model_dump()
    values["strategy"]["gate"] = {"max_tokens": 8, "grader": "llm", "relevance": "auto"}
    table = resolve(CELL, validate(values, "test"), nobody, nobody)
    assert {"key": "relevance", "value": '"auto"', "origin": "typed"} in table.to_pylist()


def test_a_threshold_on_relevance_is_the_probability_of_its_cut_by_the_sigmoid_in_force(resolved: Any) -> None:
    fitted, typed = (resolved(lower="auto", upper="auto", **more) for more in ({"relevance": "auto"}, {}))
    assert fitted["lower"] == (round(rerankers.probability(0.4, FITTED), 4), "auto")
    assert fitted["upper"] == (round(rerankers.probability(0.7, FITTED), 4), "auto")
    assert typed["upper"] == (round(rerankers.probability(0.7, Sigmoid(tau=0.4, temperature=0.2)), 4), "auto")


def test_a_percentile_is_of_the_best_scores_of_the_retrievals_that_found_something(resolved: Any) -> None:
    # of 0.2, 0.4, 0.6, 0.8 the 50th percentile lies half-way between the second and the third
    assert resolved(low={"percentile": 50})["low"] == ((0.4 + 0.6) / 2, "percentile 50")
    assert resolved(low={"percentile": 2.5})["low"] == (round(0.2 + 0.2 * 3 * 0.025, 4), "percentile 2.5")
    assert resolved(lower={"percentile": 0}, relevance="auto")["lower"][0] == round(rerankers.probability(0.3, FITTED), 4)


def test_numbers_are_given_in_four_decimals(resolved: Any) -> None:
    calibration = tables({**CUTS, ("cosine", "bad"): 1 / 3}, Sigmoid(tau=2 / 3, temperature=1 / 30))
    assert resolved(calibration, low="auto")["low"][0] == 0.3333
    assert resolved(calibration, relevance="auto")["relevance"][0] == {"tau": 0.6667, "temperature": 0.0333}


COUNTS, SIGMOID = "3 relevant and 4 other documents", "{tau: number, temperature: number}"
SPLIT = "the calibration split"
MORE = "label some with `arena label dense`, raise sample.calibration"


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        (
            {"low": "auto"},
            f"low cannot be calibrated in dense: no retrieval of {SPLIT} is labelled; {MORE}, or type a number",
        ),
        (
            {"low": {"percentile": 15}},
            f"low cannot be calibrated in dense: {SPLIT} has no retrieval; raise sample.calibration, or type a number",
        ),
        (
            {"relevance": "auto"},
            f"relevance cannot be calibrated in dense: nothing can be fitted to {COUNTS}; {MORE}, or type {SIGMOID}",
        ),
    ],
)
def test_what_calibration_knows_nothing_of_is_refused_with_what_to_do(resolved: Any, settings: Any, line: str) -> None:
    with pytest.raises(ArenaError) as caught:
        resolved(NOTHING, **settings)
    assert str(caught.value) == f"params.yaml: strategy.gate.{line}"


def test_a_threshold_calibrated_on_the_reranker_is_refused_to_a_grader_that_is_a_model(resolved: Any) -> None:
    told = "strategy.gate: upper is calibrated on the reranker's scores, and the grader is llm; type a number"
    with pytest.raises(ArenaError, match=told):
        resolved(grader="llm", upper="auto")


def test_numbers_that_contradict_each_other_are_refused(resolved: Any) -> None:
    with pytest.raises(ArenaError, match="lower must not be over upper"):
        resolved(lower=0.99, upper="auto", relevance="auto")
