import pytest

from rag_arena.retrieval.fusion import best_first, reciprocal_rank_fusion


def test_a_document_gets_one_over_constant_plus_rank_from_each_ranking():
    assert reciprocal_rank_fusion([["a", "b", "c"], ["b", "a", "d"]], 60) == [
        ("a", 1 / (60 + 1) + 1 / (60 + 2)),
        ("b", 1 / (60 + 2) + 1 / (60 + 1)),
        ("c", 1 / (60 + 3)),
        ("d", 1 / (60 + 3)),
    ]


@pytest.mark.parametrize("constant", [1, 2, 60])
def test_the_constant_is_the_one_given(constant):
    assert reciprocal_rank_fusion([["a"]], constant) == [("a", 1 / (constant + 1))]


def test_a_small_constant_favours_one_first_place_and_a_large_one_two_middling_places():
    rankings = [["a", "x", "y", "b"], ["c", "z", "w", "b"]]
    assert 1 / (1 + 1) > 2 / (1 + 4)
    assert reciprocal_rank_fusion(rankings, 1)[0][0] == "a"
    assert 1 / (60 + 1) < 2 / (60 + 4)
    assert reciprocal_rank_fusion(rankings, 60)[0][0] == "b"


def test_equal_scores_are_ordered_by_document_id():
    assert [i for i, _ in reciprocal_rank_fusion([["d", "b"], ["a", "c"]], 60)] == ["a", "d", "b", "c"]


def test_the_order_of_two_rankings_does_not_matter():
    one, two = ["c", "a", "b"], ["b", "d", "c", "e"]
    assert reciprocal_rank_fusion([one, two], 60) == reciprocal_rank_fusion([two, one], 60)


def test_one_ranking_keeps_its_order():
    assert [i for i, _ in reciprocal_rank_fusion([["c", "a", "b"]], 60)] == ["c", "a", "b"]


@pytest.mark.parametrize("rankings", [[], [[]], [[], []]])
def test_nothing_fused_is_nothing(rankings):
    assert reciprocal_rank_fusion(rankings, 60) == []


def test_an_empty_ranking_beside_another_changes_nothing():
    assert reciprocal_rank_fusion([["b", "a"], []], 60) == reciprocal_rank_fusion([["b", "a"]], 60)


def test_the_highest_score_comes_first_and_ids_break_ties():
    assert best_first([("b", 1.0), ("c", 2.0), ("a", 1.0)]) == [("c", 2.0), ("a", 1.0), ("b", 1.0)]
