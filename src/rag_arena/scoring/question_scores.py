"""One answered question's scores: its documents against gold, its answer against the reference, and why it is wrong."""

from collections.abc import Mapping
from typing import Any

from rag_arena.decisions import claimed
from rag_arena.records import FAILED, Cell, Question
from rag_arena.scoring import answers, evidence


def question_scores(cell: Cell, row: Mapping[str, Any], question: Question, judgement: Mapping[str, Any]) -> dict[str, Any]:
    """A row of the scores table.

    Args:
        cell: who answered.
        row: the question's row of the answers table.
        question: what was asked.
        judgement: its row of the judgements table, empty if it was not judged.
    """
    failed = row["status"] == FAILED
    short = question.question_type != "summary" and not failed
    said, accuracy = claimed(row["answer"] or ""), judgement.get("answer_accuracy")
    if failed:
        correct: bool | None = False
    elif short:
        correct = answers.matches(said, question.references)
    else:
        correct = None if accuracy is None else accuracy >= answers.CORRECT_AT
    return {
        "strategy": cell.strategy,
        "retrieval": cell.retrieval,
        "question_id": question.question_id,
        "question_type": question.question_type,
        "recall": None if failed else evidence.recall(row["used_ids"], question.gold_ids),
        "precision": None if failed else evidence.precision(row["used_ids"], question.gold_ids),
        "em": answers.exact_match(said, question.references) if short else None,
        "f1": answers.token_f1(said, question.references) if short else None,
        "contains": answers.contains(said, question.references) if short else None,
        "rouge_l": None if failed else answers.rouge_l(said, question.answer),
        "answer_accuracy": accuracy,
        "faithfulness": judgement.get("faithfulness"),
        "correct": correct,
        "failure": evidence.failure_class(failed, correct, row["retrieved_ids"], row["used_ids"], question.gold_ids),
    }
