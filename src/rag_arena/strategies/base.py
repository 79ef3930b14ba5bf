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

    @property
    def one_by_one(self) -> bool:
        """Must questions be asked one after another, in the order of their ids, for answers to be a function of the inputs?"""
        return False
