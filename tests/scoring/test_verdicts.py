import math

import pytest

from rag_arena.scoring.verdicts import Verdict, quality


def said(*pairs: tuple[bool | None, bool | None], source: str = "schema") -> list[Verdict]:
    """Verdicts without probabilities, each with the truth."""
    return [Verdict(verdict, truth, None, source) for verdict, truth in pairs]


def graded(true: list[float], false: list[float]) -> list[Verdict]:
    """Verdicts with probabilities, yes from one half on."""
    return [Verdict(p >= 0.5, truth, p, "logprobs") for truth, ps in ((True, true), (False, false)) for p in ps]


def test_accuracy_precision_and_recall_are_those_of_yes() -> None:
    found = quality(said((True, True), (True, True), (True, False), (False, True), (False, False)))
    assert found["n"] == found["n_known"] == 5
    assert found["yes_rate"] == 3 / 5
    assert found["true_rate"] == 3 / 5
    assert found["accuracy"] == 3 / 5
    assert found["precision"] == 2 / 3
    assert found["recall"] == 2 / 3


def test_undecided_verdicts_and_unknown_truths_are_counted_and_score_nothing() -> None:
    found = quality(said((True, True), (None, True), (None, None), (True, None), (False, False)))
    assert (found["n"], found["n_undecided"], found["n_known"]) == (5, 2, 2)
    assert found["yes_rate"] == 2 / 3
    assert (found["true_rate"], found["accuracy"]) == (1 / 2, 1.0)


def test_auc_is_the_share_of_pairs_in_the_right_order_ties_counting_half() -> None:
    true, false = [0.9, 0.6, 0.5], [0.6, 0.2]
    wins = {(0.9, 0.6): 1, (0.9, 0.2): 1, (0.6, 0.6): 1 / 2, (0.6, 0.2): 1, (0.5, 0.6): 0, (0.5, 0.2): 1}
    assert quality(graded(true, false))["auc"] == pytest.approx(sum(wins.values()) / (3 * 2))


def test_p_chance_of_a_perfect_order_is_one_over_the_number_of_orders() -> None:
    found = quality(graded([0.9, 0.8, 0.7, 0.6], [0.5, 0.4, 0.3, 0.2]))
    assert found["auc"] == 1.0
    assert found["p_chance"] == pytest.approx(1 / math.comb(8, 4))
    assert found["chance"] == "better than chance"


def test_a_perfect_order_of_few_is_still_no_better_than_chance() -> None:
    found = quality(graded([0.9, 0.8], [0.3]))
    assert found["p_chance"] == pytest.approx(1 / math.comb(3, 2))
    assert found["chance"] == "no better than chance"


def test_the_wrong_order_is_no_better_than_chance_however_wrong() -> None:
    found = quality(graded([0.1, 0.2, 0.3, 0.4], [0.5, 0.6, 0.7, 0.8]))
    assert (found["auc"], found["p_chance"], found["chance"]) == (0.0, 1.0, "no better than chance")


def test_probabilities_that_are_all_the_same_are_worth_a_coin() -> None:
    found = quality(graded([0.5] * 5, [0.5] * 7))
    assert (found["auc"], found["p_chance"], found["chance"]) == (0.5, 1.0, "no better than chance")


def test_verdicts_without_probabilities_are_tested_by_fishers_exact_test() -> None:
    found = quality(said(*[(True, True)] * 4, *[(False, False)] * 4))
    assert found["p_chance"] == pytest.approx(1 / math.comb(8, 4))
    assert (found["auc"], found["chance"]) == (1.0, "better than chance")


def test_one_missing_probability_makes_the_verdicts_count_instead() -> None:
    found = quality([*graded([0.9, 0.6], [0.8]), *said((False, False))])
    yes_of_true, yes_of_false = 2 / 2, 1 / 2
    assert found["auc"] == pytest.approx((yes_of_true + 1 - yes_of_false) / 2)


@pytest.mark.parametrize("pairs", [[(True, True), (False, True)], [(True, False), (False, False)], [(True, None)]])
def test_without_both_true_and_false_cases_nothing_is_said_of_chance(pairs: list[tuple[bool, bool | None]]) -> None:
    found = quality(said(*pairs))
    assert (found["auc"], found["p_chance"], found["chance"]) == (None, None, None)


def test_shares_of_the_sources_tell_how_the_verdicts_came_about() -> None:
    verdicts = [Verdict(True, True, 0.9, source) for source in ("logprobs", "logprobs", "schema", "unreadable")]
    found = quality(verdicts)
    assert (found["logprobs"], found["schema"], found["unreadable"]) == (2 / 4, 1 / 4, 1 / 4)
