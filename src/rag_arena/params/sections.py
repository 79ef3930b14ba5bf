"""What every section of params.yaml is made of: exact types, bounds, thresholds that may be calibrated."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError, ValidatorFunctionWrapHandler, WrapValidator

Positive = Annotated[int, Field(ge=1)]
Natural = Annotated[int, Field(ge=0)]
Share = Annotated[float, Field(ge=0, le=1)]
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


Variable = Annotated[str, Field(pattern=r"^([A-Za-z_][A-Za-z0-9_]*)?$")]  # of the environment, by name


def holds_password(url: str) -> bool:
    """Does an address hold a name or password before its host?"""
    return "@" in url.partition("//")[2].partition("/")[0]


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
