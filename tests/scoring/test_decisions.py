"""The decision scorecard over traces of a few steps."""

from collections.abc import Sequence
from typing import Any

import pytest

from rag_arena.decisions import ENOUGH, GROUNDED, RETRIEVE, Grade, keep_step, verdict_step
from rag_arena.records import Cell
from rag_arena.scoring.decisions import Path, scorecard
from rag_arena.scoring.graders import grader_rows
from rag_arena.scoring.node_costs import node_cost_rows
from rag_arena.scoring.paths import path_rows

CELL = Cell("s", "dense")


def went(*trace: dict[str, Any], gold: str = "g1 g2", question_type: str = "multi_hop", **known: Any) -> Path:
    unknown = dict.fromkeys(("corrected", "changed", "correct", "closed_book_correct"))
    given = {"retrieved": "", "used": "", **unknown, **known}
    documents = {name: given.pop(name).split() for name in ("retrieved", "used")}
    return Path(question_type, trace, gold=frozenset(gold.split()), **documents, **given)


def fetched(doc_ids: str) -> dict[str, Any]:
    return {"node": "retrieve", "hits": [{"doc_id": doc_id, "score": 0.5, "cosine": 0.5} for doc_id in doc_ids.split()]}


def graded(ps: dict[str, float], source: str = "logprobs") -> dict[str, Any]:
    return keep_step("grade", [Grade(doc_id, p, p >= 0.5, source) for doc_id, p in ps.items()])


def row(paths: Sequence[Path], decision: str, against: str, group: str = "all") -> dict[str, Any]:
    [found] = [
        r for r in scorecard(CELL, paths) if (r["decision"], r["against"], r["question_type"]) == (decision, against, group)
    ]
    return found


# A


def routed(retrieve: bool, closed_book_correct: bool | None, p: float | None = None) -> Path:
    more = {} if p is None else {"p": p, "source": "logprobs"}
    return went(verdict_step("route", RETRIEVE, retrieve, **more), closed_book_correct=closed_book_correct)


def test_retrieving_is_right_where_the_closed_book_answer_is_wrong() -> None:
    paths = [routed(True, False), routed(True, True), routed(False, False), routed(False, True), routed(False, True)]
    found = row(paths, "retrieve", "closed book wrong")
    assert (found["n"], found["yes_rate"], found["true_rate"]) == (5, 2 / 5, 2 / 5)
    assert found["accuracy"] == 3 / 5
    assert found["precision"] == 1 / 2
    assert found["recall"] == 1 / 2


def test_without_a_floor_the_decision_to_retrieve_is_counted_and_not_judged() -> None:
    found = row([routed(True, None), routed(False, None)], "retrieve", "closed book wrong")
    assert (found["n"], found["n_known"], found["yes_rate"]) == (2, 0, 1 / 2)
    assert (found["accuracy"], found["precision"], found["recall"], found["chance"]) == (None, None, None, None)


def test_a_question_retrieves_if_any_of_its_steps_did() -> None:
    steps = [verdict_step("route", RETRIEVE, verdict, p=p, source="logprobs") for verdict, p in ((False, 0.1), (True, 0.8))]
    found = row([went(*steps, closed_book_correct=False), routed(False, True, 0.3)], "retrieve", "closed book wrong")
    assert (found["n"], found["yes_rate"], found["accuracy"]) == (2, 1 / 2, 1.0)
    assert found["auc"] == 1.0, "0.8, the higher of the two, against 0.3"


# B


def test_grades_are_held_against_the_gold_documents() -> None:
    found = row([went(graded({"g1": 0.9, "a": 0.6, "g2": 0.2, "b": 0.1}))], "keep", "gold")
    assert (found["n"], found["yes_rate"]) == (4, 2 / 4)
    assert found["precision"] == len({"g1"}) / len({"g1", "a"})
    assert found["recall"] == len({"g1"}) / len({"g1", "g2"})
    in_order = {("g1", "a"), ("g1", "b"), ("g2", "b")}
    assert found["auc"] == len(in_order) / (2 * 2)


def test_the_grades_of_every_round_count() -> None:
    found = row([went(graded({"g1": 0.9}), graded({"g1": 0.9, "a": 0.1})), went(graded({"b": 0.6}))], "keep", "gold")
    assert (found["n"], found["precision"], found["recall"]) == (1 + 2 + 1, 2 / 3, 2 / 2)


def test_grades_of_a_question_without_gold_documents_are_counted_and_not_judged() -> None:
    found = row([went(graded({"a": 0.9}), gold="")], "keep", "gold")
    assert (found["n"], found["n_known"], found["precision"]) == (1, 0, None)


def test_enough_is_held_against_gold_among_the_documents_it_was_about() -> None:
    paths = [
        went(fetched("g1 a"), verdict_step("assess", ENOUGH, True)),  # right
        went(fetched("a b"), verdict_step("assess", ENOUGH, True), fetched("g1")),  # wrong: the gold came later
        went(fetched("a b"), verdict_step("assess", ENOUGH, False)),  # right
        went(fetched("a g1"), graded({"a": 0.9}), verdict_step("assess", ENOUGH, False)),  # right: about what was graded
        went(fetched("g2"), verdict_step("assess", ENOUGH, None)),  # undecided
    ]
    found = row(paths, "enough", "gold at hand")
    assert (found["n"], found["n_undecided"], found["n_known"]) == (5, 1, 4)
    assert found["accuracy"] == 3 / 4
    assert found["precision"] == 1 / 2


def test_a_chunk_is_gold_if_its_document_is() -> None:
    found = row([went(graded({"g1¶2": 0.9, "a¶1": 0.6}))], "keep", "gold")
    assert (found["n"], found["precision"]) == (2, 1 / 2)
    enough = row([went(fetched("a¶1 g2¶3"), verdict_step("assess", ENOUGH, True))], "enough", "gold at hand")
    assert enough["accuracy"] == 1 / 1


# C


def verified(verdict: bool, p: float | None = None) -> dict[str, Any]:
    return verdict_step("verify", GROUNDED, verdict, **({} if p is None else {"p": p, "source": "logprobs"}))


def wrote(used: str) -> dict[str, Any]:
    return {"node": "generate", "used": used.split()}


def test_every_groundedness_verdict_is_held_against_gold_in_the_prompt_it_was_about() -> None:
    twice = went(wrote("a"), verified(False), wrote("g1 a"), verified(True), used="g1 a")
    once = went(wrote("a b"), verified(True), used="a b")
    found = row([twice, once], "grounded", "gold in use")
    assert (found["n"], found["accuracy"], found["precision"], found["recall"]) == (3, 2 / 3, 1 / 2, 1 / 1)


def test_a_verdict_before_any_prompt_is_about_what_was_used_in_the_end() -> None:
    assert row([went(verified(True), used="g1")], "grounded", "gold in use")["precision"] == 1.0


def test_a_verdict_that_names_its_own_documents_is_about_those() -> None:
    step = {**verified(True), "used": ["a"]}
    assert row([went(wrote("g1"), step, used="g1")], "grounded", "gold in use")["precision"] == 0.0


def test_the_last_groundedness_verdict_is_held_against_the_answer() -> None:
    paths = [
        went(verified(True), verified(False), correct=False),
        went(verified(True), correct=True),
        went(verified(True), correct=False),
        went(verified(True), correct=None),
    ]
    found = row(paths, "grounded", "right answer")
    assert (found["n"], found["n_known"], found["accuracy"]) == (4, 3, 2 / 3)


def test_unreadable_verdicts_are_counted_by_their_share() -> None:
    steps = [verdict_step("verify", GROUNDED, False, p=0.5, source=s) for s in ("unreadable", "schema", "schema")]
    found = row([went(step) for step in steps], "grounded", "right answer")
    assert (found["unreadable"], found["schema"], found["logprobs"]) == (1 / 3, 2 / 3, 0.0)


def test_rows_are_per_question_type_that_decided_and_over_all() -> None:
    paths = [went(graded({"g1": 0.9})), went(graded({"g1": 0.1}), question_type="summary"), went(question_type="single_hop")]
    found = [(r["question_type"], r["n"]) for r in scorecard(CELL, paths)]
    assert found == [("all", 2), ("multi_hop", 1), ("summary", 1)]


def test_a_strategy_that_decides_nothing_has_no_scorecard() -> None:
    assert list(scorecard(CELL, [went(fetched("g1"), wrote("g1"))])) == []


# Paths


def path_row(paths: Sequence[Path], group: str = "all") -> dict[str, Any]:
    return next(r for r in path_rows(CELL, paths) if r["question_type"] == group)


def test_rounds_are_steps_that_fetched_documents() -> None:
    found = path_row([went(), went(fetched("a")), went(fetched("a"), graded({"a": 0.9}), fetched("b"), fetched(""))])
    assert (found["n_answered"], found["rounds_mean"], found["rounds_max"]) == (3, (0 + 1 + 3) / 3, 3)


def test_bypasses_are_a_share_of_the_questions_that_decided() -> None:
    found = path_row([routed(False, None), routed(True, None), routed(True, None), went()])
    assert (found["n_decided"], found["bypass_rate"]) == (3, 1 / 3)
    assert path_row([went()])["bypass_rate"] is None


def test_gold_that_was_retrieved_and_not_used_is_lost() -> None:
    paths = [went(retrieved="g1 a g2", used="g1 a"), went(retrieved="g1", used=""), went(retrieved="b", used="b")]
    found = path_row(paths)
    assert (found["gold_seen"], found["gold_lost"], found["gold_lost_rate"]) == (2 + 1 + 0, 1 + 1 + 0, 2 / 3)
    assert path_row([went(retrieved="b")])["gold_lost_rate"] is None


def test_gold_of_which_one_chunk_was_used_is_not_lost() -> None:
    found = path_row([went(retrieved="g1¶1 g1¶2 g2¶1", used="g1¶2")])
    assert (found["gold_seen"], found["gold_lost"]) == (len({"g1", "g2"}), len({"g2"}))


def test_corrections_and_changes_are_means_over_the_strategies_that_can_correct() -> None:
    outcomes = [(True, False), (True, True), (False, False)]
    found = path_row([went(corrected=corrected, changed=changed) for corrected, changed in outcomes])
    assert (found["correction_rate"], found["changed_rate"]) == (2 / 3, 1 / 3)
    assert path_row([went()])["correction_rate"] is None


def test_a_cell_without_an_answer_has_a_row_without_means() -> None:
    [found] = path_rows(CELL, [])
    assert (found["n_answered"], found["rounds_mean"], found["rounds_max"], found["gold_lost_rate"]) == (0, None, None, None)


# Graders


def call(node: str, tokens_in: int = 10, tokens_out: int = 1, latency_s: float = 0.5) -> dict[str, Any]:
    return {"node": node, "tokens_in": tokens_in, "tokens_out": tokens_out, "latency_s": latency_s}


def test_a_model_that_grades_costs_the_calls_labelled_grade() -> None:
    calls = [call("grade", 30, 1, 0.25), call("grade", 50, 2, 0.5), call("generate", 90, 9, 4.0)]
    paths = [went(graded({"g1": 0.9}), graded({"a": 0.5}, "unreadable"))]
    [(found, timed)] = grader_rows(CELL, paths, calls, [{"grading_s": 0.0}])
    assert (found["grader"], found["n"], found["unreadable"]) == ("llm", 2, 1 / 2)
    assert (found["llm_calls"], found["tokens_in"], found["tokens_out"]) == (2, 30 + 50, 1 + 2)
    assert timed == {"seconds": 0.25 + 0.5, "seconds_per_document": (0.25 + 0.5) / 2}


def test_a_reranker_that_grades_costs_no_call_and_its_own_seconds() -> None:
    paths = [went(graded({"g1": 0.9, "a": 0.1}, "cross_encoder"))]
    [(found, timed)] = grader_rows(CELL, paths, [call("generate")], [{"grading_s": 0.25}, {"grading_s": 0.5}])
    assert (found["grader"], found["precision"], found["recall"]) == ("cross_encoder", 1.0, 1.0)
    assert (found["llm_calls"], found["tokens_in"], found["tokens_out"]) == (0, 0, 0)
    assert timed == {"seconds": 0.25 + 0.5, "seconds_per_document": (0.25 + 0.5) / 2}


def test_graders_of_one_cell_have_a_row_each() -> None:
    paths = [went(graded({"g1": 0.9}), graded({"a": 0.1, "g1": 0.2}, "cosine"))]
    found = {r["grader"]: (r["n"], r["recall"], timed["seconds"]) for r, timed in grader_rows(CELL, paths, [], [])}
    assert found == {"llm": (1, 1.0, 0), "cosine": (2, 0.0, None)}


# Costs of nodes


def test_a_node_costs_its_calls_and_their_tokens() -> None:
    calls = [call("grade", 30, 1, 1.0), call("generate", 90, 9, 5.0), call("grade", 50, 2, 3.0)]
    rows = list(node_cost_rows(CELL, calls))
    assert [(r["node"], r["calls"], r["tokens_in"], r["tokens_out"]) for r, _ in rows] == [
        ("generate", 1, 90, 9),
        ("grade", 2, 30 + 50, 1 + 2),
    ]
    _, grade = rows[1]
    assert grade["latency_p50_s"] == (1.0 + 3.0) / 2
    assert grade["latency_p95_s"] == pytest.approx(1.0 + 0.95 * (3.0 - 1.0))
    assert grade["latency_p99_s"] == pytest.approx(1.0 + 0.99 * (3.0 - 1.0))
