"""What strategies' settings have in common."""

from abc import abstractmethod
from typing import Any, Self

from pydantic import Field, model_validator

from rag_arena.params import Positive, Section


class StrategySettings(Section):
    """Settings of one strategy under `strategy.NAME` (or `floor.NAME`) in params.yaml."""

    max_tokens: Positive = Field(description="longest answer, in tokens")

    @model_validator(mode="after")
    def _calibratable(self) -> Self:
        """A threshold of relevance is calibrated on the reranker's scores, which say nothing of a model's verdicts."""
        for key, scale in self.calibrated().items():
            if (
                scale["scorer"] == "relevance"
                and getattr(self, "grader", None) == "llm"
                and not isinstance(getattr(self, key), float)
            ):
                raise ValueError(f"{key} is calibrated on the reranker's scores, and the grader is llm; type a number")
        return self

    @classmethod
    def calibrated(cls) -> dict[str, dict[str, str]]:
        """The thresholds among the settings that calibration may fill in, each with its scorer and what it separates."""
        extras: dict[str, Any] = {key: field.json_schema_extra for key, field in cls.model_fields.items()}
        return {key: extra["calibrated"] for key, extra in extras.items() if extra and "calibrated" in extra}

    @property
    def reads_raw_completions(self) -> bool:
        """Whether the model must continue raw text and give log-probabilities of every token."""
        return False

    @property
    def reranks(self) -> bool:
        """Whether the reranker is asked, so that its sigmoid must be known."""
        return True

    @property
    @abstractmethod
    def max_calls(self) -> int:
        """The most model calls that one question can cost, whatever the model replies."""

    @property
    def one_by_one(self) -> bool:
        """Must questions be asked one after another, in the order of their ids, for answers to be a function of the inputs?"""
        return False


class LoopSettings(StrategySettings):
    """What a loop of thoughts and retrievals needs."""

    k: Positive = Field(description="documents per retrieval; shared with vanilla unless overridden")
    max_steps: Positive = Field(description="most thoughts, each followed by a retrieval; at most 10 in the paper")
    max_paragraphs: Positive = Field(description="most documents collected; 15 in the paper")
    step_tokens: Positive = Field(description="longest reply to a request for a thought, in tokens; its first sentence counts")

    @model_validator(mode="after")
    def _room_for_the_first(self) -> Self:
        if self.max_paragraphs < self.k:
            raise ValueError("max_paragraphs must not be under k")
        return self
