"""MuSiQue-Ans as its authors publish it: JSON Lines, every question with its own 20 paragraphs and its decomposition.

The paragraphs of all questions become one corpus without repetition; those marked `is_supporting` are gold, in the order in which
the decomposition needs them. Source: Trivedi et al. 2022, arXiv:2108.00573.
"""

from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from rag_arena.errors import ArenaError
from rag_arena.params import MusiqueOfficial
from rag_arena.records import ORIGINAL
from rag_arena.sources.files import objects, present
from rag_arena.sources.pool import Pool
from rag_arena.sources.table import Ids, Loaded, list_of, not_empty, text_of


def check(dataset: MusiqueOfficial) -> None:
    """Is the file there?

    Raises:
        ArenaError: it is missing or is a folder.
    """
    present(Path(dataset.path), "dataset.path must be a file of MuSiQue-Ans, as musique_ans_v1.0_dev.jsonl")


def load(dataset: MusiqueOfficial) -> Loaded:
    """Read one file.

    Raises:
        ArenaError: naming file and line, for what is not JSON, a missing or empty field (the test file has no answers), a
            duplicate id, a paragraph or hop of another shape, an unanswerable question, or an empty file.
    """
    check(dataset)
    ids, pool = Ids("question"), Pool()
    questions: list[dict[str, Any]] = []
    unresolved: list[str] = []
    for where, row in islice(objects(Path(dataset.path)), dataset.limit):
        question_id = ids.new(text_of(row, ("id",), where), where)
        if row.get("answerable") is False:
            raise ArenaError(f"{where}: question {question_id!r} is unanswerable; use a file of MuSiQue-Ans, not MuSiQue-Full")
        paragraphs = {idx: (title, text) for idx, title, text in paragraphs_of(row, where)}
        documents = {idx: pool.add(title, text) for idx, (title, text) in paragraphs.items()}
        supporting = supporting_of(row, where)
        if not supporting:
            raise ArenaError(
                f"{where}: question {question_id!r} has no paragraph that is_supporting; recall needs gold documents"
            )
        unresolved += [f"{question_id}: paragraph {idx} has no text" for idx in supporting if documents[idx] is None]
        questions.append(
            {
                "question_id": question_id,
                "question": text_of(row, ("question",), where),
                "answer": text_of(row, ("answer",), where),
                "aliases": aliases_of(row, where),
                "question_type": "multi_hop",
                "gold_ids": list(dict.fromkeys(d for idx in supporting if (d := documents[idx]) is not None)),
                "decomposition": hops_of(row, documents, where),
                "origin": ORIGINAL,
            }
        )
    not_empty(questions, "questions", dataset.path)
    return Loaded(pool.corpus, questions, unresolved)


def aliases_of(row: Mapping[str, Any], where: str) -> list[str]:
    """Other accepted answers."""
    return [str(alias) for alias in list_of(row, "answer_aliases", where)]


def paragraphs_of(row: Mapping[str, Any], where: str) -> list[tuple[int, str, str]]:
    """The number, title and text of each paragraph.

    Raises:
        ArenaError: one has another shape.
    """
    found = []
    for paragraph in list_of(row, "paragraphs", where):
        if not isinstance(paragraph, dict) or not {"idx", "title", "paragraph_text", "is_supporting"} <= set(paragraph):
            raise ArenaError(f"{where}: an entry of paragraphs lacks idx, title, paragraph_text or is_supporting")
        found.append((paragraph["idx"], str(paragraph["title"]), str(paragraph["paragraph_text"])))
    return found


def supporting_of(row: Mapping[str, Any], where: str) -> list[int]:
    """Numbers of the supporting paragraphs, in the order of reasoning."""
    marked = [paragraph["idx"] for paragraph in list_of(row, "paragraphs", where) if paragraph["is_supporting"]]
    reasoned = [hop["paragraph_support_idx"] for hop in _hops(row, where)]
    return sorted(marked, key=lambda idx: reasoned.index(idx) if idx in reasoned else len(reasoned))


def hops_of(row: Mapping[str, Any], documents: Mapping[int, str | None], where: str) -> list[dict[str, str | None]]:
    """The decomposition, each hop with its document."""
    return [
        {
            "question": str(hop["question"]),
            "answer": str(hop["answer"]),
            "doc_id": documents.get(hop["paragraph_support_idx"]),
        }
        for hop in _hops(row, where)
    ]


def _hops(row: Mapping[str, Any], where: str) -> list[dict[str, Any]]:
    hops = list_of(row, "question_decomposition", where)
    if any(not isinstance(hop, dict) or not {"question", "answer", "paragraph_support_idx"} <= set(hop) for hop in hops):
        raise ArenaError(f"{where}: an entry of question_decomposition lacks question, answer or paragraph_support_idx")
    return hops
