"""Scores of retrieved documents against the gold ones, and why an answer failed. A chunk counts as its document."""

from collections.abc import Collection, Sequence

from rag_arena.records import FAILED, document_of, documents_of

NOT_RETRIEVED = "evidence not retrieved"
PARTLY_RETRIEVED = "evidence partly retrieved"
NOT_USED = "retrieved but not used"
WRONG = "used but answered wrong"
GOOD, ACCEPTABLE, BAD = "good", "acceptable", "bad"


def recall(used: Collection[str], gold: Collection[str]) -> float | None:
    """|used and gold| / |gold|; None without gold documents."""
    return len(_distinct(used) & set(gold)) / len(set(gold)) if gold else None


def precision(used: Collection[str], gold: Collection[str]) -> float | None:
    """|used and gold| / |used|; None when nothing was used or there are no gold documents."""
    return len(_distinct(used) & set(gold)) / len(_distinct(used)) if used and gold else None


def recall_at(ranking: Sequence[str], gold: Collection[str], k: int) -> float:
    """Share of the gold documents among the first k distinct documents."""
    return len(set(documents_of(ranking)[:k]) & set(gold)) / len(set(gold))


def reciprocal_rank(ranking: Sequence[str], gold: Collection[str]) -> float:
    """1 / rank of the first gold document among the distinct ones, 0 if none is there."""
    return next((1.0 / rank for rank, doc_id in enumerate(documents_of(ranking), 1) if doc_id in gold), 0.0)


def retrieval_label(holds_evidence: Sequence[bool | None]) -> str | None:
    """How good a retrieval is, from whether each of its documents, best first, holds evidence (None: not known).

    GOOD: the first does. ACCEPTABLE: another one does. BAD: none does. None where too little is known to tell.
    """
    if not holds_evidence:
        return BAD
    if holds_evidence[0] is not False:
        return GOOD if holds_evidence[0] else None
    if any(holds_evidence):
        return ACCEPTABLE
    return None if None in holds_evidence else BAD


def failure_class(
    failed: bool, correct: bool | None, retrieved: Collection[str], used: Collection[str], gold: Collection[str]
) -> str | None:
    """Where a wrong answer went wrong; None for a right one, or where correctness is not known.

    The first that applies: the question failed; no gold document was ever retrieved; some were and some not; one was retrieved
    but left out of the prompt; all stood in the prompt and the answer is wrong all the same.
    """
    if failed:
        return FAILED
    if correct is None or correct or not gold:
        return None
    if not set(gold) <= _distinct(retrieved):
        return PARTLY_RETRIEVED if set(gold) & _distinct(retrieved) else NOT_RETRIEVED
    return WRONG if set(gold) <= _distinct(used) else NOT_USED


def _distinct(doc_ids: Collection[str]) -> set[str]:
    return set(map(document_of, doc_ids))
