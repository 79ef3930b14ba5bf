import math

import numpy as np
import pytest

from rag_arena import embedders, rerankers
from rag_arena.params import Sigmoid
from rag_arena.rerankers import probability
from rag_arena.rerankers.maxsim import MaxSim, max_sim

QUERY = "Which river flows through Timbuktu?"
DOCUMENTS = [
    "Port Blair is the capital of the Andaman Islands.",
    "The Niger River bends south near Timbuktu.",
    "A sonnet has fourteen lines.",
]


@pytest.fixture(scope="module")
def embedder(params):
    return embedders.load(params.embedder)


def test_the_score_is_the_mean_over_query_tokens_of_the_best_match():
    query = np.array([[1, 0], [0, 1]], dtype=np.float32)
    document = np.array([[0.6, 0.8], [-1, 0]], dtype=np.float32)
    assert max_sim(query, document) == pytest.approx((max(0.6, -1) + max(0.8, 0)) / 2)


def test_several_query_tokens_may_match_one_document_token():
    assert max_sim(np.array([[1, 0], [1, 0]], np.float32), np.array([[1, 0], [0, 1]], np.float32)) == (1 + 1) / 2


def test_opposite_vectors_score_minus_one():
    assert max_sim(np.array([[1, 0]], np.float32), np.array([[-1, 0]], np.float32)) == -1


@pytest.mark.parametrize("score", [-3.0, -0.5, 0.0, 0.5, 3.0])
def test_a_probability_is_the_sigmoid_of_the_score_less_tau_over_temperature(score):
    wanted = 1 / (1 + math.exp(-(score - 0.5) / 0.1))
    assert probability(score, Sigmoid(tau=0.5, temperature=0.1)) == pytest.approx(wanted, rel=1e-15)


def test_a_probability_is_even_at_tau():
    assert probability(0.7, Sigmoid(tau=0.7, temperature=0.05)) == 1 / (1 + 1)


@pytest.mark.parametrize(("score", "limit"), [(-1e6, 0.0), (1e6, 1.0), (-math.inf, 0.0), (math.inf, 1.0)])
def test_a_probability_does_not_overflow(score, limit):
    assert probability(score, Sigmoid(tau=0.0, temperature=1.0)) == limit


def test_the_text_that_speaks_of_the_query_scores_highest(embedder):
    scores = MaxSim(embedder).scores(QUERY, DOCUMENTS)
    assert scores.index(max(scores)) == 1


def test_a_text_scores_one_against_itself(embedder):
    assert MaxSim(embedder).scores(QUERY, [QUERY]) == [pytest.approx(1.0, abs=1e-6)]


def test_a_score_depends_neither_on_the_other_documents_nor_on_earlier_queries(embedder):
    reranker = MaxSim(embedder)
    together = reranker.scores(QUERY, DOCUMENTS)
    reranker.scores("What is a sonnet?", DOCUMENTS)
    alone = [MaxSim(embedder).scores(QUERY, [d])[0] for d in DOCUMENTS]
    assert together == alone == list(reversed(reranker.scores(QUERY, DOCUMENTS[::-1])))


def test_no_documents_have_no_scores(embedder):
    assert MaxSim(embedder).scores(QUERY, []) == []


def test_the_configured_reranker_is_loaded(params, embedder):
    assert isinstance(rerankers.load(params.reranker, embedder), MaxSim)
