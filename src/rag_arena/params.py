"""The typed form of params.yaml: every key, its meaning and its bounds. Unknown keys are errors at every level."""

import difflib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import yaml
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    field_validator,
    model_validator,
)
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from rag_arena.errors import ArenaError
from rag_arena.records import Cell

MODES = ("dense", "sparse", "hybrid", "hybrid_rerank")
NO_MODE = "none"

Positive = Annotated[int, Field(ge=1)]
Natural = Annotated[int, Field(ge=0)]
Share = Annotated[float, Field(ge=0, le=1)]
S = TypeVar("S", bound=BaseModel)
Money = Annotated[float, Field(ge=0)]


class Section(BaseModel):
    """A part of params.yaml: exact types, no unknown key, no NaN or infinity."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


class Percentile(Section):
    """A threshold that is this percentile of the calibration split's best first-pass scores."""

    percentile: Annotated[float, Field(ge=0, le=100)] = Field(description="share of retrievals under the threshold, in percent")


class Sigmoid(Section):
    """P(relevant) = 1 / (1 + exp(-(score - tau) / temperature))."""

    tau: float = Field(description="score at which relevance is even")
    temperature: Annotated[float, Field(gt=0)] = Field(description="softness")


def or_say(wanted: str) -> WrapValidator:
    """One message for a union, instead of one per member."""

    def validated(value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
        try:
            return handler(value)
        except ValidationError as error:
            raise ValueError(f"must be {wanted}") from error

    return WrapValidator(validated)


Threshold = Annotated[Share | Literal["auto"] | Percentile, or_say("a number from 0 to 1, auto, or {percentile: 0 to 100}")]
Relevance = Annotated[Sigmoid | Literal["auto"], or_say("auto, or {tau: number, temperature: number over 0}")]


def calibrated(scorer: Literal["cosine", "relevance"], separates: Literal["bad", "good"]) -> dict[str, JsonValue]:
    """What `auto` and `percentile` mean for a threshold, as a field's `json_schema_extra`.

    Args:
        scorer: whose best first-pass score the threshold is on: raw cosine, or the reranker's calibrated probability.
        separates: `bad`: retrievals without any gold document from the rest; `good`: those whose first is gold from the rest.
    """
    return {"calibrated": {"scorer": scorer, "separates": separates}}


class Dataset(Section):
    """Where questions and documents come from."""

    name: str = Field(description="name shown in tables")
    kind: Literal["ragrouter"] = Field(description="shape of the files: Corpus.json and Question.json")
    path: str = Field(description="folder that holds the files, relative to the project or absolute")
    licence: str = Field(description="licence of the data, kept with the results")


class Bm25(Section):
    """Lexical weights of the sparse lane."""

    k: Annotated[float, Field(gt=0)] = Field(description="term frequency saturation (k1)")
    b: Share = Field(description="length normalisation")
    average_words: Annotated[float, Field(gt=0)] = Field(description="document length taken as average, in words")


class Embedder(Section):
    """What turns texts into dense and sparse vectors."""

    kind: Literal["minilm"] = Field(description="minilm: all-MiniLM-L6-v2, int8 ONNX, from an installed package")
    max_tokens: Annotated[int, Field(ge=8, le=512)] = Field(description="tokens read of a text; the rest is cut")
    bm25: Bm25


class Store(Section):
    """The vector store that a run fills from the index."""

    backend: Literal["local", "edge"] = Field(description="local: qdrant-client in memory; edge: qdrant-edge on disk")


class Lane(Section):
    """Retrieval by one lane of vectors."""

    candidates: Positive = Field(description="documents kept per question by first-pass retrieval")


class Hybrid(Lane):
    """Dense and sparse lanes fused by reciprocal rank."""

    rrf_constant: Positive = Field(description="c in 1/(c + rank), rank from 1; 60 in the paper")
    fusion: Literal["ours", "qdrant"] = Field(description="who fuses: our deterministic code or Qdrant's RrfQuery")


class Reranker(Sigmoid):
    """What takes a second look at candidates, and the sigmoid with which hybrid_rerank reads its scores."""

    kind: Literal["maxsim"] = Field(description="maxsim: late interaction over the embedder's token vectors")


class HybridRerank(Hybrid):
    """Hybrid candidates reordered; those under the relevance threshold are dropped."""

    relevance_threshold: Share = Field(description="candidates under this probability of relevance are dropped")
    reranker: Reranker


class Retrieval(Section):
    """Settings of each retrieval mode."""

    dense: Lane | None = None
    sparse: Lane | None = None
    hybrid: Hybrid | None = None
    hybrid_rerank: HybridRerank | None = None

    def mode(self, name: str) -> Lane:
        """Settings of one mode.

        Raises:
            ArenaError: the mode is unknown or has no settings.
        """
        if name not in MODES:
            raise ArenaError(f"retrieval mode {name!r} does not exist{nearest(name, MODES)}")
        found = getattr(self, name)
        if found is None:
            chosen = ",".join(mode for mode in MODES if mode == name or getattr(self, mode))
            raise ArenaError(f"params.yaml: retrieval.{name} is not set; `arena compose 'retrieval=[{chosen}]'` sets it")
        settings: Lane = found
        return settings


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


class Endpoint(Section):
    """Who answers: everything that can change a reply."""

    kind: Literal["embedded", "openai"] = Field(description="embedded: SmolLM2-135M in process; openai: any compatible server")
    model: str = Field(description="model name as the server knows it")
    base_url: str = Field("", description="URL up to and including /v1 (openai only)")
    api_key_env: str = Field("OPENAI_API_KEY", description="environment variable that holds the key (openai only)")
    temperature: float | None = Field(0.0, description="null: not sent")
    seed: int | None = Field(None, description="null: not sent")
    max_tokens_key: Literal["max_tokens", "max_completion_tokens"] = Field("max_tokens", description="what the server calls it")
    structured_output: Literal["json_schema", "json_object", "none"] = Field(
        "json_schema", description="how the judge's replies are held to a shape: by schema, as JSON, or by asking for it"
    )
    top_logprobs: Annotated[int, Field(ge=0, le=20)] = Field(
        20, description="likeliest tokens asked for where a verdict is a probability; 0: the server gives none, ask for JSON"
    )
    verdict_tokens: Positive = Field(32, description="longest reply that holds a verdict in JSON; raise it for a reasoning model")
    threads: Positive = Field(1, description="computing threads (embedded only); changes replies in the last bits")
    context_tokens: Positive = Field(8192, description="context window (embedded only)")

    @model_validator(mode="after")
    def _has_url(self) -> "Endpoint":
        if self.kind == "openai" and not self.base_url.startswith(("http://", "https://")):
            raise ValueError("base_url must start with http:// or https:// when kind is openai")
        return self


class Transport(Section):
    """How requests travel. Nothing here can change a reply, so no stage depends on it."""

    max_concurrency: Positive = Field(description="requests under way at once")
    deadline_s: Annotated[float, Field(gt=0)] = Field(description="seconds one attempt may take in all, however slowly it drips")
    max_retries: Natural = Field(description="further attempts after 408, 409, 429, 5xx or a lost connection")


class Price(Section):
    """Dollars per million tokens."""

    input: Money = Field(description="of the prompt")
    output: Money = Field(description="of the reply")

    def of(self, tokens_in: int, tokens_out: int) -> float:
        """Dollars for so many tokens."""
        return (tokens_in * self.input + tokens_out * self.output) / 1e6


class Llm(Section):
    """A language model: who answers, how requests travel, what it costs."""

    endpoint: Endpoint
    transport: Transport
    price: Price


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


class Web(Section):
    """A search engine outside the corpus. How requests travel is `llm.transport`'s."""

    base_url: str = Field(
        description="searxng: the instance's root, as http://localhost:8888; wikipedia: its api.php, as "
        "https://en.wikipedia.org/w/api.php"
    )
    api_key_env: str = Field(description="environment variable that holds a bearer token; empty: none is sent")

    @model_validator(mode="after")
    def _keeps_no_password(self) -> "Web":
        if "@" in self.base_url.partition("//")[2].partition("/")[0]:
            raise ValueError("base_url must not hold a password, which would be kept with the results; use api_key_env")
        return self


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

    @property
    def cells(self) -> list[Cell]:
        """Every cell of the grid, the floor first."""
        floor = [Cell(name, NO_MODE) for name in self.grid.floor]
        return floor + [Cell(s, m) for s in self.grid.strategies for m in self.grid.modes]


def validate(values: object, source: str) -> Params:
    """Check composed parameters, all but the settings of strategies, which `strategies.check` knows.

    Raises:
        ArenaError: naming the source, the key, and for an unknown key the nearest known one.
    """
    if not isinstance(values, dict):
        raise ArenaError(f"{source}: not a mapping of parameters; make it anew with `arena compose`")
    return section(Params, values, source, "")


def section(model: type[S], values: Mapping[str, Any], source: str, prefix: str) -> S:
    """Check one section's values; `prefix` is where it stands in params.yaml, with a final dot."""
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise ArenaError(f"{source}: {_explain(error, model, prefix)}") from error


def load(path: Path) -> Params:
    """Read and check params.yaml.

    Raises:
        ArenaError: it is missing, or as `parse`.
    """
    return parse(read(path), str(path))


def read(path: Path) -> bytes:
    """The bytes of params.yaml.

    Raises:
        ArenaError: it is missing.
    """
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise ArenaError(f"{path}: missing; make it with `arena compose` in the project's folder") from error


def parse(content: bytes, source: str) -> Params:
    """Check the bytes of params.yaml.

    Hydra and Snakemake read YAML 1.1 (`010` is 8, `yes` is true), DVC reads 1.2 (10, "yes"); what they would read differently is
    refused.

    Raises:
        ArenaError: not YAML, or as `validate`.
    """
    try:
        text = content.decode()
        values = yaml.safe_load(text)
        as_dvc = YAML(typ="safe", pure=True).load(text)
    except (yaml.YAMLError, YAMLError, UnicodeDecodeError) as error:
        raise ArenaError(f"{source}: not YAML ({' '.join(str(error).split())})") from error
    for key, ours, theirs in _disagreements(values, as_dvc, ""):
        raise ArenaError(f"{source}: {key} is {ours!r} to Snakemake and {theirs!r} to DVC; write the number in full or quote it")
    return validate(values, source)


def _disagreements(ours: Any, theirs: Any, key: str) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(ours, dict) and isinstance(theirs, dict) and set(ours) == set(theirs):
        for name in ours:
            yield from _disagreements(ours[name], theirs[name], f"{key}.{name}" if key else str(name))
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for position, pair in enumerate(zip(ours, theirs, strict=True)):
            yield from _disagreements(*pair, f"{key}[{position}]")
    elif (type(ours), ours) != (type(theirs), theirs) and ours == ours:  # NaN is refused elsewhere
        yield key, ours, theirs


def _explain(error: ValidationError, model: type[BaseModel], prefix: str) -> str:
    # an unknown key first: it may be the misspelt form of one that is missing
    first = min(error.errors(), key=lambda found: found["type"] != "extra_forbidden")
    key = prefix + ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        return f"unknown key {key}{nearest(str(first['loc'][-1]), _siblings(model, first['loc'][:-1]))}"
    if first["type"] == "missing":
        return f"key {key} is missing"
    message = first["msg"].removeprefix("Value error, ")
    if isinstance(first["input"], dict):  # of a whole section the message names the keys; all its values would say too much
        return f"{key.rstrip('.')}: {message}" if key else message
    return f"{key}: {message} (got {first['input']!r})"


def _siblings(model: Any, location: tuple[int | str, ...]) -> list[str]:
    for part in location:
        annotation = model.model_fields[part].annotation
        options = [a for a in getattr(annotation, "__args__", (annotation,)) if isinstance(a, type) and issubclass(a, BaseModel)]
        model = options[0]
    return list(model.model_fields)


def nearest(name: str, known: Sequence[str]) -> str:
    """The end of an error message about an unknown name: the nearest known one, or all of them."""
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f"; did you mean {close[0]}?" if close else f"; known: {', '.join(known)}"
