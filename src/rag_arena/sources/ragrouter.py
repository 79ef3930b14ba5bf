"""RAGRouter-Bench's shape: Corpus.json and Question.json, JSON Lines (or one JSON array) in spite of the suffix.

Source: the dataset `Chaplain0908/RAGRouter`. Two shapes of supporting facts occur in it, with and without a document id;
facts without one are resolved by their text, else by a title that only one document bears.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rag_arena.errors import ArenaError
from rag_arena.params import RagRouter
from rag_arena.sources.files import Row, objects, present
from rag_arena.sources.gold import Resolver
from rag_arena.sources.table import Ids, Loaded, list_of, not_empty, question_type_of, text_of


def _files(dataset: RagRouter) -> tuple[Path, Path]:
    return Path(dataset.path, "Corpus.json"), Path(dataset.path, "Question.json")


def check(dataset: RagRouter) -> None:
    """Are both files there?

    Raises:
        ArenaError: one is missing or is a folder.
    """
    for path in _files(dataset):
        present(path, "the folder must hold Corpus.json and Question.json")


def load(dataset: RagRouter) -> Loaded:
    """Read a folder in RAGRouter's shape.

    Raises:
        ArenaError: naming file and line, for text that is not UTF-8 or not JSON, a missing or empty field, a duplicate
            id, a gold id that is not in the corpus, an unknown question type, or an empty file.
    """
    check(dataset)
    corpus_path, question_path = _files(dataset)
    corpus = documents(objects(corpus_path))
    not_empty(corpus, "documents", corpus_path)
    loaded = with_questions(corpus, objects(question_path))
    not_empty(loaded.questions, "questions", question_path)
    return loaded


def documents(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Rows of the corpus."""
    ids = Ids("document")
    return [
        {
            "doc_id": ids.new(text_of(row, ("id", "doc_id"), where), where),
            "title": str(row.get("title") or ""),
            "text": text_of(row, ("context", "text"), where),
        }
        for where, row in rows
    ]


def with_questions(corpus: list[dict[str, Any]], rows: Iterable[Row]) -> Loaded:
    """The corpus with the rows of the questions, their supporting facts resolved."""
    ids, resolver = Ids("question"), Resolver(corpus)
    questions: list[dict[str, Any]] = []
    unresolved: list[str] = []
    for where, row in rows:
        question_id = ids.new(text_of(row, ("id", "question_id"), where), where)
        gold, missing = resolver.resolve(list_of(row, "supporting_facts", where), where)
        if not gold and not missing:
            raise ArenaError(f"{where}: question {question_id!r} has no supporting_facts; recall needs gold documents")
        unresolved += [f"{question_id}: {fact}" for fact in missing]
        questions.append(
            {
                "question_id": question_id,
                "question": text_of(row, ("question",), where),
                "answer": text_of(row, ("answer",), where),
                "aliases": [str(a) for a in list_of(row, "aliases", where)],
                "question_type": question_type_of(row, ("type", "query_type"), where),
                "gold_ids": gold,
                "decomposition": [_hop(hop, where) for hop in list_of(row, "decomposition", where)],
            }
        )
    return Loaded(corpus, questions, unresolved)


def _hop(hop: Any, where: str) -> dict[str, str]:
    if not isinstance(hop, dict) or not {"question", "answer", "doc_id"} <= set(hop):
        raise ArenaError(f"{where}: an entry of decomposition lacks question, answer or doc_id")
    return {key: str(hop[key]) for key in ("question", "answer", "doc_id")}
