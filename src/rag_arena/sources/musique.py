"""RAGRouter-Bench's MuSiQue subset from the Hugging Face hub, joined with what MuSiQue's own files know of the same questions.

RAGRouter leaves out other accepted answers and the decomposition. If MuSiQue's own files lie in `dataset.path`, both come back, a
question being known by its text and answer. Of the subset's 3,356 questions 2,417 are MuSiQue-Ans's dev set; 939 were generated:
every single_hop and summary question, and 173 multi_hop ones, which only MuSiQue's own files tell from the original ones.
"""

from pathlib import Path
from typing import Any

from rag_arena.errors import ArenaError
from rag_arena.params import Musique
from rag_arena.records import GENERATED, ORIGINAL
from rag_arena.sources import hub, ragrouter
from rag_arena.sources import musique_official as official
from rag_arena.sources.files import objects
from rag_arena.sources.gold import Resolver, normalised
from rag_arena.sources.table import Loaded, text_of


def check(dataset: Musique) -> None:
    """Is the folder for MuSiQue's own files there? It may hold none.

    Raises:
        ArenaError: it is missing.
    """
    if not Path(dataset.path).is_dir():
        raise ArenaError(f"{dataset.path}: missing; dataset.path must be a folder, in which MuSiQue's own .jsonl files may lie")


def load(dataset: Musique) -> Loaded:
    """Fetch both files from the hub, and join MuSiQue's own.

    Raises:
        ArenaError: as `hub.find` and `hub.rows`; or naming file and row, as `ragrouter.load` and `musique_official.load`.
    """
    check(dataset)
    address = hub.find(dataset.hub, dataset.config, dataset.revision)
    corpus = ragrouter.documents(hub.rows(address, address.corpus))
    loaded = ragrouter.with_questions(corpus, hub.rows(address, address.questions))
    own = _own(Path(dataset.path), Resolver(corpus))
    known = [own.get(_key(row["question"], row["answer"])) for row in loaded.questions]
    generated = [bool(any(known)) or row["question_type"] != "multi_hop" for row in loaded.questions]
    questions = [
        {**row, **(more or {"origin": GENERATED if invented else None})}
        for row, more, invented in zip(loaded.questions, known, generated, strict=True)
    ]
    return Loaded(corpus, questions, loaded.unresolved, source=address.source)


def _own(folder: Path, resolver: Resolver) -> dict[tuple[str, str], dict[str, Any]]:
    """What MuSiQue's own files add to a question, by question and answer."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for path in sorted(folder.glob("*.jsonl")):
        for where, row in objects(path):
            documents = {idx: _document(resolver, title, text, where) for idx, title, text in official.paragraphs_of(row, where)}
            key = _key(text_of(row, ("question",), where), text_of(row, ("answer",), where))
            found[key] = {
                "aliases": official.aliases_of(row, where),
                "decomposition": official.hops_of(row, documents, where),
                "origin": ORIGINAL,
            }
    return found


def _document(resolver: Resolver, title: str, text: str, where: str) -> str | None:
    gold, _ = resolver.resolve([{"title": title, "paragraph_text": text}], where)
    return gold[0] if gold else None


def _key(question: str, answer: str) -> tuple[str, str]:
    return normalised(question), normalised(answer)
