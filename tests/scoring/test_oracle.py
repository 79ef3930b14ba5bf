"""The oracle ceiling, by hand: four questions, their three answers, and what a router chose."""

import json
from typing import Any

import pytest

from rag_arena.scoring.oracle import Outcome, oracle_rows

KINDS = {"q1": "single_hop", "q2": "multi_hop", "q3": "multi_hop", "q4": "single_hop"}
TOKENS = {"none": 50, "one": 400, "several": 1000}
STEPS = {"none": 0, "one": 1, "several": 3}
RIGHT = {"none": "q1", "one": "q1 q2", "several": "q2 q3"}  # nobody is right about q4, which is single_hop: one by inductive bias
CHOSEN = {"q1": "one", "q2": "one", "q3": "none", "q4": "one"}


def arm(choice: str) -> dict[str, Outcome]:
    return {q: Outcome(kind, q in RIGHT[choice].split(), STEPS[choice], TOKENS[choice], None) for q, kind in KINDS.items()}


ARMS = {choice: arm(choice) for choice in ("none", "one", "several")}
ROUTED = {
    q: Outcome(KINDS[q], ARMS[choice][q].correct, STEPS[choice], TOKENS[choice] + 2, choice) for q, choice in CHOSEN.items()
}


def row(group: str = "all", arms: Any = ARMS, routed: Any = ROUTED) -> dict[str, Any]:
    return next(row for row in oracle_rows("dense", arms, routed) if row["question_type"] == group)


def test_the_oracle_takes_the_cheapest_that_is_right_and_the_router_what_it_chose():
    found = row()
    assert (found["accuracy_none"], found["accuracy_one"], found["accuracy_several"]) == (1 / 4, 2 / 4, 2 / 4)
    assert found["accuracy_oracle"] == 3 / 4  # q1 by none, q2 by one, q3 by several
    assert found["accuracy_router"] == 2 / 4  # q1 and q2, both by one
    assert found["gap"] == 3 / 4 - 2 / 4
    assert found["label_accuracy"] == 2 / 4  # q2 and q4; q1 needed none, q3 needed several
    assert (found["chose_none"], found["chose_one"], found["chose_several"]) == (1, 3, 0)


def test_steps_and_tokens_are_means_over_what_was_chosen():
    found = row()
    assert found["steps_oracle"] == (0 + 1 + 3 + 1) / 4
    assert found["tokens_oracle"] == (50 + 400 + 1000 + 400) / 4
    assert found["steps_router"] == (1 + 1 + 0 + 1) / 4
    assert found["tokens_router"] == (402 + 402 + 52 + 402) / 4


def test_question_types_have_rows_of_their_own():
    assert [r["question_type"] for r in oracle_rows("dense", ARMS, ROUTED)] == ["all", "multi_hop", "single_hop"]
    assert (row("multi_hop")["accuracy_oracle"], row("multi_hop")["accuracy_router"]) == (2 / 2, 1 / 2)


def test_a_question_whose_correctness_is_unknown_anywhere_is_left_out_and_counted():
    unknown = {**ARMS["one"], "q3": Outcome("multi_hop", None, 1, 400, None)}
    found = row(arms={**ARMS, "one": unknown})
    assert (found["n_questions"], found["n_unknown"]) == (3, 1)
    assert found["accuracy_oracle"] == 2 / 3


def test_without_adaptive_the_ceiling_stands_alone():
    found = row(routed=None)
    assert found["accuracy_oracle"] == 3 / 4
    assert {found[c] for c in ("accuracy_router", "gap", "label_accuracy", "chose_none", "steps_router")} == {None}


def test_what_did_not_run_is_named_by_its_absence_and_the_dearest_that_did_stands_in_for_it():
    found = row(arms={choice: ARMS[choice] for choice in ("none", "one")}, routed=None)
    assert found["strategies"] == "no_retrieval, vanilla"
    assert found["accuracy_several"] is None
    assert found["accuracy_oracle"] == 2 / 4
    assert found["tokens_oracle"] == (50 + 400 + 400 + 400) / 4  # q3 needs several, which did not run


@pytest.mark.parametrize("there", [[], ["one"]])
def test_with_nothing_to_choose_between_there_is_no_row(there: list[str]):
    assert list(oracle_rows("dense", {choice: ARMS[choice] for choice in there}, ROUTED)) == []


def test_an_outcome_counts_the_searches_of_its_trace_and_finds_the_choice():
    trace = [
        {"node": "route", "decides": "retrieve", "verdict": True, "choice": "several", "p": 0.5, "source": "trained"},
        {"node": "retrieve", "query": "Where?", "hits": [{"doc_id": "d1"}]},
        {"node": "reason", "sentence": "So it is.", "query": "", "done": False},
        {"node": "collect", "query": "", "hits": []},
        {"node": "collect", "query": "The Elbe.", "hits": []},
        {"node": "generate", "used": ["d1"]},
    ]
    answer = {"question_type": "multi_hop", "trace": json.dumps(trace), "tokens_in": 7, "tokens_out": 5}
    assert Outcome.of(answer, True) == Outcome("multi_hop", True, 2, 12, "several")
