import re
from collections import Counter
from collections.abc import Mapping

import pyarrow as pa
import pytest

from rag_arena import artifacts
from rag_arena.errors import ArenaError
from rag_arena.params import Sample
from rag_arena.records import QUESTION_TYPES
from rag_arena.stages.sample import sample

MANY = {"multi_hop": 30, "single_hop": 20, "summary": 10}


def questions(sizes: Mapping[str, int], gold=lambda question_id: [f"gold of {question_id}"]) -> pa.Table:
    rows = [
        {
            "question_id": f"{kind}_{i:02}",
            "question": "?",
            "answer": "x",
            "aliases": [],
            "question_type": kind,
            "gold_ids": gold(f"{kind}_{i:02}"),
            "decomposition": [],
            "where": (),
            "origin": None,
        }
        for kind, size in sizes.items()
        for i in range(size)
    ]
    return artifacts.table(artifacts.QUESTIONS, rows)


def draw(table: pa.Table, evaluation: int, calibration: int = 0, seed: int = 7) -> tuple[pa.Table, pa.Table]:
    return sample(table, Sample(seed=seed, evaluation=evaluation, calibration=calibration))


def ids(split: pa.Table) -> set[str]:
    return set(split["question_id"].to_pylist())


def counts(split: pa.Table) -> Counter:
    return Counter(split["question_type"].to_pylist())


@pytest.mark.parametrize("size", [3, 12, 30])
def test_both_splits_are_balanced_over_question_types(size):
    for split in draw(questions(dict.fromkeys(QUESTION_TYPES, 30)), size, size):
        assert counts(split) == dict.fromkeys(QUESTION_TYPES, size // 3)


@pytest.mark.parametrize("size", [1, 2, 4, 5])
def test_types_differ_by_one_at_most_when_the_size_is_no_multiple_of_three(size):
    evaluation, _ = draw(questions(MANY), size)
    assert evaluation.num_rows == size
    assert max(counts(evaluation)[t] for t in QUESTION_TYPES) - min(counts(evaluation)[t] for t in QUESTION_TYPES) == 1


def test_other_types_fill_up_when_one_is_exhausted():
    evaluation, _ = draw(questions({"multi_hop": 9, "single_hop": 9, "summary": 1}), 9)
    assert counts(evaluation) == {"multi_hop": 4, "single_hop": 4, "summary": 1}


def test_a_dataset_of_one_type_can_be_sampled():
    evaluation, calibration = draw(questions({"multi_hop": 6}), 4, 2)
    assert (counts(evaluation), counts(calibration)) == ({"multi_hop": 4}, {"multi_hop": 2})


def test_the_same_seed_draws_the_same_questions():
    assert draw(questions(MANY), 12, 12, seed=3) == draw(questions(MANY), 12, 12, seed=3)


def test_another_seed_draws_other_questions():
    assert ids(draw(questions(MANY), 12, seed=3)[0]) != ids(draw(questions(MANY), 12, seed=4)[0])


def test_the_draw_does_not_depend_on_the_order_of_the_rows():
    table = questions(MANY)
    backwards = table.take(list(range(table.num_rows))[::-1])
    assert draw(backwards, 12, 12) == draw(table, 12, 12)


def test_a_larger_calibration_split_leaves_the_evaluation_split_as_it_is():
    assert draw(questions(MANY), 12, 3)[0] == draw(questions(MANY), 12, 12)[0]


@pytest.mark.parametrize("seed", range(5))
def test_the_splits_share_no_question(seed):
    evaluation, calibration = draw(questions(MANY), 15, 15, seed)
    assert ids(evaluation).isdisjoint(ids(calibration))


@pytest.mark.parametrize("seed", range(5))
def test_the_splits_share_no_gold_document(seed):
    def shared(question_id: str) -> list[str]:
        number = int(question_id[-2:])
        return [f"d{number // 3}", f"d{number}"]

    table = questions(MANY, shared)
    gold = dict(zip(table["question_id"].to_pylist(), table["gold_ids"].to_pylist(), strict=True))
    evaluation, calibration = draw(table, 6, 6, seed)
    used, held_out = ({d for q in ids(split) for d in gold[q]} for split in (evaluation, calibration))
    assert used.isdisjoint(held_out)


def test_questions_without_gold_documents_can_be_drawn_for_both_splits():
    evaluation, calibration = draw(questions({"multi_hop": 4}, lambda _: []), 2, 2)
    assert (evaluation.num_rows, calibration.num_rows) == (2, 2)


def test_each_question_carries_its_types_share_of_the_whole_dataset():
    for split in draw(questions(MANY), 6, 6):
        for row in split.to_pylist():
            size = MANY[row["question_type"]]
            assert (row["stratum_size"], row["stratum_weight"]) == (size, size / (30 + 20 + 10))


def test_the_weights_of_the_types_add_up_to_one():
    evaluation, _ = draw(questions(MANY), 3)
    assert sum(evaluation["stratum_weight"].to_pylist()) == pytest.approx(1)


def test_no_calibration_split_is_an_empty_table():
    assert draw(questions(MANY), 3, 0)[1].num_rows == 0


def test_the_whole_dataset_may_be_the_evaluation_split():
    assert ids(draw(questions(MANY), 60)[0]) == ids(questions(MANY))


def test_an_evaluation_split_larger_than_the_dataset_is_refused():
    with pytest.raises(ArenaError) as refused:
        draw(questions(MANY), 30 + 20 + 10 + 1)
    asked = "params.yaml: sample.evaluation asks for 61 questions, but 60 are in the dataset"
    assert str(refused.value) == f'{asked}; lower it (OVERRIDES="sample.evaluation=60" with `make run`)'


def test_a_calibration_split_larger_than_what_is_left_is_refused():
    with pytest.raises(
        ArenaError,
        match=r"sample\.calibration asks for 51 questions, but 50 share no gold document with .*sample\.calibration=50",
    ):
        draw(questions(MANY), 10, 60 - 10 + 1)


def test_a_calibration_split_is_refused_when_all_questions_share_a_gold_document():
    with pytest.raises(
        ArenaError,
        match=r"sample\.calibration asks for 1 question, but 0 share no gold document with .*sample\.calibration=0",
    ):
        draw(questions(MANY, lambda _: ["the one"]), 1, 1)


def advised(table: pa.Table, evaluation: int, calibration: int) -> dict[str, int]:
    """The sizes that a refusal tells to ask for."""
    with pytest.raises(ArenaError) as refused:
        draw(table, evaluation, calibration)
    return {name: int(size) for name, size in re.findall(r"sample\.(\w+)=(\d+)", str(refused.value))}


@pytest.mark.parametrize(
    ("sizes", "evaluation", "advice"),
    [
        ({"single_hop": 12}, 12, {"evaluation": 6, "calibration": 6}),
        ({"single_hop": 13}, 12, {"evaluation": 6, "calibration": 7}),
        ({"single_hop": 20, "summary": 20}, 12, {"calibration": 28}),
    ],
)
def test_a_dataset_for_which_the_calibration_split_is_too_large_is_told_sizes_that_work(sizes, evaluation, advice):
    assert advised(questions(sizes), evaluation, 48) == advice
    assert draw(questions(sizes), **{"evaluation": evaluation, **advice})


def test_an_evaluation_split_with_every_gold_document_is_told_to_be_smaller():
    pairs = questions({"single_hop": 12}, lambda question_id: [f"d{int(question_id[-2:]) // 2}"])
    advice = advised(pairs, 12, 48)
    assert 0 < advice["evaluation"] <= advice["calibration"]
    assert draw(pairs, **advice)


def test_an_empty_dataset_is_refused():
    with pytest.raises(ArenaError, match=r"sample\.evaluation asks for 1 question, but 0 are in the dataset"):
        draw(questions({}), 1)
