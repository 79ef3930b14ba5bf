"""The decision scorecard: every verdict in the traces of a cell against what the gold documents and the answers say.

A, `retrieve`, one verdict per question (yes if any step chose to retrieve), against "closed book wrong": the floor's no_retrieval
gave a wrong answer. B, `keep`, every grade of every document, against "gold": it is a gold document; `enough`, against "gold at
hand": one at least is among the documents that the verdict was about. C, `grounded`, against "gold in use": one at least stood in
the prompt that the verdict was about; and the last one of each question against "right answer".

Verdicts and grades of all rounds count. A chunk is gold if its document is.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rag_arena.decisions import ENOUGH, GROUNDED, KEEP, RETRIEVE
from rag_arena.records import Cell, document_of
from rag_arena.scoring.groups import ALL, groups
from rag_arena.scoring.verdicts import Verdict, quality

CLOSED_BOOK_WRONG, GOLD, GOLD_AT_HAND, GOLD_IN_USE, RIGHT = (
    "closed book wrong",
    "gold",
    "gold at hand",
    "gold in use",
    "right answer",
)
Step = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Path:
    """What one answered question went through in one cell, and what is known of it.

    `correct` and `closed_book_correct` are None where correctness is not known.
    """

    question_type: str
    trace: Sequence[Step]
    retrieved: Sequence[str]
    used: Sequence[str]
    gold: frozenset[str]
    corrected: bool | None
    changed: bool | None
    correct: bool | None
    closed_book_correct: bool | None


def scorecard(cell: Cell, paths: Sequence[Path]) -> Iterator[dict[str, Any]]:
    """A row per question type, decision and truth that occur."""
    found: dict[tuple[str, str], list[tuple[str, Verdict]]] = {}
    for path in paths:
        for point, verdict in verdicts(path):
            found.setdefault(point, []).append((path.question_type, verdict))
    for (decision, against), rows in found.items():
        for group in groups(kind for kind, _ in rows):
            yield {
                "strategy": cell.strategy,
                "retrieval": cell.retrieval,
                "question_type": group,
                "decision": decision,
                "against": against,
                **quality([verdict for kind, verdict in rows if group in (ALL, kind)]),
            }


def verdicts(path: Path) -> Iterator[tuple[tuple[str, str], Verdict]]:
    """Every verdict of a path with the decision and the truth that it is held against."""
    if (retrieve := whether_to_retrieve(path)) is not None:
        yield (RETRIEVE, CLOSED_BOOK_WRONG), retrieve
    at_hand: Sequence[str] = ()
    used: Sequence[str] = path.used
    last_grounded: Verdict | None = None
    for step in path.trace:
        used = step.get("used", used)
        decides = step.get("decides")
        if decides == KEEP:
            for grade in step["grades"]:
                yield (KEEP, GOLD), Verdict(grade["kept"], _any_gold([grade["doc_id"]], path), grade["p"], grade["source"])
        elif decides == ENOUGH:
            yield (ENOUGH, GOLD_AT_HAND), _verdict(step, _any_gold(at_hand, path))
        elif decides == GROUNDED:
            yield (GROUNDED, GOLD_IN_USE), _verdict(step, _any_gold(used, path))
            last_grounded = _verdict(step, path.correct)
        if "hits" in step or "grades" in step:
            at_hand = [found["doc_id"] for found in step.get("hits", step.get("grades", []))]
    if last_grounded is not None:
        yield (GROUNDED, RIGHT), last_grounded


def whether_to_retrieve(path: Path) -> Verdict | None:
    """The verdict on retrieving at all: yes if any step said so, with the highest probability; None when nothing was decided."""
    steps = [step for step in path.trace if step.get("decides") == RETRIEVE]
    if not steps:
        return None
    ps = [step["p"] for step in steps if step.get("p") is not None]
    needed = None if path.closed_book_correct is None else not path.closed_book_correct
    return Verdict(any(step["verdict"] for step in steps), needed, max(ps, default=None), steps[0].get("source"))


def _verdict(step: Step, truth: bool | None) -> Verdict:
    return Verdict(step["verdict"], truth, step.get("p"), step.get("source"))


def _any_gold(doc_ids: Sequence[str], path: Path) -> bool | None:
    return not path.gold.isdisjoint(map(document_of, doc_ids)) if path.gold else None
