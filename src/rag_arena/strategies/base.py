"""What every strategy's settings have in common."""

from abc import abstractmethod

from pydantic import Field

from rag_arena.params import Positive, Section


class StrategySettings(Section):
    """Settings of one strategy under `strategy.NAME` (or `floor.NAME`) in params.yaml."""

    max_tokens: Positive = Field(description="longest answer, in tokens")

    @property
    @abstractmethod
    def max_calls(self) -> int:
        """The most model calls that one question can cost, whatever the model replies."""
