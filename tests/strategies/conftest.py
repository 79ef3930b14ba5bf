"""Fixtures of the strategies' tests."""

import pytest

from rag_arena import embedders
from rag_arena.llm.ledger import Ledger
from rag_arena.params import Params
from rag_arena.retrieval.retriever import Retrievers
from tests.strategies.harness import DOCUMENTS, Answers, index_of
from tests.stub import Stub


@pytest.fixture(scope="module")
def tiny(params: Params) -> Retrievers:
    """The five documents of the harness."""
    index = index_of(list(DOCUMENTS.values()), params)
    return Retrievers(params, lambda: index, embedders.load(params.embedder))


@pytest.fixture
def graphs(stub: Stub, ledger: Ledger) -> Answers:
    return Answers(stub, ledger)
