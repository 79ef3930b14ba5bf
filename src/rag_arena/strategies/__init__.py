"""Strategies: one folder each, with `graph.py` (its settings and the wiring of its graph) and the prompts that it alone reads.

`shared/` holds the prompts that several read; nodes and state are common to all. The graph library is imported when a graph is
built, so that checking settings costs nothing.
"""

import importlib
import json
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pydantic import BaseModel, create_model

from rag_arena.errors import ArenaError
from rag_arena.params import Endpoint, Params, Section, nearest, section

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph

_FOLDER = Path(__file__).parent
_STEP_LIMIT = 1000  # far over any legal path: a graph that takes so many steps does not end


def known() -> list[str]:
    """Names of all strategies: the folders that hold a graph."""
    return sorted(path.parent.name for path in _FOLDER.glob("*/graph.py"))


def settings(strategy: str, params: Params, source: str = "params.yaml") -> Section:
    """A strategy's own settings, checked against the class in its graph.py; `source` is where they are written.

    Raises:
        ArenaError: the strategy does not exist or has no settings in params.yaml, or a key is unknown or out of bounds.
    """
    group = "floor" if strategy in params.floor else "strategy"
    values = getattr(params, group).get(strategy)
    module = _module(strategy)
    if values is None:
        chosen = ",".join([*params.strategy, *params.floor, strategy])
        raise ArenaError(
            f"params.yaml: strategy {strategy!r} has no settings; `arena compose 'strategy=[{chosen}]'` gives it some"
        )
    checked: Section = section(module.Settings, values, source, f"{group}.{strategy}.")
    return checked


def calibrated(strategy: str) -> dict[str, dict[str, str]]:
    """The thresholds among a strategy's settings that calibration may fill in, each with its scorer and what it separates."""
    found: dict[str, dict[str, str]] = _module(strategy).Settings.calibrated()
    return found


def in_force(strategy: str, resolved: pa.Table) -> Section:
    """A strategy's settings as the resolve stage wrote them: every threshold a number.

    Raises:
        ArenaError: a value is out of bounds, or the values contradict each other.
    """
    values = {row["key"]: json.loads(row["value"]) for row in resolved.to_pylist()}
    checked: Section = section(_module(strategy).Settings, values, "settings in force", f"strategy.{strategy}.")
    return checked


def settings_class(strategy: str) -> type[Section]:
    """The class of a strategy's settings."""
    found: type[Section] = _module(strategy).Settings
    return found


def check(params: Params, source: str = "params.yaml") -> None:
    """Check the settings of every strategy in params.yaml, and that the model can do what they need.

    Raises:
        ArenaError: as `settings`; or a strategy reads raw completions, and the model gives none.
    """
    for strategy in (*params.strategy, *params.floor):
        chosen: Any = settings(strategy, params, source)
        if chosen.reads_raw_completions and (lacks := _lacks_raw_completions(params.llm.endpoint)):
            raise ArenaError(f"{source}: strategy.{strategy}.variant {chosen.variant}: {lacks}, or choose variant prompted")
    if params.silver.questions:
        section(settings_class("adaptive"), params.silver.settings, source, "silver.settings.")


def _lacks_raw_completions(endpoint: Endpoint) -> str:
    if endpoint.kind == "embedded":
        return "the embedded model completes chats only; name a server of raw completions (llm=vllm)"
    return "" if endpoint.top_logprobs else "it reads log-probabilities; raise llm.endpoint.top_logprobs"


def build(strategy: str) -> "CompiledStateGraph[Any, Any, Any, Any]":
    """The compiled graph of a strategy."""
    graph: CompiledStateGraph[Any, Any, Any, Any] = _module(strategy).build()
    return graph.with_config(recursion_limit=_STEP_LIMIT)


def draw(strategy: str) -> str:
    """A strategy's graph as a Mermaid diagram; an edge that depends on a verdict names it."""
    compiled = build(strategy)
    drawn = compiled.get_graph()
    verdicts = {node: next(iter(branches.items())) for node, branches in compiled.builder.branches.items()}

    def label(edge: Any) -> str:
        name, branch = verdicts[edge.source]
        values = [str(value) for value, target in (branch.ends or {}).items() if target == edge.target]
        return f"{name}: {' or '.join({'True': 'yes', 'False': 'no'}.get(value, value) for value in values)}"

    drawn.edges = [edge._replace(data=label(edge)) if edge.data else edge for edge in drawn.edges]
    return drawn.draw_mermaid(with_styles=False).replace("&nbsp;", "").strip()


def full_model() -> type[BaseModel]:
    """Params with the settings of every strategy in place, for the JSON schema."""
    optional: dict[str, Any] = {name: (_module(name).Settings | None, None) for name in known()}
    group = create_model("Strategies", __base__=Section, **optional)
    return create_model("Params", __base__=Params, strategy=(group, ...), floor=(group, ...))


def _module(strategy: str) -> ModuleType:
    if strategy not in known():
        raise ArenaError(f"strategy {strategy!r} does not exist{nearest(strategy, known())}")
    return importlib.import_module(f"{__name__}.{strategy}.graph")
