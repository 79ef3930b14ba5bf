"""Silver labels and the router learnt from them, over real retrieval and a model over real sockets."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest

from rag_arena import artifacts
from rag_arena.errors import ArenaError
from rag_arena.llm.client import chat_models, connect
from rag_arena.llm.ledger import Ledger
from rag_arena.params import Params
from rag_arena.records import Cell
from rag_arena.scoring.silver import silver_label
from rag_arena.stages.index import index
from rag_arena.stages.resolve import resolve
from rag_arena.stages.retrieve import retrieve
from rag_arena.stages.run import Inputs
from rag_arena.stages.train import Trained, train
from tests.stages.test_run import CORPUS, changed
from tests.strategies.harness import nobody
from tests.stub import Answer, Body, Stub, completion

SETTINGS = {
    "k": 1,
    "max_tokens": 16,
    "router": "trained",
    "max_steps": 1,
    "max_paragraphs": 2,
    "step_tokens": 9,
}
QUESTIONS = {  # question: reference, type
    "Where does the Rhine begin?": ("the Alps", "single_hop"),
    "Where does the Danube begin?": ("Black Forest", "multi_hop"),
    "What is cheese made of?": ("milk", "single_hop"),
    "Where does the Elbe begin?": ("Bohemia", "multi_hop"),
    "What about rivers?": ("Much.", "summary"),
}


@pytest.fixture(scope="module")
def inputs(params: Params) -> Inputs:
    """Four documents; five calibration questions, one of them a summary."""
    rows = [
        {
            "question_id": f"q{i}",
            "question": text,
            "answer": answer,
            "aliases": [],
            "question_type": kind,
            "gold_ids": [],
            "decomposition": [],
            "where": (),
            "origin": None,
        }
        for i, (text, (answer, kind)) in enumerate(QUESTIONS.items(), 1)
    ]
    questions = artifacts.table(artifacts.QUESTIONS, rows)
    sampled = [
        {"question_id": r["question_id"], "question_type": r["question_type"], "stratum_size": 2, "stratum_weight": 0.4}
        for r in rows
    ]
    corpus = artifacts.table(artifacts.CORPUS, CORPUS)
    built = index(corpus, params.embedder, None)
    hits, _ = retrieve("dense", params, corpus, built, questions)
    return Inputs(questions, artifacts.table(artifacts.SAMPLE, sampled), corpus, built, hits)


def answering(right: Mapping[str, str]) -> Any:
    """A model that is right about a question where `right` names the strategy: a letter each for none, one and several."""

    def behave(body: Body) -> Answer:
        prompt = body["messages"][-1]["content"]
        question = next(text for text in QUESTIONS if text in prompt)
        if body["max_tokens"] == SETTINGS["step_tokens"]:
            return completion("Cheese is made of milk." if "cheese" not in question else "The Elbe begins in Bohemia.")
        passages = sum(document["text"] in prompt for document in CORPUS)
        answer = QUESTIONS[question][0] if "nos"[passages] in right.get(question, "") else "nobody knows"
        return completion(f"It is {answer}.")

    return behave


def trained(params: Params, inputs: Inputs, stub: Stub, ledger: Ledger, **silver: Any) -> Trained:
    wanted = {"questions": 4, "settings": SETTINGS, **silver}
    with_silver = changed(params, stub.url, {f"silver.{key}": value for key, value in wanted.items()})

    async def work() -> Trained:
        async with connect(with_silver.llm, ledger) as client:
            return await train("dense", with_silver, inputs, *chat_models(with_silver, [client, client]))

    return asyncio.run(work())


# Labels


@pytest.mark.parametrize("none", [True, False])
@pytest.mark.parametrize("one", [True, False])
@pytest.mark.parametrize("several", [True, False])
def test_the_label_is_the_cheapest_that_was_right_in_all_eight_cases(none: bool, one: bool, several: bool) -> None:
    correct = {"none": none, "one": one, "several": several}
    cheapest = "none" if none else "one" if one else "several" if several else None
    for question_type, bias in (("single_hop", "one"), ("multi_hop", "several"), ("summary", "several")):
        expected = (cheapest, "answered") if cheapest else (bias, "inductive bias")
        assert silver_label(correct, question_type) == expected


def test_the_three_strategies_answer_and_their_answers_make_the_labels(
    params: Params, inputs: Inputs, stub: Stub, ledger: Ledger
) -> None:
    rhine, danube, cheese, _ = list(QUESTIONS)[:4]
    stub.behave = answering({rhine: "nos", danube: "os", cheese: "s"})
    rows = trained(params, inputs, stub, ledger).silver.to_pylist()
    told = [(r["question_id"], r["none"], r["one"], r["several"], r["label"], r["origin"]) for r in rows]
    assert told == [
        ("q1", True, True, True, "none", "answered"),
        ("q2", False, True, True, "one", "answered"),
        ("q3", False, False, True, "several", "answered"),
        ("q4", False, False, False, "several", "inductive bias"),
    ]


def test_a_question_on_which_a_strategy_failed_has_no_label_and_teaches_nothing(
    params: Params, inputs: Inputs, stub: Stub, ledger: Ledger
) -> None:
    def behave(body: Body) -> Answer:
        return completion("" if "Rhine begin?" in body["messages"][-1]["content"] else "It is milk.")

    stub.behave = behave
    done = trained(params, inputs, stub, ledger)
    first = done.silver.to_pylist()[0]
    assert (first["none"], first["one"], first["several"], first["label"], first["origin"]) == (None,) * 5
    [quality] = done.quality.to_pylist()
    assert (quality["n_questions"], quality["n_failed"]) == (4, 1)
    assert sum(row["n_labels"] for row in done.router.to_pylist()) == 3


# What is learnt


def test_class_counts_confusion_and_accuracies_agree_with_each_other(
    params: Params, inputs: Inputs, stub: Stub, ledger: Ledger
) -> None:
    rhine, danube, cheese, _ = list(QUESTIONS)[:4]
    stub.behave = answering({rhine: "nos", danube: "os", cheese: "os"})
    done = trained(params, inputs, stub, ledger, folds=2)
    [quality] = done.quality.to_pylist()
    confusion = done.confusion.to_pylist()
    assert (quality["n_none"], quality["n_one"], quality["n_several"], quality["n_inductive_bias"]) == (1, 2, 1, 1)
    assert quality["majority"] == 2 / 4
    assert quality["degenerate"] is False
    assert sum(row["n_questions"] for row in confusion) == 4
    right = sum(row["n_questions"] for row in confusion if row["label"] == row["predicted"])
    assert quality["accuracy"] == right / 4
    assert {row["choice"]: row["n_labels"] for row in done.router.to_pylist()} == {"none": 1, "one": 2, "several": 1}


def test_labels_of_one_class_make_a_router_that_is_called_degenerate(
    params: Params, inputs: Inputs, stub: Stub, ledger: Ledger
) -> None:
    stub.behave = answering(dict.fromkeys(QUESTIONS, "nos"))
    done = trained(params, inputs, stub, ledger)
    [quality] = done.quality.to_pylist()
    assert (quality["degenerate"], quality["accuracy"], quality["majority"]) == (True, 1.0, 1.0)
    assert [row["choice"] for row in done.router.to_pylist()] == ["none"]


def test_the_router_in_force_is_the_one_that_was_learnt(params: Params, inputs: Inputs, stub: Stub, ledger: Ledger) -> None:
    rhine, danube, _, _ = list(QUESTIONS)[:4]
    stub.behave = answering({rhine: "n", danube: "o"})
    done = trained(params, inputs, stub, ledger)
    with_adaptive = changed(params, stub.url, {"strategy.adaptive": SETTINGS})
    rows = resolve(Cell("adaptive", "dense"), with_adaptive, nobody, lambda: done.router).to_pylist()
    router = next(row for row in rows if row["key"] == "router")
    assert router["origin"] == "trained"
    assert router["value"].count("[") == 1 + 1 + 1 + 3, "three lists, the last one of three lines"


def test_a_router_without_labels_is_refused(params: Params, stub: Stub) -> None:
    with_adaptive = changed(params, stub.url, {"strategy.adaptive": SETTINGS})
    empty = artifacts.table(artifacts.ROUTER, [])
    with pytest.raises(ArenaError, match=r"^params\.yaml: strategy\.adaptive\.router cannot be trained in dense: .*prompted$"):
        resolve(Cell("adaptive", "dense"), with_adaptive, nobody, lambda: empty)


# What it costs


@pytest.mark.parametrize("silver", [{"questions": 0, "settings": {}}, {"settings": {**SETTINGS, "router": "prompted"}}])
def test_where_no_router_is_wanted_nothing_is_asked_and_the_tables_are_empty(
    params: Params, inputs: Inputs, stub: Stub, ledger: Ledger, silver: dict[str, Any]
) -> None:
    done = trained(params, inputs, stub, ledger, **silver)
    assert stub.requests == []
    tables: list[pa.Table] = [done.silver, done.router, done.confusion, done.quality, done.calls]
    assert [table.num_rows for table in tables] == [0] * 5


def test_only_as_many_short_questions_as_asked_for_are_labelled_and_every_call_is_kept(
    params: Params, inputs: Inputs, stub: Stub, ledger: Ledger
) -> None:
    stub.behave = answering({})
    done = trained(params, inputs, stub, ledger, questions=3)
    assert done.silver["question_id"].to_pylist() == ["q1", "q2", "q4"], "one of each type in turn: q2, q1, q4"
    assert done.calls.num_rows == len(stub.requests)
    assert not any("rivers" in prompt for prompt in stub.prompts)


def test_settings_that_are_not_adaptives_are_refused(params: Params, inputs: Inputs, stub: Stub, ledger: Ledger) -> None:
    with pytest.raises(ArenaError, match=r"^params\.yaml: unknown key silver\.settings\.rooter; did you mean router\?$"):
        trained(params, inputs, stub, ledger, settings={**SETTINGS, "rooter": 1})
