"""Strategies: one folder each, holding the graph (wiring only) and the prompts that it alone reads.

`shared/` holds the prompts that several read; nodes and state are common to all.
"""

import importlib
from typing import Any

from langgraph.graph.state import CompiledStateGraph

from rag_arena.errors import ArenaError
from rag_arena.strategies.state import State, Toolbox


def build(strategy: str) -> "CompiledStateGraph[State, Toolbox, Any, Any]":
    """The compiled graph of a strategy.

    Raises:
        ArenaError: no folder of that name holds a graph.
    """
    name = f"{__name__}.{strategy}.graph"
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and name.startswith(error.name):
            raise ArenaError(f"strategy {strategy!r}: src/rag_arena/strategies/{strategy}/graph.py does not exist") from error
        raise
    graph: CompiledStateGraph[State, Toolbox, Any, Any] = module.build()
    return graph
