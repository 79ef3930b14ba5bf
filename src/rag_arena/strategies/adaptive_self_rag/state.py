"""What a question carries through the loop, beside what every strategy's state holds."""

from typing import Literal

from rag_arena.records import Hit
from rag_arena.strategies.state import State

Failure = Literal["no_context", "unsupported", "not_useful"]


class Loop(State, total=False):
    """`queries` are searched for in this attempt, `found` is what they brought, not yet graded. `pool` is every document kept so
    far, its probability of relevance as score; `budget` is the longest context, in characters, that may be shown.

    `failure` is what the last attempt failed at, `unsupported` the claims at fault; `retries` counts the attempts after the
    first. `grounded` and `useful` are the verdicts on the answer, `confirmed` is true when both hold. `reused`: the answer is an
    earlier question's.
    """

    queries: list[str]
    found: list[Hit]
    pool: list[Hit]
    budget: int
    failure: Failure
    unsupported: list[str]
    retries: int
    grounded: bool
    useful: bool
    confirmed: bool
    reused: bool
