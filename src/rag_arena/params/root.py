"""The whole of params.yaml: every key, its meaning and its bounds. Unknown keys are errors at every level."""

from typing import Annotated, Any

from pydantic import Field, field_validator, model_validator

from rag_arena.params.dataset import Dataset
from rag_arena.params.embedder import Embedder
from rag_arena.params.llm import Llm, Transport
from rag_arena.params.nearest import nearest
from rag_arena.params.reranker import Reranker
from rag_arena.params.retrieval import MODES, NO_MODE, Retrieval, Store
from rag_arena.params.sections import Natural, Positive, Section, Share
from rag_arena.records import Cell


class Sample(Section):
    """Which questions are asked."""

    seed: Natural = Field(description="seed of the draw")
    evaluation: Positive = Field(description="questions in the evaluation split, balanced over question types")
    calibration: Natural = Field(description="questions in the calibration split, disjoint in questions and gold documents")


class Calibration(Section):
    """How retrievals of the calibration split are labelled, and which thresholds are tried on them."""

    k: Positive = Field(description="documents by which a retrieval is labelled and scored; shared with vanilla")
    widen_factor: Positive = Field(description="documents that a correction is supposed to look at, as a multiple of k")
    thresholds: list[Share] = Field(description="candidates whose correction rate, gain and cost are shown")
    high_correction_rate: Share = Field(description="share of corrected questions over which a threshold is called too high")


class Silver(Section):
    """How the router of `adaptive` is trained: on silver labels, what the cheapest strategy that answers correctly is."""

    questions: Natural = Field(description="calibration questions with short answers that are labelled; 0: no router is trained")
    settings: dict[str, Any] = Field(description="settings of `adaptive`, with which the three strategies run")
    inverse_regularisation: Annotated[float, Field(gt=0)] = Field(description="C of the logistic regression")
    folds: Annotated[int, Field(ge=2)] = Field(description="folds of the cross-validation")
    seed: Natural = Field(description="seed of the folds")

    @model_validator(mode="after")
    def _has_settings(self) -> "Silver":
        if self.questions and not self.settings:
            raise ValueError("questions are to be labelled and no strategy has a router: choose adaptive, or set it to 0")
        return self


class Metrics(Section):
    """What the judge is asked."""

    questions: Positive = Field(description="questions per cell given to the judge, balanced over types; the rest stay unjudged")
    rating_tokens: Positive = Field(description="longest reply of AnswerAccuracy's judges")
    claims_tokens: Positive = Field(description="longest reply that splits an answer into claims")
    verdict_tokens: Positive = Field(description="longest reply that holds a verdict per claim")


class KnownTruth(Section):
    """How the judge itself is measured."""

    questions: Natural = Field(description="calibration questions on which the judge is measured")


class Judge(Section):
    """The language model that judges, and what it is asked."""

    llm: Llm
    metrics: Metrics
    known_truth: KnownTruth


class Grid(Section):
    """Which cells run."""

    strategies: list[str] = Field(description="strategies that retrieve, each run under every mode")
    modes: list[str] = Field(description="retrieval modes")
    floor: list[str] = Field(description="strategies that never retrieve, each run once")


class Run(Section):
    """When a cell gives up."""

    max_failed_share: Share = Field(description="share of failed questions above which the cell aborts")


class Report(Section):
    """What metrics.json shows."""

    focus: str = Field(description="the cell whose numbers `dvc exp show` compares, as strategy-mode; empty: the grid's last")


class Params(Section):
    """The whole of params.yaml."""

    experiment: str = Field(description="experiment the parameters were composed from")
    grid: Grid
    dataset: Dataset
    embedder: Embedder
    store: Store
    retrieval: Retrieval
    sample: Sample
    calibration: Calibration
    silver: Silver
    strategy: dict[str, dict[str, Any]] = Field(description="settings of each strategy that retrieves; its folder knows the keys")
    floor: dict[str, dict[str, Any]] = Field(description="settings of strategies that never retrieve: the floor")
    reranker: Reranker = Field(description="what hybrid_rerank reorders with, and `grader: cross_encoder` grades with")
    served: Transport = Field(description="how requests to embedders and rerankers over HTTP travel")
    llm: Llm = Field(description="the model that answers")
    small_llm: Llm = Field(description="the model that routes, grades, rewrites and verifies; by default the same")
    judge: Judge
    run: Run
    report: Report

    @field_validator("experiment")
    @classmethod
    def _named(cls, value: str) -> str:
        if not value:
            raise ValueError("must not be empty")
        return value

    @model_validator(mode="after")
    def _grid_is_set(self) -> "Params":
        known = {
            "strategies": list(self.strategy),
            "modes": [n for n in MODES if getattr(self.retrieval, n)],
            "floor": list(self.floor),
        }
        for key, names in known.items():
            chosen = getattr(self.grid, key)
            for name in chosen:
                if name not in names:
                    raise ValueError(f"grid.{key}: {name!r} has no settings{nearest(name, names)}")
            if len(set(chosen)) != len(chosen):
                raise ValueError(f"grid.{key}: a name occurs twice")
        if self.grid.strategies and not self.grid.modes:
            raise ValueError(f"grid.modes: empty, but {self.grid.strategies[0]} retrieves; name a mode, e.g. {MODES[0]}")
        if not self.cells:
            raise ValueError("grid: no cell to run; name at least one strategy and one mode, or a floor")
        if self.report.focus and self.report.focus not in map(str, self.cells):
            choices = ", ".join(map(str, self.cells))
            raise ValueError(f"report.focus: {self.report.focus!r} is no cell of the grid; choose one of {choices}")
        return self

    @model_validator(mode="after")
    def _reranker_fits_embedder(self) -> "Params":
        if (self.reranker.kind, self.embedder.kind) == ("maxsim", "http"):
            raise ValueError(
                "reranker.kind: maxsim compares token vectors, which an embedder over HTTP does not give; "
                "choose reranker=http or reranker=bge_reranker"
            )
        return self

    @property
    def cells(self) -> list[Cell]:
        """Every cell of the grid, the floor first."""
        floor = [Cell(name, NO_MODE) for name in self.grid.floor]
        return floor + [Cell(s, m) for s in self.grid.strategies for m in self.grid.modes]
