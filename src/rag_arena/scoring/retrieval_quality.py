"""What first-pass retrieval found, mode by mode, and how far two modes differ."""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from rag_arena.artifacts import hits_of
from rag_arena.records import documents_of
from rag_arena.scoring import evidence
from rag_arena.scoring.groups import groups, mean, of, origins

Rankings = Mapping[str, Mapping[str, list[str]]]  # document ids of each mode and question, best first


def ranking(hits: pa.Table) -> dict[str, list[str]]:
    """Distinct document ids of each question, best first, of a mode's hits."""
    return {question_id: documents_of(hit.doc_id for hit in found) for question_id, found in hits_of(hits).items()}


def retrieval_quality(rankings: Rankings, questions: Sequence[Mapping[str, Any]]) -> Iterable[dict[str, Any]]:
    """Per mode and type or origin of question, over all with gold documents: recall at k, MRR, and how often nothing was found.

    Without any such question there is nothing to tell, and no row.
    """
    with_gold = [question for question in questions if question["gold_ids"]]
    if not with_gold:
        return
    for mode, found in rankings.items():
        for group in (*groups(q["question_type"] for q in with_gold), *origins(q["origin"] for q in with_gold)):
            chosen = [(found.get(q["question_id"], []), q["gold_ids"]) for q in of(group, with_gold)]
            yield {
                "retrieval": mode,
                "question_type": group,
                "n_questions": len(chosen),
                **{f"recall_at_{k}": mean(evidence.recall_at(ids, gold, k) for ids, gold in chosen) for k in (1, 3, 5, 10)},
                "mrr": mean(evidence.reciprocal_rank(ids, gold) for ids, gold in chosen),
                "empty_rate": mean(not ids for ids, _ in chosen),
            }


def disagreement(rankings: Rankings, questions: Sequence[Mapping[str, Any]]) -> Iterable[dict[str, Any]]:
    """For every two modes: how often their top documents differ, and the mean Jaccard overlap of their top three."""
    asked = [question["question_id"] for question in questions]
    for a, b in itertools.combinations(rankings, 2):
        tops = [(rankings[a].get(q, []), rankings[b].get(q, [])) for q in asked]
        yield {
            "retrieval_a": a,
            "retrieval_b": b,
            "n_questions": len(asked),
            "top_1_differs": mean(first[:1] != second[:1] for first, second in tops),
            "top_3_overlap": mean(_jaccard(first[:3], second[:3]) for first, second in tops),
        }


def _jaccard(a: Sequence[str], b: Sequence[str]) -> float:
    return len(set(a) & set(b)) / len(set(a) | set(b)) if a or b else 1.0
