"""The small records that every layer speaks."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

T = TypeVar("T")
Metadata = tuple[tuple[str, str], ...]  # columns and their values, by column
QuestionType = Literal["multi_hop", "single_hop", "summary"]
ANSWERED, FAILED = "answered", "failed"  # what became of a question
COSINE, RELEVANCE = "cosine", "relevance"  # what scores a retrieval: similarity of vectors, or the reranker
SCORERS = (COSINE, RELEVANCE)
LEVEL = 0.05  # probability under which something is called better than chance
TYPED, AUTO, TRAINED = "typed", "auto", "trained"  # origins of a setting in force; `percentile P` is another
NOT_ASKED = "endpoint: "  # begins the error of a judgement whose judge could not be asked: worth another try
ORIGINAL, GENERATED = "original", "generated"  # how a question came to be, where that is known
CHUNK = "¶"  # in the id of a chunk, between its document's and its number
QUESTION_TYPES: tuple[QuestionType, ...] = ("multi_hop", "single_hop", "summary")


def chunk_id(doc_id: str, number: int) -> str:
    """The id of a document's chunk, numbered from 1."""
    return f"{doc_id}{CHUNK}{number}"


def document_of(doc_id: str) -> str:
    """The document that a chunk was cut from; of a document that is kept whole, itself."""
    return doc_id.partition(CHUNK)[0]


def documents_of(doc_ids: Iterable[str]) -> list[str]:
    """The documents of these chunks, each once, in the order in which they first occur."""
    return list(dict.fromkeys(map(document_of, doc_ids)))


@dataclass(frozen=True, slots=True)
class Document:
    """One passage of the corpus, whole or a chunk. Titles are not unique; `doc_id` is. No model sees `metadata`."""

    doc_id: str
    title: str
    text: str
    metadata: Metadata = ()

    @property
    def full_text(self) -> str:
        """What is indexed and what a model reads: the title, then the passage."""
        return f"{self.title}\n{self.text}" if self.title else self.text


@dataclass(frozen=True, slots=True)
class Question:
    """One question with its reference and the documents that hold its evidence.

    `gold_ids` follow the order of reasoning where the dataset knows it; empty means that the dataset has none. `where` is
    what the metadata of a document must say for this question to find it, `origin` whether it is original or generated.
    """

    question_id: str
    text: str
    answer: str
    aliases: tuple[str, ...]
    question_type: QuestionType
    gold_ids: tuple[str, ...]
    where: Metadata = ()
    origin: str | None = None

    @property
    def references(self) -> tuple[str, ...]:
        """Every accepted way of writing the answer."""
        return (self.answer, *self.aliases)


def balanced(questions: Sequence[Question], size: int) -> list[str]:
    """Ids of at most `size` questions: one of each type in turn, by id."""
    return in_turn([sorted(q.question_id for q in questions if q.question_type == t) for t in QUESTION_TYPES], size)


def in_turn(pools: Sequence[Sequence[T]], size: int) -> list[T]:
    """One item of each pool in turn, until there are `size` or the pools are empty."""
    depth = max(map(len, pools), default=0)
    return [pool[i] for i in range(depth) for pool in pools if i < len(pool)][:size]


@dataclass(frozen=True, slots=True)
class Hit:
    """One retrieved document.

    `score` is the mode's own (cosine, BM25, RRF sum or relevance probability) and orders the ranking; `cosine` is the
    dense similarity of document and query, which strategies that judge relevance read in every mode.
    """

    doc_id: str
    score: float
    cosine: float


@dataclass(frozen=True, slots=True)
class Cell:
    """One contestant: a strategy under a retrieval mode (`none` for a strategy that does not retrieve)."""

    strategy: str
    retrieval: str

    def __str__(self) -> str:
        return f"{self.strategy}-{self.retrieval}"
