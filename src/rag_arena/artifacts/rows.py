"""Rows of artifacts as the records that strategies and scores work on."""

import pyarrow as pa

from rag_arena.errors import ArenaError
from rag_arena.records import Document, Hit, Question


def documents(corpus: pa.Table) -> dict[str, Document]:
    """The documents of the corpus artifact by id, in its order."""
    rows = corpus.to_pylist()
    return {row["doc_id"]: Document(row["doc_id"], row["title"], row["text"], tuple(row["metadata"])) for row in rows}


def hits_of(hits: pa.Table) -> dict[str, list[Hit]]:
    """The hits of each question that has any, best first."""
    found: dict[str, list[Hit]] = {}
    for row in hits.to_pylist():
        found.setdefault(row["question_id"], []).append(Hit(row["doc_id"], row["score"], row["cosine"]))
    return found


def questions_of(questions: pa.Table, sample: pa.Table) -> list[Question]:
    """The questions of a split, by id.

    Raises:
        ArenaError: the split is of another dataset.
    """
    chosen = set(sample["question_id"].to_pylist())
    if strangers := sorted(chosen.difference(questions["question_id"].to_pylist())):
        raise ArenaError(f"data/sample: the dataset has no question {strangers[0]!r}; draw the splits anew with `arena sample`")
    return [
        Question(
            row["question_id"],
            row["question"],
            row["answer"],
            tuple(row["aliases"]),
            row["question_type"],
            tuple(row["gold_ids"]),
            tuple(row["where"]),
            row["origin"],
        )
        for row in questions.to_pylist()
        if row["question_id"] in chosen
    ]
