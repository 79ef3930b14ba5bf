"""Platt scaling against hand arithmetic."""

import math
import random

import pytest

from rag_arena.rerankers import probability
from rag_arena.scoring.sigmoid import fit


def test_two_documents_get_platts_targets_as_probabilities():
    # n+ = n- = 1: the targets are (1 + 1) / (1 + 2) = 2/3 and 1 / (1 + 2) = 1/3, whose log-odds are +-ln 2
    found = fit([0.8, 0.2], [True, False])
    assert found is not None
    assert found.tau == pytest.approx((0.8 + 0.2) / 2, abs=1e-5)
    assert found.temperature == pytest.approx((0.8 - 0.2) / (2 * math.log(2)), abs=1e-5)
    assert probability(0.8, found) == pytest.approx(2 / 3, abs=1e-5)
    assert probability(0.2, found) == pytest.approx(1 / 3, abs=1e-5)


def test_a_score_that_separates_perfectly_still_has_a_temperature():
    found = fit([0.1, 0.2, 0.8, 0.9], [False, False, True, True])
    assert found is not None
    assert found.temperature > 0.01
    assert found.tau == pytest.approx(0.5, abs=1e-5)


def test_the_sigmoid_that_scores_were_drawn_from_is_found_again():
    draw = random.Random(7)
    scores = [draw.uniform(0.2, 0.8) for _ in range(20_000)]
    relevant = [draw.random() < 1 / (1 + math.exp(-(s - 0.52) / 0.04)) for s in scores]
    found = fit(scores, relevant)
    assert found is not None
    assert found.tau == pytest.approx(0.52, abs=0.003)
    assert found.temperature == pytest.approx(0.04, abs=0.002)


@pytest.mark.parametrize(
    ("scores", "relevant"),
    [
        ([], []),
        ([0.1, 0.9], [True, True]),
        ([0.1, 0.9], [False, False]),
        ([0.5, 0.5], [True, False]),
        ([0.2, 0.8], [True, False]),
    ],
    ids=["no document", "relevant ones alone", "others alone", "one score for all", "relevant ones lower"],
)
def test_where_nothing_can_be_fitted_there_is_no_sigmoid(scores: list[float], relevant: list[bool]):
    assert fit(scores, relevant) is None
