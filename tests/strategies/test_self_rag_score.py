"""Self-RAG's formulas as arithmetic."""

import math
from dataclasses import replace

import pytest

from rag_arena.strategies.self_rag.path import Path, Segment
from rag_arena.strategies.self_rag.score import (
    RELEVANT,
    RETRIEVE,
    SUPPORTED,
    USEFUL,
    Weights,
    best,
    expectation,
    path_scores,
    segment_score,
)

PAPER = Weights(relevant=1.0, supported=1.0, useful=0.5)
PLAIN = Segment("It is.", "d1", ends=False, finish_reason="stop", written="It is.", likelihood=0.4)
JUDGED = replace(PLAIN, relevant=0.9, supported=0.7, useful=-0.5)


def test_retrieval_is_a_share_of_probabilities() -> None:
    assert expectation({"Yes": 0.3, "No": 0.5}, RETRIEVE) == pytest.approx(0.3 / (0.3 + 0.5))


def test_a_model_that_wants_documents_gets_them_where_a_ratio_of_log_probabilities_would_invert_the_decision() -> None:
    """The released short-form code divides log-probabilities: the likelier Yes is, the smaller its share becomes."""
    threshold = 0.2
    eager, reluctant = {"Yes": 0.99, "No": 0.01}, {"Yes": 0.01, "No": 0.99}

    def of_logarithms(p: dict[str, float]) -> float:
        return math.log(p["Yes"]) / (math.log(p["Yes"]) + math.log(p["No"]))

    assert of_logarithms(eager) < threshold < of_logarithms(reluctant)
    ours = [expectation(p, RETRIEVE) for p in (eager, reluctant)]
    assert ours == pytest.approx([0.99, 0.01])
    assert ours[0] > threshold > ours[1]  # type: ignore[operator]


def test_relevance_is_the_share_of_relevant() -> None:
    assert expectation({"Relevant": 0.6, "Irrelevant": 0.2}, RELEVANT) == pytest.approx(0.6 / (0.6 + 0.2))


def test_partial_support_counts_half() -> None:
    assert expectation({"Fully": 0.5, "Partially": 0.2, "No": 0.1}, SUPPORTED) == pytest.approx((0.5 + 0.5 * 0.2) / 0.8)


def test_usefulness_runs_from_minus_one_to_one() -> None:
    p = {"1": 0.1, "2": 0.1, "3": 0.2, "4": 0.2, "5": 0.2}
    values = -1 * 0.1 - 0.5 * 0.1 + 0 * 0.2 + 0.5 * 0.2 + 1 * 0.2
    assert expectation(p, USEFUL) == pytest.approx(values / 0.8)
    assert [expectation({name: 1.0}, USEFUL) for name in USEFUL] == [-1, -0.5, 0, 0.5, 1]


def test_usefulness_is_read_from_its_own_classes_where_the_released_code_reads_those_of_support() -> None:
    """The released long-form code fills the table of utility from the groundness tokens, finds 3 of 5, and sets s_use to 0."""
    fully, useless = {"Fully": 1.0, "Partially": 0.0, "No": 0.0}, {"1": 1.0}
    assert expectation(fully, USEFUL) is None
    segment = replace(PLAIN, supported=expectation(fully, SUPPORTED), useful=expectation(useless, USEFUL))
    assert segment_score(segment, PAPER) == pytest.approx(0.4 + 1.0 * 1 + 0.5 * -1)


def test_no_mass_is_no_value() -> None:
    assert expectation({}, SUPPORTED) is None
    assert expectation({"Fully": 0.0, "Other": 0.9}, SUPPORTED) is None


def test_a_segments_score_is_the_likelihood_plus_three_weighted_critiques() -> None:
    assert segment_score(JUDGED, PAPER) == pytest.approx(0.4 + 1.0 * 0.9 + 1.0 * 0.7 + 0.5 * -0.5)
    other = Weights(relevant=2.0, supported=0.0, useful=3.0)
    assert segment_score(JUDGED, other) == pytest.approx(0.4 + 2.0 * 0.9 + 0.0 * 0.7 + 3.0 * -0.5)


def test_a_term_that_is_missing_is_left_out() -> None:
    assert segment_score(replace(JUDGED, relevant=None, supported=None), PAPER) == pytest.approx(0.4 + 0.5 * -0.5)


def test_paths_are_compared_by_the_mean_of_their_segments() -> None:
    short, long = Path((JUDGED,)), Path((JUDGED, PLAIN))
    one, other = 0.4 + 0.9 + 0.7 - 0.25, 0.4
    assert path_scores([short, long], PAPER) == pytest.approx([one, (one + other) / 2])


def test_where_one_likelihood_is_missing_it_counts_for_no_path() -> None:
    silent = Path((replace(JUDGED, likelihood=None),))
    assert path_scores([Path((JUDGED,)), silent], PAPER) == pytest.approx([0.9 + 0.7 - 0.25] * 2)


def test_the_best_come_first_and_the_earlier_of_equals() -> None:
    assert best([Path()] * 4, [1.0, 3.0, 1.0, 2.0], 3) == [1, 3, 0]
