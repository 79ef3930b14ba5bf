"""What each step of a cell costs: its model calls, their tokens, and how long they take."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from rag_arena.records import Cell


def node_cost_rows(cell: Cell, calls: Sequence[Mapping[str, Any]]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """A row per node that called a model, and the percentiles of its calls' seconds beside it, which vary from run to run."""
    for node in sorted({call["node"] for call in calls}):
        own = [call for call in calls if call["node"] == node]
        row = {
            "strategy": cell.strategy,
            "retrieval": cell.retrieval,
            "node": node,
            "calls": len(own),
            "tokens_in": sum(call["tokens_in"] for call in own),
            "tokens_out": sum(call["tokens_out"] for call in own),
        }
        seconds = [call["latency_s"] for call in own]
        yield row, {f"latency_p{q}_s": float(np.percentile(seconds, q)) for q in (50, 95, 99)}
