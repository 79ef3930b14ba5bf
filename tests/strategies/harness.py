"""Runs graphs against a stub server: what the tests of every strategy share."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import numpy as np
import openai

from rag_arena import embedders, strategies
from rag_arena.llm.client import ChatModel, connect
from rag_arena.llm.ledger import Ledger
from rag_arena.params import Endpoint, Llm, Params, Price, Transport
from rag_arena.records import Document, Hit
from rag_arena.retrieval.index import Index
from rag_arena.retrieval.retriever import RecordedRetriever
from rag_arena.strategies.prompts import Prompts
from rag_arena.strategies.state import State, Toolbox
from tests.stub import Stub

QUESTION = "Where does the Rhine begin?"
DOCUMENTS = {
    "d1": Document("d1", "Rhine", "The Rhine begins in the Alps."),
    "d2": Document("d2", "Danube", "The Danube begins in the Black Forest."),
    "d3": Document("d3", "", "Cheese is made of milk."),
    "d4": Document("d4", "Elbe", "The Elbe begins in Bohemia."),
    "d5": Document("d5", "Oder", "The Oder begins in Moravia."),
}


def hit(doc_id: str, cosine: float, score: float | None = None) -> Hit:
    return Hit(doc_id, cosine if score is None else score, cosine)


def nobody(*_: Any) -> NoReturn:
    raise AssertionError("asked for what it should not need")


def recorded(hits: Mapping[str, Sequence[Hit]]) -> RecordedRetriever:
    return RecordedRetriever(hits, 100, nobody)


def index_of(documents: Sequence[Document], params: Params) -> Index:
    embedder = embedders.load(params.embedder)
    dense = np.stack([embedder.dense(d.full_text) for d in documents])
    sparse = [each.sparse for each in next(embedder.documents([[d.full_text for d in documents]]))]
    return Index(tuple(documents), dense, tuple((np.array(s.indices, np.uint32), np.array(s.values, np.float32)) for s in sparse))


def toolbox(strategy: str, client: openai.AsyncOpenAI, endpoint: Endpoint, **tools: Any) -> Toolbox:
    """Tools of which those that are not given answer nothing."""
    defaults = {
        "model": ChatModel(client, endpoint),
        "small_model": ChatModel(client, endpoint, "small_llm"),
        "prompts": Prompts(strategy),
        "retriever": recorded({}),
        "second_lane": recorded({}),
        "cosines": nobody,
        "relevance": nobody,
        "embed": nobody,
        "document": DOCUMENTS.__getitem__,
    }
    return Toolbox(**{**defaults, **tools})


class Answers:
    """Runs graphs against one server."""

    def __init__(self, stub: Stub, ledger: Ledger) -> None:
        self.stub = stub
        self._ledger = ledger

    def llm(self, concurrency: int = 2) -> Llm:
        return Llm(
            endpoint=Endpoint(kind="openai", model="m", base_url=self.stub.url),
            transport=Transport(max_concurrency=concurrency, deadline_s=30.0, max_retries=0),
            price=Price(input=0.0, output=0.0),
        )

    def connect(self, llm: Llm) -> openai.AsyncOpenAI:
        return connect(llm, self._ledger)

    def all(self, strategy: str, questions: Sequence[str], **tools: Any) -> list[State]:
        llm = self.llm()
        graph = strategies.build(strategy)

        async def work() -> list[State]:
            async with self.connect(llm) as client:
                context = toolbox(strategy, client, llm.endpoint, **tools)
                return [await graph.ainvoke({"question": q}, context=context) for q in questions]  # type: ignore[misc]

        return asyncio.run(work())

    def one(self, strategy: str, settings: Any, hits: Sequence[Hit] = (), **tools: Any) -> State:
        return self.all(strategy, [QUESTION], settings=settings, retriever=recorded({QUESTION: hits}), **tools)[0]


def path(state: State) -> list[str]:
    return [step["node"] for step in state["trace"]]
