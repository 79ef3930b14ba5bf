"""What strategies decide, as steps of their trace: written by nodes, read by the scorecard and by whoever shows a path.

Three decision points: A, is retrieval needed (`retrieve`); B, are these documents useful, one by one (`keep`) and taken together
(`enough`); C, is the answer grounded in them (`grounded`). A step names its point under `decides`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

RETRIEVE, KEEP, ENOUGH, GROUNDED = "retrieve", "keep", "enough", "grounded"
GRADE = "grade"  # the node under which a model is asked about a document, whatever the step is called
NONE, ONE, SEVERAL = CHOICES = ("none", "one", "several")  # retrievals that a router can order, the cheapest first

UNCONFIRMED = "Not confirmed by the documents: "  # begins an answer that a strategy gives without vouching for it


def claimed(answer: str) -> str:
    """What an answer says, without the note that it is unconfirmed: that much is scored and judged."""
    return answer.removeprefix(UNCONFIRMED)


@dataclass(frozen=True, slots=True)
class Grade:
    """One document's probability of being useful, and whether it was kept.

    `source` says how the probability came about; `outside` is the mass that a model gave to neither Yes nor No, None where none
    was asked.
    """

    doc_id: str
    p: float
    kept: bool
    source: str
    outside: float | None = None


def verdict_step(node: str, point: str, verdict: bool | None, **more: Any) -> dict[str, Any]:
    """A yes-or-no decision: `retrieve`, `enough` or `grounded`.

    Args:
        node: the step.
        point: what is decided.
        verdict: None when undecided.
        more: what else the trace should hold. `p` is the probability of yes, whatever the verdict, and `source` says how it came
            about; `used` names the documents that the verdict is about, where they are not those of the last prompt.
    """
    return {"node": node, "decides": point, "verdict": verdict, **more}


def keep_step(node: str, grades: Sequence[Grade], **more: Any) -> dict[str, Any]:
    """A decision on every document at hand."""
    return {"node": node, "decides": KEEP, **more, "grades": [_grade(grade) for grade in grades]}


def _grade(grade: Grade) -> dict[str, Any]:
    outside = {} if grade.outside is None else {"outside": round(grade.outside, 6)}
    return {"doc_id": grade.doc_id, "p": round(grade.p, 6), "kept": grade.kept, "source": grade.source, **outside}
