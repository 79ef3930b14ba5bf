import pytest

from rag_arena.records import FAILED
from rag_arena.scoring.evidence import (
    ACCEPTABLE,
    BAD,
    GOOD,
    NOT_RETRIEVED,
    NOT_USED,
    PARTLY_RETRIEVED,
    WRONG,
    failure_class,
    precision,
    recall,
    recall_at,
    reciprocal_rank,
    retrieval_label,
)


@pytest.mark.parametrize(
    ("used", "gold", "share"),
    [(["a", "b", "x"], ["a", "b", "c"], 2 / 3), ([], ["a"], 0 / 1), (["a"], ["a"], 1 / 1), (["a", "a"], ["a", "b"], 1 / 2)],
)
def test_recall_is_the_share_of_gold_documents_that_were_used(used, gold, share):
    assert recall(used, gold) == share


@pytest.mark.parametrize(
    ("used", "gold", "share"), [(["a", "b", "x"], ["a", "b", "c"], 2 / 3), (["x"], ["a"], 0 / 1), (["a", "a", "x"], ["a"], 1 / 2)]
)
def test_precision_is_the_share_of_used_documents_that_are_gold(used, gold, share):
    assert precision(used, gold) == share


@pytest.mark.parametrize("used", [[], ["a"]])
def test_recall_and_precision_are_unknown_without_gold_documents(used):
    assert (recall(used, []), precision(used, [])) == (None, None)


def test_precision_is_unknown_when_nothing_was_used():
    assert precision([], ["a"]) is None


@pytest.mark.parametrize(("k", "share"), [(1, 0 / 2), (2, 1 / 2), (3, 1 / 2), (4, 2 / 2), (9, 2 / 2)])
def test_recall_at_k_looks_at_the_first_k(k, share):
    assert recall_at(["x", "a", "y", "b"], ["b", "a"], k) == share


def test_recall_at_k_of_an_empty_ranking_is_zero():
    assert recall_at([], ["a"], 5) == 0


@pytest.mark.parametrize(
    ("ranking", "value"), [(["a", "b"], 1 / 1), (["x", "b", "a"], 1 / 2), (["x", "y", "a"], 1 / 3), (["x"], 0), ([], 0)]
)
def test_the_reciprocal_rank_is_one_over_the_rank_of_the_first_gold_document(ranking, value):
    assert reciprocal_rank(ranking, ["a", "b"]) == value


@pytest.mark.parametrize(
    ("retrieved", "used", "reason"),
    [
        ([], [], NOT_RETRIEVED),
        (["x"], ["x"], NOT_RETRIEVED),
        (["a", "x"], ["a"], PARTLY_RETRIEVED),
        (["a", "x"], [], PARTLY_RETRIEVED),
        (["a", "b", "x"], ["a", "x"], NOT_USED),
        (["a", "b"], [], NOT_USED),
        (["x", "b", "a"], ["b", "a"], WRONG),
        (["a", "b", "x"], ["x", "a", "b"], WRONG),
    ],
)
def test_a_wrong_answer_is_laid_to_the_first_step_that_lost_the_evidence(retrieved, used, reason):
    assert failure_class(False, False, retrieved, used, ["a", "b"]) == reason


@pytest.mark.parametrize("correct", [None, False])
def test_a_failed_question_is_a_failure_of_its_own(correct):
    assert failure_class(True, correct, ["a"], ["a"], ["a"]) == FAILED


@pytest.mark.parametrize("correct", [True, None])
def test_a_right_answer_and_one_of_unknown_correctness_have_no_failure(correct):
    assert failure_class(False, correct, [], [], ["a"]) is None


def test_a_wrong_answer_without_gold_documents_has_no_known_reason():
    assert failure_class(False, False, ["a"], ["a"], []) is None


def test_a_failed_question_without_gold_documents_has_failed():
    assert failure_class(True, None, [], [], []) == FAILED


def test_the_reasons_differ():
    assert len({FAILED, NOT_RETRIEVED, PARTLY_RETRIEVED, NOT_USED, WRONG}) == 5


@pytest.mark.parametrize(
    ("holds_evidence", "label"),
    [
        ([True, False, None], GOOD),
        ([False, False, True], ACCEPTABLE),
        ([False, None, True], ACCEPTABLE),
        ([False, False, False], BAD),
        ([], BAD),
        ([None, True], None),
        ([False, None], None),
    ],
)
def test_a_retrieval_is_good_if_its_first_document_is_gold_acceptable_if_another_is_and_bad_if_none(holds_evidence, label):
    assert retrieval_label(holds_evidence) == label


def test_chunks_count_as_their_document_once():
    used = ["a¶1", "a¶7", "x¶2"]
    assert recall(used, ["a", "b"]) == 1 / 2
    assert precision(used, ["a", "b"]) == 1 / 2
    assert recall_at(["x¶1", "x¶2", "a¶3", "b¶1"], ["a", "b"], 2) == 1 / 2
    assert reciprocal_rank(["x¶1", "x¶2", "a¶3"], ["a"]) == 1 / 2


@pytest.mark.parametrize(
    ("retrieved", "used", "failure"),
    [
        (["x¶1"], [], NOT_RETRIEVED),
        (["a¶1", "a¶2"], ["a¶1", "a¶2"], PARTLY_RETRIEVED),
        (["a¶1", "b¶2"], ["a¶1"], NOT_USED),
        (["a¶1", "b¶2"], ["b¶2", "a¶1"], WRONG),
    ],
)
def test_why_an_answer_failed_is_told_by_the_documents_of_its_chunks(retrieved, used, failure):
    assert failure_class(False, False, retrieved, used, ["a", "b"]) == failure
