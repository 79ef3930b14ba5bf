"""What one question costs: every model call and the time spent retrieving, whoever makes them.

A meter is carried by a context variable, so that calls made deep inside a library (ragas, instructor) are counted by
the same code as our own.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, fields
from typing import Any


@dataclass(frozen=True, slots=True)
class Call:
    """One completed model call.

    `latency_s` is the model's own time, without queueing; a replay repeats the original's. `tier` is the section of params.yaml
    whose model was asked, llm or small_llm; empty for the judge.
    """

    node: str
    key: str
    endpoint: str
    request: str
    reply: str
    tokens_in: int
    tokens_out: int
    latency_s: float
    replayed: bool
    tier: str = ""


@dataclass(slots=True)
class Meter:
    """Calls of one question, seconds of its live searches and of reranking for grades, and how many searches were recorded.

    `lookups` are searches of the web: recorded and replayed as calls are, but no model was asked.
    """

    calls: list[Call] = field(default_factory=list)
    lookups: list[Call] = field(default_factory=list)
    search_s: float = 0.0
    grading_s: float = 0.0
    recorded_searches: int = 0


_meter: ContextVar[Meter | None] = ContextVar("meter", default=None)
_node: ContextVar[str] = ContextVar("node", default="")
_tier: ContextVar[str] = ContextVar("tier", default="")


@contextmanager
def metered() -> Iterator[Meter]:
    """Count everything that happens inside the block."""
    meter = Meter()
    token = _meter.set(meter)
    try:
        yield meter
    finally:
        _meter.reset(token)


@contextmanager
def labelled(node: str, tier: str = "") -> Iterator[None]:
    """Name the step that the calls inside the block belong to, and the tier of model that is asked."""
    tokens = _node.set(node), _tier.set(tier)
    try:
        yield
    finally:
        _node.reset(tokens[0])
        _tier.reset(tokens[1])


def current_node() -> str:
    """The label in force, empty outside any."""
    return _node.get()


def current_tier() -> str:
    """The tier in force, empty outside any."""
    return _tier.get()


def record_call(call: Call) -> None:
    """Add a call to the meter in force, if any."""
    if (meter := _meter.get()) is not None:
        meter.calls.append(call)


def record_lookup(lookup: Call) -> None:
    """Add a search of the web to the meter in force, if any; its seconds are those of a search."""
    if (meter := _meter.get()) is not None:
        meter.lookups.append(lookup)
        meter.search_s += lookup.latency_s


def record_search(seconds: float | None) -> None:
    """Add a search to the meter in force, if any: a live one with its seconds, a recorded one with None."""
    if (meter := _meter.get()) is None:
        return
    if seconds is None:
        meter.recorded_searches += 1
    else:
        meter.search_s += seconds


def record_grading(seconds: float) -> None:
    """Add what the reranker took to grade documents to the meter in force, if any."""
    if (meter := _meter.get()) is not None:
        meter.grading_s += seconds


def call_rows(question_id: str, meter: Meter) -> list[dict[str, Any]]:
    """A meter's calls, then its lookups, as rows of the calls artifact."""
    columns = [field.name for field in fields(Call) if field.name != "tier"]
    return [
        {"question_id": question_id, "position": position, **{column: getattr(call, column) for column in columns}}
        for position, call in enumerate([*meter.calls, *meter.lookups])
    ]
