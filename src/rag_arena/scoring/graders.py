"""Graders of documents side by side: what each cell's grader was worth against the gold documents, and what it cost."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rag_arena.decisions import GRADE, KEEP
from rag_arena.records import Cell
from rag_arena.scoring.decisions import Path, verdicts
from rag_arena.scoring.verdicts import quality

_NO_MODEL = ("cross_encoder", "cosine")  # every other source is a reply of a model
LLM = "llm"


def grader_rows(
    cell: Cell, paths: Sequence[Path], calls: Sequence[Mapping[str, Any]], timings: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """A row per grader that the cell's grades come from, and its seconds beside it, which vary from run to run.

    Calls, tokens and seconds of `llm` are those of the calls labelled `grade`; the seconds of `cross_encoder` are all that the
    reranker took for grading, strips of documents included.
    """
    graded = [verdict for path in paths for (decision, _), verdict in verdicts(path) if decision == KEEP]
    asked = [call for call in calls if call["node"] == GRADE]
    for grader in sorted({_grader(verdict.source) for verdict in graded}):
        own = [verdict for verdict in graded if _grader(verdict.source) == grader]
        paid = asked if grader == LLM else []
        seconds = {LLM: sum(c["latency_s"] for c in asked), "cross_encoder": sum(t["grading_s"] for t in timings)}.get(grader)
        row = {
            "strategy": cell.strategy,
            "retrieval": cell.retrieval,
            "grader": grader,
            **quality(own),
            "llm_calls": len(paid),
            "tokens_in": sum(call["tokens_in"] for call in paid),
            "tokens_out": sum(call["tokens_out"] for call in paid),
        }
        yield row, {"seconds": seconds, "seconds_per_document": None if seconds is None else seconds / len(own)}


def _grader(source: str | None) -> str:
    return source if source in _NO_MODEL else LLM
