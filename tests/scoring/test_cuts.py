"""Thresholds by Youden's J against hand arithmetic."""

import pytest

from rag_arena.scoring.cuts import Scored, precision_recall, youden


def scored(low: list[float | None], high: list[float]) -> list[Scored]:
    return [*(Scored(s, True) for s in low), *(Scored(s, False) for s in high)]


def test_the_cut_lies_half_way_between_two_kinds_that_it_separates():
    assert youden(scored([0.2, 0.3], [0.5, 0.9])) == (0.3 + 0.5) / 2


def test_the_cut_has_the_largest_share_of_low_ones_under_it_less_the_share_of_others():
    # under 0.35: 2/3 - 0/4; under 0.45: 2/3 - 1/4; under 0.55: 3/3 - 1/4 = 0.75, the largest
    assert youden(scored([0.2, 0.3, 0.5], [0.4, 0.6, 0.7, 0.8])) == (0.5 + 0.6) / 2


def test_of_equal_cuts_the_lowest_is_taken():
    # J = 1/2 under 0.25 as under 0.45
    assert youden(scored([0.2, 0.4], [0.3, 0.5])) == (0.2 + 0.3) / 2


def test_where_the_scores_tell_nothing_the_cut_lies_under_all_of_them():
    assert youden(scored([0.8], [0.2])) == 0.2
    assert youden(scored([0.5], [0.5])) == 0.5


def test_with_no_low_one_nothing_lies_under_the_cut():
    found = youden(scored([], [0.34567, 0.9]))
    assert found == 0.3456
    assert not any(item.under(found) for item in scored([], [0.34567, 0.9]))


def test_with_low_ones_alone_everything_lies_under_the_cut():
    found = youden(scored([0.2, 0.34567], []))
    assert found == 0.3457
    assert all(item.under(found) for item in scored([0.2, 0.34567], []))


def test_no_cut_is_taken_under_the_one_that_is_asked_for():
    items = scored([0.2], [0.5, 0.9])
    assert youden(items) == (0.2 + 0.5) / 2
    assert youden(items, at_least=0.6) == 0.6


def test_a_search_that_found_nothing_lies_under_every_cut():
    assert Scored(None, True).under(-1.0)
    assert youden(scored([None, 0.3], [0.5])) == (0.3 + 0.5) / 2
    assert youden(scored([None], [])) is None


def test_precision_and_recall_of_a_verdict():
    precision, recall = precision_recall([True, True, True, False], [True, False, False, True])
    assert (precision, recall) == (pytest.approx(1 / 3), 1 / 2)


def test_precision_of_nothing_said_and_recall_of_nothing_true_are_not_known():
    assert precision_recall([False], [True]) == (None, 0.0)
    assert precision_recall([True], [False]) == (0.0, None)
