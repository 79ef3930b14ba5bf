"""label: the documents of one mode's calibration questions that a user is asked about."""

import pyarrow as pa

from rag_arena.records import Document
from rag_arena.sources.labels import Row


def label(k: int, documents: dict[str, Document], questions: pa.Table, sample: pa.Table, hits: pa.Table) -> list[Row]:
    """An unlabelled row for each question's top k, questions by id, documents best first."""
    asked = set(sample["question_id"].to_pylist())
    texts = {row["question_id"]: row["question"] for row in questions.to_pylist() if row["question_id"] in asked}
    return [
        Row(row["question_id"], row["doc_id"], texts[row["question_id"]], documents[row["doc_id"]].title, f"{row['cosine']:.4f}")
        for row in hits.to_pylist()
        if row["question_id"] in asked and row["rank"] <= k
    ]
