"""resolve: the settings that are in force for a cell, typed ones as they are, the others from its mode's calibration."""

import json
from collections.abc import Callable, Iterator
from functools import cache, cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from rag_arena import artifacts, rerankers, strategies
from rag_arena.errors import ArenaError
from rag_arena.params import Params, Percentile, Sigmoid
from rag_arena.records import AUTO, RELEVANCE, TRAINED, TYPED, Cell
from rag_arena.scoring.cuts import DIGITS


def resolve(cell: Cell, params: Params, calibrated: Callable[[str], pa.Table], router: Callable[[], pa.Table]) -> pa.Table:
    """A strategy's settings, every `auto` and `percentile` replaced by a number in four decimals, `trained` by the router.

    Args:
        cell: whose settings.
        params: where they are typed.
        calibrated: reads a table of the mode's calibration by its name; called only if something is to be replaced.
        router: reads the mode's router; called only if one is wanted.

    Raises:
        ArenaError: calibration knows nothing about a threshold, no router was trained, or the numbers contradict each other.
    """
    typed = strategies.settings(cell.strategy, params)
    table = artifacts.table(artifacts.RESOLVED, _Resolving(cell, typed, calibrated, router).rows())
    strategies.in_force(cell.strategy, table)
    return table


class _Resolving:
    def __init__(self, cell: Cell, settings: Any, calibrated: Callable[[str], pa.Table], router: Callable[[], pa.Table]) -> None:
        self._cell = cell
        self._settings = settings
        self._calibratable = strategies.calibrated(cell.strategy)
        self._calibrated = cache(calibrated)
        self._trained = router

    def rows(self) -> Iterator[dict[str, str]]:
        for key, typed in self._settings.model_dump(mode="json").items():
            value, origin = self._value(key, typed)
            yield {"key": key, "value": json.dumps(value, sort_keys=True), "origin": origin}

    def _value(self, key: str, typed: Any) -> tuple[Any, str]:
        setting = getattr(self._settings, key)
        calibrated = self._calibratable.get(key)
        if key == "relevance" and setting == AUTO and self._settings.reranks:
            return self._sigmoid.model_dump(), AUTO
        if key == "router" and setting == TRAINED:
            return self._router(), TRAINED
        if calibrated and setting == AUTO:
            return self._threshold(calibrated["scorer"], self._cut(key, **calibrated)), AUTO
        if calibrated and isinstance(setting, Percentile):
            scores = self._scores(key, calibrated["scorer"])
            percentile = float(np.percentile(scores, setting.percentile))
            return self._threshold(calibrated["scorer"], percentile), f"percentile {setting.percentile:g}"
        return typed, TYPED

    def _threshold(self, scorer: str, score: float) -> float:
        """A score as a threshold: one on relevance is a probability, by the sigmoid in force."""
        if scorer != RELEVANCE:
            return round(score, DIGITS)
        return round(rerankers.probability(score, self._sigmoid), DIGITS)

    def _cut(self, key: str, scorer: str, separates: str) -> float:
        rows = self._calibrated("thresholds").to_pylist()
        cut: float | None = next(row["cut"] for row in rows if (row["scorer"], row["separates"]) == (scorer, separates))
        if cut is None:
            raise unlabelled(self._cell, key)
        return cut

    def _scores(self, key: str, scorer: str) -> list[float]:
        rows = self._calibrated("retrievals").to_pylist()
        scores = [row["best"] for row in rows if row["scorer"] == scorer and row["best"] is not None]
        if not scores:
            raise unretrieved(self._cell, key)
        return scores

    @cached_property
    def _sigmoid(self) -> Sigmoid:
        typed: Sigmoid | str = self._settings.relevance
        if isinstance(typed, Sigmoid):
            return typed
        fitted = next(row for row in self._calibrated("sigmoids").to_pylist() if row["scorer"] == RELEVANCE)
        if fitted["tau"] is None:
            why = f"nothing can be fitted to {fitted['n_relevant']} relevant and {fitted['n_other']} other documents"
            raise _uncalibrated(
                self._cell, "relevance", why, f"{_more(self._cell)}, or type {{tau: number, temperature: number}}"
            )
        return Sigmoid(tau=round(fitted["tau"], DIGITS), temperature=max(round(fitted["temperature"], DIGITS), 10**-DIGITS))

    def _router(self) -> dict[str, Any]:
        rows = self._trained().to_pylist()
        if not rows:
            raise untrained(self._cell)
        columns = {"choices": "choice", "intercepts": "intercept", "coefficients": "coefficients"}
        return {name: [row[column] for row in rows] for name, column in columns.items()}


def unlabelled(cell: Cell, key: str) -> ArenaError:
    """Why an `auto` setting has no number where it is not known of any retrieval whether it is good."""
    return _uncalibrated(cell, key, "no retrieval of the calibration split is labelled", f"{_more(cell)}, or type a number")


def unretrieved(cell: Cell, key: str) -> ArenaError:
    """Why a percentile has no number where nothing was retrieved."""
    return _uncalibrated(cell, key, "the calibration split has no retrieval", "raise sample.calibration, or type a number")


def untrained(cell: Cell) -> ArenaError:
    """Why there is no router."""
    return ArenaError(
        f"params.yaml: strategy.{cell.strategy}.router cannot be trained in {cell.retrieval}: no calibration question has a "
        "silver label; raise silver.questions or sample.calibration, or choose router: prompted"
    )


def _more(cell: Cell) -> str:
    return f"label some with `arena label {cell.retrieval}`, raise sample.calibration"


def _uncalibrated(cell: Cell, key: str, why: str, mend: str) -> ArenaError:
    return ArenaError(f"params.yaml: strategy.{cell.strategy}.{key} cannot be calibrated in {cell.retrieval}: {why}; {mend}")
