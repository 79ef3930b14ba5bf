"""One cell, over a tiny corpus with its real index and a model over real sockets."""

import asyncio
import json
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from langgraph.graph import START, StateGraph

from rag_arena import artifacts, strategies
from rag_arena.artifacts import questions_of
from rag_arena.concurrency import gather_or_raise
from rag_arena.errors import ArenaError, EndpointError
from rag_arena.llm.client import chat_models, connect
from rag_arena.llm.ledger import Ledger
from rag_arena.metering import Call, Meter, call_rows
from rag_arena.params import NO_MODE, Params, validate
from rag_arena.records import Cell, Question
from rag_arena.retrieval.web import WebSearch
from rag_arena.scoring import evidence
from rag_arena.stages.index import index
from rag_arena.stages.resolve import resolve
from rag_arena.stages.retrieve import retrieve
from rag_arena.stages.run import Inputs, Outputs, run
from rag_arena.strategies.state import State, Toolbox
from tests.project import CORPUS, QUESTIONS, question_table, sample_table
from tests.strategies.harness import nobody
from tests.stub import Answer, Stub, completion, sensible, words
from tests.webstub import PAGES, always_searching, searxng

DENSE, FLOOR = Cell("vanilla", "dense"), Cell("no_retrieval", "none")
CORRECTIVE = Cell("self_corrective", "dense")


def changed(params: Params, url: str, changes: dict[str, Any] | None = None) -> Params:
    """The parameters with an endpoint and further changes, each named by its dotted key."""
    values = params.model_dump()
    endpoint = {"llm.endpoint.kind": "openai", "llm.endpoint.base_url": url, "llm.transport.max_concurrency": 2}
    for key, value in {**endpoint, **(changes or {})}.items():
        *path, last = key.split(".")
        section = values
        for part in path:
            section = section[part]
        section[last] = value
    return validate(values, "test")


@pytest.fixture(scope="module")
def inputs(params: Params) -> Inputs:
    """Four documents; five questions, of which the sample holds four."""
    questions = question_table([*QUESTIONS, ("q5", "Where does the Oder begin?", "Moravia", [], "single_hop", [])])
    sample = sample_table(QUESTIONS)
    corpus = artifacts.table(artifacts.CORPUS, CORPUS)
    built = index(corpus, params.embedder, None)
    hits, _ = retrieve("dense", params, corpus, built, questions)
    return Inputs(questions, sample, corpus, built, hits)


def play(
    cell: Cell, params: Params, inputs: Inputs, stub: Stub, ledger: Ledger, changes: dict[str, Any] | None = None
) -> Outputs:
    changed_params = changed(params, stub.url, changes)
    if cell.retrieval != NO_MODE:
        inputs = replace(inputs, resolved=resolve(cell, changed_params, nobody, nobody))

    async def work() -> Outputs:
        async with connect(changed_params.llm, ledger) as client:
            web = WebSearch(ledger, changed_params.llm.transport)
            return await run(cell, changed_params, inputs, *chat_models(changed_params, [client, client]), web)

    return asyncio.run(work())


def by_id(table: pa.Table) -> dict[str, dict[str, Any]]:
    return {row["question_id"]: row for row in table.to_pylist()}


def failing(*words: str, status: int = 400) -> Any:
    """Refuses the prompts that hold one of the words."""
    refused = Answer(status, b'{"error": {"message": "refused"}}', {"content-type": "application/json"})
    return lambda body: refused if any(word in body["messages"][-1]["content"] for word in words) else sensible(body)


# Which questions, and what is written of them


def test_every_question_of_the_sample_is_answered_and_no_other(
    params: Params, inputs: Inputs, stub: Stub, ledger: Ledger
) -> None:
    done = play(DENSE, params, inputs, stub, ledger)
    for table in (done.answers, done.timings):
        assert table["question_id"].to_pylist() == ["q1", "q2", "q3", "q4"]
    assert {row["status"] for row in done.answers.to_pylist()} == {"answered"}
    assert len(stub.requests) == 4


def test_an_answer_row_holds_the_answer_its_documents_and_its_cost(
    params: Params, inputs: Inputs, stub: Stub, ledger: Ledger
) -> None:
    stub.behave = lambda body: completion("milk, of course")
    row = by_id(play(DENSE, params, inputs, stub, ledger, {"strategy.vanilla.k": 1}).answers)["q3"]
    trace = row.pop("trace")
    assert row == {
        "question_id": "q3",
        "question_type": "multi_hop",
        "status": "answered",
        "error": None,
        "answer": "milk, of course",
        "retrieved_ids": ["d3"],
        "used_ids": ["d3"],
        "contexts": ["Cheese\nCheese is made of milk."],
        "corrected": None,
        "changed": None,
        "llm_calls": 1,
        "tokens_in": 10,
        "tokens_out": len(["milk,", "of", "course"]),
        "small_tokens_in": 0,
        "small_tokens_out": 0,
    }
    assert [step["node"] for step in json.loads(trace)] == ["retrieve", "generate"]


def test_a_question_that_only_the_dataset_holds_is_not_asked(inputs: Inputs) -> None:
    assert questions_of(inputs.questions, inputs.sample)[0] == Question(
        "q1", "Where does the Rhine begin?", "the Alps", ("Alps",), "single_hop", ("d1",)
    )
    assert [q.question_id for q in questions_of(inputs.questions, inputs.sample)] == ["q1", "q2", "q3", "q4"]


def test_a_split_of_another_dataset_is_refused(inputs: Inputs) -> None:
    with pytest.raises(
        ArenaError, match="data/sample: the dataset has no question 'q4'; draw the splits anew with `arena sample`"
    ):
        questions_of(inputs.questions.slice(0, 3), inputs.sample)


def test_answers_do_not_depend_on_how_many_are_asked_at_once(
    params: Params, inputs: Inputs, stub: Stub, ledger: Ledger, tmp_path: Any
) -> None:
    other = Ledger(tmp_path / "other.sqlite")
    one = play(DENSE, params, inputs, stub, ledger, {"llm.transport.max_concurrency": 1})
    many = play(DENSE, params, inputs, stub, other, {"llm.transport.max_concurrency": 8})
    other.close()
    assert one.answers == many.answers


def test_where_answers_are_reused_questions_are_asked_one_by_one_in_the_order_of_their_ids(
    params: Params, inputs: Inputs, stub: Stub, ledger: Ledger
) -> None:
    stub.behave = lambda body: words("No" if "common knowledge" in body["messages"][-1]["content"] else "Yes", 1.0)
    rows = [{**row, "question": "Where does the Rhine begin?"} for row in inputs.questions.to_pylist()]
    same = replace(inputs, questions=artifacts.table(artifacts.QUESTIONS, rows))
    settings = {
        "k": 1,
        "max_tokens": 8,
        "route_threshold": 0.65,
        "grader": "llm",
        "relevance": {"tau": 0.5, "temperature": 0.1},
        "keep_threshold": 0.7,
        "context_tokens": 100,
        "grounded_threshold": 0.5,
        "useful_threshold": 0.5,
        "max_retries": 2,
        "rewrite_tokens": 8,
        "sub_queries": 2,
        "claims": 2,
        "claims_tokens": 8,
        "reuse_threshold": 0.95,
    }
    changes = {"strategy.adaptive_self_rag": settings, "llm.transport.max_concurrency": 8}
    done = play(Cell("adaptive_self_rag", "dense"), params, same, stub, ledger, changes)
    assert done.answers["llm_calls"].to_pylist() == [len(["route", "grade", "generate", "verify", "assess"]), 0, 0, 0]
    first_steps = [json.loads(trace)[0]["node"] for trace in done.answers["trace"].to_pylist()]
    assert first_steps == ["route", "recall", "recall", "recall"]


def test_a_replayed_run_asks_nothing_and_answers_the_same(params: Params, inputs: Inputs, stub: Stub, ledger: Ledger) -> None:
    first, second = (play(DENSE, params, inputs, stub, ledger) for _ in range(2))
    assert first.answers == second.answers
    assert len(stub.requests) == 4
    assert first.timings["llm_s"] == second.timings["llm_s"]
    assert [t["replayed_calls"].to_pylist() for t in (first.timings, second.timings)] == [[0] * 4, [1] * 4]
    assert set(second.calls["replayed"].to_pylist()) == {True}


def test_two_questions_of_the_same_wording_each_use_every_document_once(
    params: Params, inputs: Inputs, stub: Stub, ledger: Ledger
) -> None:
    rows = [{**row, "question": "Where does it begin?"} for row in inputs.questions.to_pylist()]
    questions = artifacts.table(artifacts.QUESTIONS, rows)
    hits, _ = retrieve("dense", params, inputs.corpus, inputs.index, questions)
    same = Inputs(questions, inputs.sample, inputs.corpus, inputs.index, hits)
    done = play(DENSE, params, same, stub, ledger, {"strategy.vanilla.k": len(CORPUS) + 1})
    assert all(sorted(row["used_ids"]) == ["d1", "d2", "d3", "d4"] for row in done.answers.to_pylist())


# Calls and timings


def test_calls_are_numbered_within_a_question_and_named_by_their_node(
    params: Params, inputs: Inputs, stub: Stub, ledger: Ledger
) -> None:
    stub.behave = lambda body: completion("Where does cheese come from")
    changes = {"strategy.self_corrective.correction": "rewrite", "strategy.self_corrective.threshold": 1.0}
    done = play(CORRECTIVE, params, inputs, stub, ledger, changes)
    calls = [(c["question_id"], c["position"], c["node"]) for c in done.calls.to_pylist()]
    assert calls == [(q, p, node) for q in ("q1", "q2", "q3", "q4") for p, node in enumerate(("rewrite", "generate"))]
    assert done.answers["llm_calls"].to_pylist() == [2] * 4


def test_a_questions_tokens_and_seconds_are_those_of_its_calls(
    params: Params, inputs: Inputs, stub: Stub, ledger: Ledger
) -> None:
    changes = {"strategy.self_corrective.correction": "rewrite", "strategy.self_corrective.threshold": 1.0}
    done = play(CORRECTIVE, params, inputs, stub, ledger, changes)
    calls = [c for c in done.calls.to_pylist() if c["question_id"] == "q2"]
    answer, timing = by_id(done.answers)["q2"], by_id(done.timings)["q2"]
    assert answer["tokens_in"] == sum(c["tokens_in"] for c in calls) == 10 + 10
    assert answer["tokens_out"] == sum(c["tokens_out"] for c in calls)
    assert timing["llm_s"] == sum(c["latency_s"] for c in calls) > 0


def test_the_small_models_tokens_are_counted_apart_even_where_both_models_are_the_same(
    params: Params, inputs: Inputs, stub: Stub, ledger: Ledger
) -> None:
    stub.behave = lambda body: completion("Where does cheese come from")
    changes = {"strategy.self_corrective.correction": "rewrite", "strategy.self_corrective.threshold": 1.0}
    answer = by_id(play(CORRECTIVE, params, inputs, stub, ledger, changes).answers)["q2"]
    assert (answer["tokens_in"], answer["small_tokens_in"]) == (10 + 10, 10)
    words = len(["Where", "does", "cheese", "come", "from"])
    assert (answer["tokens_out"], answer["small_tokens_out"]) == (words + words, words)


def test_first_pass_searches_are_counted_as_recorded_and_take_no_time(
    params: Params, inputs: Inputs, stub: Stub, ledger: Ledger
) -> None:
    timing = by_id(play(DENSE, params, inputs, stub, ledger).timings)["q1"]
    assert (timing["recorded_searches"], timing["search_s"]) == (1, 0.0)


def test_searching_by_a_rewritten_query_takes_time(params: Params, inputs: Inputs, stub: Stub, ledger: Ledger) -> None:
    changes = {"strategy.self_corrective.correction": "rewrite", "strategy.self_corrective.threshold": 1.0}
    timing = by_id(play(CORRECTIVE, params, inputs, stub, ledger, changes).timings)["q1"]
    assert timing["recorded_searches"] == 1
    assert timing["search_s"] > 0


def test_a_strategy_without_retrieval_needs_no_index_and_searches_nothing(
    params: Params, inputs: Inputs, stub: Stub, ledger: Ledger
) -> None:
    done = play(FLOOR, params, Inputs(inputs.questions, inputs.sample), stub, ledger)
    row = by_id(done.answers)["q1"]
    assert (row["status"], row["retrieved_ids"], row["used_ids"], row["corrected"]) == ("answered", [], [], None)
    assert set(done.timings["recorded_searches"].to_pylist()) == {0}


def test_call_rows_carry_every_field_of_a_call() -> None:
    call = Call("generate", "key", "{endpoint}", "{request}", "{reply}", 5, 6, 0.25, True)
    assert call_rows("q1", Meter([call])) == [
        {
            "question_id": "q1",
            "position": 0,
            "node": "generate",
            "key": "key",
            "endpoint": "{endpoint}",
            "request": "{request}",
            "reply": "{reply}",
            "tokens_in": 5,
            "tokens_out": 6,
            "latency_s": 0.25,
            "replayed": True,
        }
    ]


def test_what_the_web_found_is_context_but_never_gold_and_its_search_is_kept_but_no_model_call(
    params: Params, inputs: Inputs, stub: Stub, ledger: Ledger
) -> None:
    changes = {"strategy.corrective": always_searching(stub)}
    stub.behave = lambda body: searxng("?", PAGES[2:]) if "path" in body else completion("cheese")
    done = play(Cell("corrective", "dense"), params, inputs, stub, ledger, changes)
    row = by_id(done.answers)["q3"]
    web_id = f"web:{PAGES[2][0]}"
    assert (row["retrieved_ids"], row["used_ids"]) == (["d3", web_id], [web_id])
    assert row["contexts"] == ["Cheese\nCheese is made of milk."]
    assert evidence.recall(row["used_ids"], ["d3"]) == evidence.precision(row["used_ids"], ["d3"]) == 0
    calls = [(c["position"], c["node"], c["tokens_in"]) for c in done.calls.to_pylist() if c["question_id"] == "q3"]
    assert calls == [(0, "rewrite", 10), (1, "generate", 10), (2, "search", 0)]
    assert row["llm_calls"] == 2
    asked = len(stub.requests)
    again = play(Cell("corrective", "dense"), params, inputs, stub, ledger, changes)
    assert (again.answers, len(stub.requests)) == (done.answers, asked)


# Corrected and changed


def test_a_correction_that_leaves_the_same_documents_is_corrected_but_not_changed(
    params: Params, inputs: Inputs, stub: Stub, ledger: Ledger
) -> None:
    changes = {
        "strategy.self_corrective.threshold": 1.0,
        "strategy.self_corrective.keep_ratio": 0.0,
        "strategy.self_corrective.k": 1,
    }
    rows = play(CORRECTIVE, params, inputs, stub, ledger, changes).answers.to_pylist()
    assert {(row["corrected"], row["changed"]) for row in rows} == {(True, False)}


def test_a_correction_that_drops_documents_is_corrected_and_changed(
    params: Params, inputs: Inputs, stub: Stub, ledger: Ledger
) -> None:
    changes = {"strategy.self_corrective.threshold": 1.0, "strategy.self_corrective.keep_ratio": 1.0}
    rows = play(CORRECTIVE, params, inputs, stub, ledger, changes).answers.to_pylist()
    assert {(row["corrected"], row["changed"]) for row in rows} == {(True, True)}
    assert all(row["used_ids"] == [] for row in rows)


def test_a_filter_may_change_the_documents_without_any_correction(
    params: Params, inputs: Inputs, stub: Stub, ledger: Ledger
) -> None:
    best = {row["question_id"]: row["cosine"] for row in inputs.hits.to_pylist() if row["rank"] == 1}  # type: ignore[union-attr]
    changes = {"strategy.self_corrective.threshold": min(best.values()), "strategy.self_corrective.keep_ratio": 1.0}
    rows = play(CORRECTIVE, params, inputs, stub, ledger, changes).answers.to_pylist()
    assert {row["corrected"] for row in rows} == {False}
    assert {row["changed"] for row in rows} >= {True}


def test_a_threshold_of_zero_corrects_and_changes_nothing(params: Params, inputs: Inputs, stub: Stub, ledger: Ledger) -> None:
    changes = {
        "strategy.self_corrective.threshold": 0.0,
        "strategy.self_corrective.keep_ratio": 0.0,
        "strategy.self_corrective.k": 1,
    }
    rows = play(CORRECTIVE, params, inputs, stub, ledger, changes).answers.to_pylist()
    assert {(row["corrected"], row["changed"]) for row in rows} == {(False, False)}


@pytest.mark.parametrize("correction", ["widen", "rewrite", "other_lane"])
def test_self_corrective_under_a_threshold_of_zero_answers_as_vanilla(
    params: Params, inputs: Inputs, stub: Stub, ledger: Ledger, correction: str
) -> None:
    changes = {
        "strategy.self_corrective.threshold": 0.0,
        "strategy.self_corrective.k": 1,
        "strategy.self_corrective.correction": correction,
        "strategy.vanilla.k": 1,
    }
    plain, corrected = (play(cell, params, inputs, stub, ledger, changes).answers for cell in (DENSE, CORRECTIVE))
    for column in ("answer", "used_ids"):
        assert plain[column] == corrected[column]


# Failures


def test_a_failing_question_is_recorded_and_does_not_stop_the_cell(
    params: Params, inputs: Inputs, stub: Stub, ledger: Ledger
) -> None:
    stub.behave = failing("What is cheese")
    rows = by_id(play(DENSE, params, inputs, stub, ledger).answers)
    assert {q: row["status"] for q, row in rows.items()} == {"q1": "answered", "q2": "answered", "q3": "failed", "q4": "answered"}
    assert f"{stub.url}: 400" in rows["q3"]["error"]
    assert (rows["q3"]["answer"], rows["q3"]["used_ids"], rows["q3"]["llm_calls"]) == (None, [], 0)


def test_a_failing_question_keeps_the_calls_it_had_paid_for(params: Params, inputs: Inputs, stub: Stub, ledger: Ledger) -> None:
    def behave(body: Any) -> Answer:
        rewriting = body["max_tokens"] == params.strategy["self_corrective"]["rewrite_tokens"]
        return completion("cheese") if rewriting else failing("What is cheese")(body)

    stub.behave = behave
    changes = {"strategy.self_corrective.correction": "rewrite", "strategy.self_corrective.threshold": 1.0}
    done = play(CORRECTIVE, params, inputs, stub, ledger, changes)
    row = by_id(done.answers)["q3"]
    assert (row["status"], row["llm_calls"], row["tokens_in"], row["corrected"], row["changed"]) == ("failed", 1, 10, None, None)
    assert [c["node"] for c in done.calls.to_pylist() if c["question_id"] == "q3"] == ["rewrite"]


def test_an_empty_answer_is_a_failed_question(params: Params, inputs: Inputs, stub: Stub, ledger: Ledger) -> None:
    stub.behave = lambda body: completion("", "length") if "What is cheese" in body["messages"][-1]["content"] else sensible(body)
    row = by_id(play(DENSE, params, inputs, stub, ledger).answers)["q3"]
    assert row["status"] == "failed"
    assert "an empty reply at generate (finish_reason length)" in row["error"]


@pytest.mark.parametrize("answer", ["", " \n", None])
def test_a_strategy_that_ends_without_an_answer_has_failed(
    params: Params, inputs: Inputs, stub: Stub, ledger: Ledger, monkeypatch: pytest.MonkeyPatch, answer: str | None
) -> None:
    graph = StateGraph(State, context_schema=Toolbox)
    graph.add_node("say", lambda state: {"trace": [{"node": "say"}], **({} if answer is None else {"answer": answer})})
    graph.add_edge(START, "say")
    monkeypatch.setattr(strategies, "build", lambda strategy: graph.compile())
    rows = play(DENSE, params, inputs, stub, ledger, {"run.max_failed_share": 1.0}).answers.to_pylist()
    assert {(row["status"], row["error"]) for row in rows} == {("failed", "the answer is empty")}
    assert {row["trace"] for row in rows} == {'[{"node": "say"}]'}


def test_a_failed_question_is_asked_again_by_the_next_run_and_no_other(
    params: Params, inputs: Inputs, stub: Stub, ledger: Ledger
) -> None:
    stub.behave = failing("What is cheese")
    play(DENSE, params, inputs, stub, ledger)
    stub.behave = sensible
    before = len(stub.requests)
    rows = play(DENSE, params, inputs, stub, ledger).answers.to_pylist()
    assert {row["status"] for row in rows} == {"answered"}
    assert len(stub.requests) - before == 1


@pytest.mark.parametrize("share", [0.5, 0.75, 1.0])
def test_failures_up_to_the_allowed_share_leave_the_cell_standing(
    params: Params, inputs: Inputs, stub: Stub, ledger: Ledger, share: float
) -> None:
    stub.behave = failing("Where does the Rhine", "What is cheese")
    rows = play(DENSE, params, inputs, stub, ledger, {"run.max_failed_share": share}).answers.to_pylist()
    assert sum(row["status"] == "failed" for row in rows) == 2 <= share * len(rows)


@pytest.mark.parametrize("share", [0.0, 0.25, 0.49])
def test_above_the_allowed_share_the_cell_aborts_with_one_line(
    params: Params, inputs: Inputs, stub: Stub, ledger: Ledger, share: float
) -> None:
    stub.behave = failing("What is cheese", "Where does the Elbe")
    share_told = rf"2 of 4 questions failed, over run\.max_failed_share {share:g}"
    expected = rf"^vanilla-dense: {share_told}; the first, q3: {stub.url}: 400 .*refused"
    with pytest.raises(ArenaError, match=expected) as error:
        play(DENSE, params, inputs, stub, ledger, {"run.max_failed_share": share})
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("status", [401, 403, 404])
def test_an_endpoint_that_refuses_everything_aborts_the_cell_whatever_share_may_fail(
    params: Params, inputs: Inputs, stub: Stub, ledger: Ledger, status: int
) -> None:
    stub.behave = failing("", status=status)
    with pytest.raises(EndpointError, match=f"^{stub.url}: .*{status}"):
        play(DENSE, params, inputs, stub, ledger, {"run.max_failed_share": 1.0})


def test_after_a_fatal_error_the_remaining_questions_are_not_asked(
    params: Params, inputs: Inputs, stub: Stub, ledger: Ledger
) -> None:
    stub.behave = failing("", status=401)
    with pytest.raises(EndpointError):
        play(DENSE, params, inputs, stub, ledger, {"llm.transport.max_concurrency": 1, "run.max_failed_share": 1.0})
    assert len(stub.requests) < 4


def test_an_unknown_strategy_is_refused(params: Params, inputs: Inputs, stub: Stub, ledger: Ledger) -> None:
    with pytest.raises(ArenaError, match=r"strategy 'vanila'"):
        play(Cell("vanila", "dense"), params, inputs, stub, ledger)


def test_an_index_of_another_embedder_is_refused_when_it_is_needed(
    params: Params, inputs: Inputs, stub: Stub, ledger: Ledger
) -> None:
    changes = {
        "strategy.self_corrective.correction": "rewrite",
        "strategy.self_corrective.threshold": 1.0,
        "embedder.max_tokens": 8,
    }
    with pytest.raises(ArenaError, match=r"data/index\.parquet: built by another embedder"):
        play(CORRECTIVE, params, inputs, stub, ledger, changes)


# Work done together


def test_results_come_in_the_order_of_the_work_not_of_its_end() -> None:
    async def wait(turns: int) -> int:
        for _ in range(turns):
            await asyncio.sleep(0)
        return turns

    assert asyncio.run(gather_or_raise([wait(3), wait(1), wait(2)])) == [3, 1, 2]


def test_no_work_gives_no_results() -> None:
    assert asyncio.run(gather_or_raise([])) == []


def test_the_first_exception_is_raised_as_it_is_and_cancels_the_rest() -> None:
    finished = []

    async def fail() -> None:
        raise EndpointError("refused")

    async def wait() -> None:
        await asyncio.sleep(60)
        finished.append(True)

    with pytest.raises(EndpointError, match=r"^refused$"):
        asyncio.run(gather_or_raise([wait(), fail()]))
    assert finished == []
