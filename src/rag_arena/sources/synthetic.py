"""Invented documents and questions of any number, in the proportions of RAGRouter's MuSiQue subset.

Every entity has a name made of two words; a document is about one entity (its title) and states one fact of it, a relation to
another entity, between sentences of random words (frequencies as 1 / rank). A multi-hop question follows a chain of facts, a
summary question asks for the five facts of one entity, whose five documents share its title. No two questions share a gold
document. Of the other documents, every fourth bears the title of a gold document and says something else; the rest state facts
of the same relations about other entities. What retrieval finds here says nothing about real text; how long it takes does.
"""

import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rag_arena.errors import ArenaError
from rag_arena.params import Synthetic
from rag_arena.records import GENERATED, QuestionType
from rag_arena.sources.files import present, text
from rag_arena.sources.table import Loaded
from rag_arena.wording import count

# 2, 3 and 4 hops: MuSiQue-Ans dev has 1,252, 760 and 405, RAGRouter adds 84 and 89 generated ones
_HOPS = {2: 1252 + 84, 3: 760 + 89, 4: 405}
_RELATIONS = ("founder", "rival", "patron", "heir", "teacher", "neighbour", "namesake", "keeper", "builder", "successor")
_SUMMARISED = 5  # facts of a summary
_SENTENCES = 5  # of random words, around a fact
_SHARED_TITLE = 4  # every so many distractors bears the title of a gold document


def check(dataset: Synthetic) -> None:
    """Is the file of words there?

    Raises:
        ArenaError: it is missing or is a folder.
    """
    present(Path(dataset.path), "dataset.path must be a file of words, as data/synthetic/words.txt")


def load(dataset: Synthetic) -> Loaded:
    """Invent a dataset.

    Raises:
        ArenaError: the questions need more documents than asked for, or the documents more words than the file has; or there are
            no questions.
    """
    check(dataset)
    chains = [*_chains(dataset.multi_hop), *[1] * dataset.single_hop]
    gold = sum(chains) + _SUMMARISED * dataset.summary
    if not chains and not dataset.summary:
        raise ArenaError("params.yaml: dataset.multi_hop, dataset.single_hop and dataset.summary are all 0; ask for a question")
    if gold > dataset.documents:
        raise ArenaError(f"params.yaml: dataset.documents is {dataset.documents}, but the questions need {gold}; raise it")
    draw = random.Random(dataset.seed)  # noqa: S311
    names = 2 * dataset.documents + len(chains) + dataset.summary  # enough: a document names two entities at most
    world = _World(draw, list(dict.fromkeys(text(Path(dataset.path)).split())), names, dataset.path)
    questions = [*(world.chain(hops) for hops in chains), *(world.summary() for _ in range(dataset.summary))]
    world.fill(dataset.documents)
    draw.shuffle(questions)
    numbered = {f"synthetic_{number:05d}": question for number, question in enumerate(questions, 1)}
    ids = [str(number) for number in draw.sample(range(dataset.documents), dataset.documents)]
    return Loaded(
        [{"doc_id": doc_id, "title": title, "text": said} for doc_id, (title, said) in zip(ids, world.documents, strict=True)],
        [question.row(question_id, ids) for question_id, question in numbered.items()],
        [],
    )


def _chains(questions: int) -> Iterator[int]:
    """How many hops each multi-hop question has: the proportions of `_HOPS`, rounded so that the sum is kept."""
    total, done, seen = sum(_HOPS.values()), 0, 0
    for hops, share in _HOPS.items():
        seen += share
        upto = round(questions * seen / total)
        yield from [hops] * (upto - done)
        done = upto


@dataclass(frozen=True, slots=True)
class _Question:
    text: str
    answer: str
    kind: QuestionType
    gold: list[int]  # positions among the documents
    hops: list[tuple[str, str]]  # question and answer of each

    def row(self, question_id: str, ids: Sequence[str]) -> dict[str, Any]:
        gold = [ids[position] for position in self.gold]
        return {
            "question_id": question_id,
            "question": self.text,
            "answer": self.answer,
            "aliases": [],
            "question_type": self.kind,
            "gold_ids": gold,
            "origin": GENERATED,
            "decomposition": [
                {"question": question, "answer": answer, "doc_id": doc_id}
                for (question, answer), doc_id in zip(self.hops, gold, strict=False)
            ],
        }


class _World:
    """The documents invented so far, as title and text, and what the next ones are made of."""

    def __init__(self, draw: random.Random, words: Sequence[str], names: int, path: str) -> None:
        if len(words) ** 3 < names:
            raise ArenaError(f"{path}: {count(len(words), 'word')}, too few for {names} names of three; add words")
        self._draw, self._words = draw, words
        self._weights = list(itertools.accumulate(1 / rank for rank in range(1, len(words) + 1)))
        self._names = iter(draw.sample(range(len(words) ** 3), names))
        self.documents: list[tuple[str, str]] = []

    def chain(self, hops: int) -> _Question:
        """A question whose answer is the last entity of a chain of facts, and their documents."""
        entities = [self._name() for _ in range(hops + 1)]
        relations = self._draw.choices(_RELATIONS, k=hops)
        gold = [
            self._document(one, self._fact(one, relation, other))
            for one, relation, other in zip(entities, relations, entities[1:], strict=False)
        ]
        nested = " of ".join(f"the {relation}" for relation in reversed(relations))
        asked = [f"Who is the {relation} of {one}?" for one, relation in zip(entities, relations, strict=False)]
        steps = list(zip(asked, entities[1:], strict=True)) if hops > 1 else []
        return _Question(
            f"Who is {nested} of {entities[0]}?", entities[-1], "multi_hop" if hops > 1 else "single_hop", gold, steps
        )

    def summary(self) -> _Question:
        """A question for all facts of one entity, and their documents; the reference is the facts."""
        entity, relations = self._name(), self._draw.sample(_RELATIONS, _SUMMARISED)
        facts = [self._fact(entity, relation, self._name()) for relation in relations]
        gold = [self._document(entity, fact) for fact in facts]
        asked = f"Who are the {', '.join(relations[:-1])} and {relations[-1]} of {entity}, and what is known of them?"
        return _Question(asked, " ".join(facts), "summary", gold, [])

    def fill(self, size: int) -> None:
        """Distractors, until there are so many documents."""
        titles = [title for title, _ in self.documents]
        for number in range(size - len(titles)):
            if number % _SHARED_TITLE:
                entity = self._name()
                self._document(entity, self._fact(entity, self._draw.choice(_RELATIONS), self._name()))
            else:
                self._document(self._draw.choice(titles), self._sentence())

    def _document(self, title: str, said: str) -> int:
        sentences = [self._sentence() for _ in range(_SENTENCES)]
        sentences.insert(self._draw.randrange(_SENTENCES + 1), said)
        self.documents.append((title, " ".join(sentences)))
        return len(self.documents) - 1

    def _fact(self, entity: str, relation: str, other: str) -> str:
        told, of = self._draw.choices(self._words, k=2)
        year = self._draw.randrange(1100, 2000)
        return f"The {relation} of {entity} is {other}, known by the {told} of the year {year} that tells of the {of}."

    def _sentence(self) -> str:
        words = self._draw.choices(self._words, cum_weights=self._weights, k=self._draw.randrange(8, 15))
        return f"{' '.join(words).capitalize()}."

    def _name(self) -> str:
        first, rest = divmod(next(self._names), len(self._words) ** 2)
        second, third = divmod(rest, len(self._words))
        return f"{self._words[first].capitalize()} {self._words[second].capitalize()}{self._words[third]}"
