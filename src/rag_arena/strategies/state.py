"""What travels through a strategy's graph, and the tools its nodes use."""

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, TypedDict

from langgraph.runtime import Runtime

from rag_arena.embedders import Floats
from rag_arena.llm.client import ChatModel
from rag_arena.records import Document, Hit
from rag_arena.retrieval.retriever import Retriever
from rag_arena.retrieval.web import WebSearch
from rag_arena.strategies.prompts import Prompts


def _united(seen: list[str], new: list[str]) -> list[str]:
    return [*seen, *(doc_id for doc_id in new if doc_id not in seen)]


class State(TypedDict, total=False):
    """Nodes write it, edges read it; nothing is decided anywhere else.

    `hits` are the documents under consideration, best first, `found` those that came from elsewhere; `documents` are those that
    this question sees otherwise than the corpus has them, refined or from the web; `retrieved` is every document id ever seen;
    `used` are the ids in the prompt that produced `answer`. `enough` is the verdict on a whole retrieval. `corrected` is set only
    by strategies that can correct. `choice` is how much retrieval a router ordered. `chain` are the thoughts of an iterative
    strategy, `query` what the latest one asks for, `done` whether it was the last. `trace` is the path taken.
    """

    question: str
    hits: list[Hit]
    found: list[Hit]
    documents: dict[str, Document]
    retrieved: Annotated[list[str], _united]
    enough: bool
    corrected: bool
    choice: str
    chain: list[str]
    query: str
    done: bool
    used: list[str]
    answer: str
    trace: Annotated[list[dict[str, Any]], operator.add]


@dataclass(frozen=True, slots=True)
class Earlier:
    """A question answered before, its vector, its validated answer and the documents behind it."""

    question: str
    vector: Floats
    answer: str
    used: list[str]


@dataclass(frozen=True, slots=True)
class Toolbox:
    """What nodes may use.

    `settings` are the strategy's own parameters, every threshold a number. `model` answers; `small_model` routes, grades,
    rewrites and verifies (the same one unless configured otherwise). `second_lane` is a retriever unlike the cell's own.
    `relevance` is the reranker's probability of relevance, through the calibrated sigmoid. `embed` gives a text's dense vector.
    `earlier` are the questions that this cell has answered before, where a strategy remembers them.
    `web` searches outside the corpus, where something can be recorded.
    """

    settings: Any
    model: ChatModel
    small_model: ChatModel
    prompts: Prompts
    retriever: Retriever
    second_lane: Retriever
    cosines: Callable[[str, Sequence[str]], list[float]]
    relevance: Callable[[str, Sequence[str]], list[float]]
    embed: Callable[[str], Floats]
    document: Callable[[str], Document]
    earlier: list[Earlier] = field(default_factory=list)
    web: WebSearch | None = None


Tools = Runtime[Toolbox]
