"""The judge stage, with ragas over real sockets."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from rag_arena import artifacts
from rag_arena.decisions import UNCONFIRMED
from rag_arena.errors import EndpointError
from rag_arena.llm.client import connect
from rag_arena.llm.ledger import Ledger
from rag_arena.params import Endpoint, KnownTruth, Llm, Metrics, Price, Transport
from rag_arena.params import Judge as JudgeParams
from rag_arena.records import NOT_ASKED, Question, QuestionType
from rag_arena.scoring.judge import Judge
from rag_arena.stages.judge import balanced, corrupt, judge, judge_known_truth, known_pairs
from tests.stub import Answer, Stub, completion

CONTEXTS = {"d1": "Rhine\nThe Rhine begins in the Alps.", "d2": "Cheese is made of milk."}


def question(
    question_id: str, question_type: QuestionType = "single_hop", answer: str = "Alps", aliases: tuple[str, ...] = ()
) -> Question:
    return Question(question_id, f"Question {question_id}?", answer, aliases, question_type, ("d1",))


def tables(questions: list[Question]) -> tuple[pa.Table, pa.Table]:
    """The questions artifact and a sample that holds them all."""
    rows = [
        {
            "question_id": q.question_id,
            "question": q.text,
            "answer": q.answer,
            "aliases": list(q.aliases),
            "question_type": q.question_type,
            "gold_ids": list(q.gold_ids),
            "decomposition": [],
            "where": (),
            "origin": None,
        }
        for q in questions
    ]
    sampled = [
        {"question_id": q.question_id, "question_type": q.question_type, "stratum_size": 1, "stratum_weight": 1.0}
        for q in questions
    ]
    return artifacts.table(artifacts.QUESTIONS, rows), artifacts.table(artifacts.SAMPLE, sampled)


def answer_row(question: Question, answer: str | None = "the Alps", used: tuple[str, ...] = ("d1",)) -> dict[str, Any]:
    return {
        "question_id": question.question_id,
        "question_type": question.question_type,
        "status": "failed" if answer is None else "answered",
        "error": "broken" if answer is None else None,
        "answer": answer,
        "retrieved_ids": list(used),
        "used_ids": list(used),
        "contexts": [CONTEXTS[doc_id] for doc_id in used],
        "corrected": None,
        "changed": None,
        "llm_calls": 1,
        "tokens_in": 1,
        "tokens_out": 1,
        "small_tokens_in": 0,
        "small_tokens_out": 0,
        "trace": "[]",
    }


def settings(url: str, questions: int = 10, known: int = 10) -> JudgeParams:
    return JudgeParams(
        llm=Llm(
            endpoint=Endpoint(kind="openai", model="m", base_url=url),
            transport=Transport(max_concurrency=2, deadline_s=30.0, max_retries=0),
            price=Price(input=0.0, output=0.0),
        ),
        metrics=Metrics(questions=questions, rating_tokens=16, claims_tokens=128, verdict_tokens=256),
        known_truth=KnownTruth(questions=known),
    )


def with_judge(params: JudgeParams, ledger: Ledger, work: Callable[[Judge], Any]) -> list[dict[str, Any]]:
    async def connected() -> Any:
        async with connect(params.llm, ledger) as client:
            return await work(Judge(client, params.llm.endpoint, params.metrics))

    judgements, calls = asyncio.run(connected())
    assert all(call["reply"] for call in calls.to_pylist())
    rows: list[dict[str, Any]] = judgements.to_pylist()
    return rows


def judged(
    stub: Stub, ledger: Ledger, asked: list[Question], answers: list[dict[str, Any]], **limits: int
) -> list[dict[str, Any]]:
    params = settings(stub.url, **limits)
    table, sample = tables(asked)
    given = artifacts.table(artifacts.ANSWERS, answers)
    return with_judge(params, ledger, lambda j: judge("cell", params, given, table, sample, j))


def known(stub: Stub, ledger: Ledger, asked: list[Question], **limits: int) -> list[dict[str, Any]]:
    params = settings(stub.url, **limits)
    table, sample = tables(asked)
    return with_judge(params, ledger, lambda j: judge_known_truth(params, table, sample, j))


def replies(rating: int, claims: list[str], verdict: int) -> Callable[[Any], Answer]:
    def behave(body: Any) -> Answer:
        schema = body["response_format"]["json_schema"]["name"]
        verdicts = [{"statement": claim, "reason": "so", "verdict": verdict} for claim in claims]
        return completion(
            json.dumps(
                {
                    "AnswerAccuracyOutput": {"rating": rating},
                    "StatementGeneratorOutput": {"statements": claims},
                    "NLIStatementOutput": {"statements": verdicts},
                }[schema]
            )
        )

    return behave


# A cell's answers


def test_a_judgement_row_holds_both_metrics_and_their_cost(stub: Stub, ledger: Ledger) -> None:
    stub.behave = replies(4, ["The Alps."], 1)
    q = question("q1")
    [row] = judged(stub, ledger, [q], [answer_row(q)])
    words = [len(json.loads(stub.behave(body).content)["choices"][0]["message"]["content"].split()) for body in stub.requests]
    assert row == {
        "question_id": "q1",
        "question_type": "single_hop",
        "accuracy_first": 4,
        "accuracy_second": 4,
        "answer_accuracy": (4 / 4 + 4 / 4) / 2,
        "accuracy_error": None,
        "claims": 1,
        "supported": 1,
        "faithfulness": 1 / 1,
        "faithfulness_error": None,
        "echo": False,
        "judge_calls": 2 + 2,
        "tokens_in": 10 * (2 + 2),
        "tokens_out": sum(words),
    }


def test_faithfulness_is_null_and_not_asked_where_no_document_was_used(stub: Stub, ledger: Ledger) -> None:
    stub.behave = replies(2, ["The Alps."], 1)
    q = question("q1")
    [row] = judged(stub, ledger, [q], [answer_row(q, used=())])
    assert {row[c] for c in ("claims", "supported", "faithfulness", "faithfulness_error", "echo")} == {None}
    assert row["answer_accuracy"] == (2 / 4 + 2 / 4) / 2
    assert (row["judge_calls"], len(stub.requests)) == (2, 2)


def test_no_claim_supported_is_a_faithfulness_of_zero_and_not_null(stub: Stub, ledger: Ledger) -> None:
    stub.behave = replies(0, ["The Alps."], 0)
    q = question("q1")
    [row] = judged(stub, ledger, [q], [answer_row(q)])
    assert (row["supported"], row["faithfulness"], row["echo"], row["answer_accuracy"]) == (0, 0.0, False, 0.0)


def test_the_note_that_an_answer_is_unconfirmed_is_not_judged(stub: Stub, ledger: Ledger) -> None:
    stub.behave = replies(4, ["The Alps."], 1)
    q = question("q1")
    judged(stub, ledger, [q], [{**answer_row(q), "answer": f"{UNCONFIRMED}the Alps"}])
    assert any("the Alps" in prompt for prompt in stub.prompts)
    assert not any(UNCONFIRMED.strip() in prompt for prompt in stub.prompts)


def test_faithfulness_is_asked_of_the_contexts_as_they_stood_in_the_prompt(stub: Stub, ledger: Ledger) -> None:
    stub.behave = replies(4, ["The Alps."], 1)
    q = question("q1")
    judged(stub, ledger, [q], [answer_row(q, used=("d2", "d1"))])
    assert json.dumps("Cheese is made of milk.\nRhine\nThe Rhine begins in the Alps.") in stub.prompts[-1]


def test_failed_questions_are_not_judged(stub: Stub, ledger: Ledger) -> None:
    stub.behave = replies(4, ["The Alps."], 1)
    good, failed = question("q1"), question("q2")
    rows = judged(stub, ledger, [good, failed], [answer_row(good), answer_row(failed, None)])
    assert [row["question_id"] for row in rows] == ["q1"]


def test_failed_judgements_are_kept_with_their_reasons(stub: Stub, ledger: Ledger) -> None:
    stub.behave = lambda body: completion("no JSON")
    q = question("q1")
    [row] = judged(stub, ledger, [q], [answer_row(q)])
    assert row["accuracy_error"] == "no valid first and second rating"
    assert row["faithfulness_error"] == "claims could not be read"
    assert (row["answer_accuracy"], row["faithfulness"]) == (None, None)
    assert row["judge_calls"] == len(stub.requests) <= 2 + 2


def test_only_the_chosen_questions_are_judged_one_type_in_turn(stub: Stub, ledger: Ledger) -> None:
    stub.behave = replies(4, ["The Alps."], 1)
    questions = [
        question("q1"),
        question("q2"),
        question("q3", "multi_hop"),
        question("q4", "summary"),
        question("q5", "summary"),
    ]
    rows = judged(stub, ledger, questions, [answer_row(q) for q in questions], questions=4)
    multi_hop, single_hop, summary, single_hop_again = "q3", "q1", "q4", "q2"
    assert {row["question_id"] for row in rows} == {multi_hop, single_hop, summary, single_hop_again}


def test_a_chosen_question_that_failed_is_not_replaced_by_another(stub: Stub, ledger: Ledger) -> None:
    stub.behave = replies(4, ["The Alps."], 1)
    first, second = question("q1"), question("q2")
    assert judged(stub, ledger, [first, second], [answer_row(first, None), answer_row(second)], questions=1) == []


def test_no_answers_make_no_judgements(stub: Stub, ledger: Ledger) -> None:
    assert judged(stub, ledger, [question("q1")], []) == []


def test_an_endpoint_that_refuses_everything_aborts_the_stage(stub: Stub, ledger: Ledger) -> None:
    stub.behave = lambda body: Answer(401, b"{}")
    q = question("q1")
    with pytest.raises(EndpointError, match=r"refuses the key \(401\); check OPENAI_API_KEY"):
        judged(stub, ledger, [q], [answer_row(q)])


# Which questions


def test_balanced_takes_one_of_each_type_in_turn_by_id() -> None:
    questions = [
        question("s2", "summary"),
        question("s1", "summary"),
        question("h1"),
        question("m3", "multi_hop"),
        question("m1", "multi_hop"),
        question("m2", "multi_hop"),
    ]
    order = ["m1", "h1", "s1", "m2", "s2", "m3"]
    for size in range(8):
        assert balanced(questions, size) == order[:size]


def test_balanced_of_nothing_is_nothing() -> None:
    assert balanced([], 5) == []


# Pairs whose truth is known


def test_a_question_offers_itself_an_alias_another_answer_and_a_corrupted_one() -> None:
    q = question("q1", answer="Alps", aliases=("the Alps", "Alpes"))
    pool = [q, question("q2", "summary", "a summary"), question("q3", answer="Bohemia"), question("q4", answer="Moravia")]
    assert known_pairs(q, pool) == [("same", "Alps"), ("alias", "the Alps"), ("other", "Bohemia"), ("corrupted", "not Alps")]


def test_a_question_without_aliases_offers_none() -> None:
    q = question("q1")
    assert [kind for kind, _ in known_pairs(q, [q, question("q2", answer="Bohemia")])] == ["same", "other", "corrupted"]


def test_another_questions_answer_is_never_one_that_would_be_right() -> None:
    q = question("q1", answer="Alps", aliases=("the Alps",))
    pool = [q, question("q2", answer="Alps"), question("q3", answer="the Alps"), question("q4", answer="Bohemia")]
    assert dict(known_pairs(q, pool))["other"] == "Bohemia"


@pytest.mark.parametrize("same", ["ALPS", "alps.", "The Alps"])
def test_another_questions_answer_is_not_the_same_one_written_otherwise(same: str) -> None:
    q = question("q1", answer="Alps")
    assert "other" not in dict(known_pairs(q, [q, question("q2", answer=same)]))


def test_a_corrupted_reference_is_never_one_that_would_be_right() -> None:
    q = question("q1", answer="7", aliases=(str(7 + 7),))
    assert "corrupted" not in dict(known_pairs(q, [q]))


def test_a_question_alone_of_its_type_has_no_other_answer() -> None:
    q = question("q1")
    assert "other" not in dict(known_pairs(q, [q, question("q2", "summary", "a summary")]))


LONG = "one two three four five six seven eight nine ten eleven twelve"


@pytest.mark.parametrize(
    ("reference", "wrong"),
    [
        ("1879", str(1879 + 7)),
        ("14 March 1879", f"{14 + 7} March {1879 + 7}"),
        ("room 9", f"room {9 + 7}"),
        ("3.14", f"{3 + 7}.{14 + 7}"),
        ("Paris", "not Paris"),
        (LONG.removesuffix(" twelve"), "not " + LONG.removesuffix(" twelve")),
        (LONG, LONG),
        (LONG + " 12", f"{LONG} {12 + 7}"),
    ],
)
def test_a_reference_is_made_wrong_by_its_numbers_or_by_a_negation(reference: str, wrong: str) -> None:
    assert corrupt(reference) == wrong


def test_a_long_reference_without_numbers_offers_no_corrupted_pair() -> None:
    q = question("q1", "summary", LONG)
    assert known_pairs(q, [q]) == [("same", LONG)]


def test_every_pair_is_rated_and_kept_with_its_truth(stub: Stub, ledger: Ledger) -> None:
    stub.behave = replies(4, [], 1)
    rows = known(stub, ledger, [question("q1", aliases=("the Alps",)), question("q2", answer="Bohemia")])
    assert [(r["question_id"], r["kind"], r["candidate"], r["is_correct"]) for r in rows] == [
        ("q1", "alias", "the Alps", True),
        ("q1", "corrupted", "not Alps", False),
        ("q1", "other", "Bohemia", False),
        ("q1", "same", "Alps", True),
        ("q2", "corrupted", "not Bohemia", False),
        ("q2", "other", "Alps", False),
        ("q2", "same", "Bohemia", True),
    ]
    assert {(r["accuracy_first"], r["accuracy_second"], r["answer_accuracy"], r["error"]) for r in rows} == {(4, 4, 1.0, None)}


def test_only_the_chosen_questions_give_pairs_though_others_lend_their_answers(stub: Stub, ledger: Ledger) -> None:
    stub.behave = replies(4, [], 1)
    rows = known(stub, ledger, [question("q1"), question("q2", answer="Bohemia")], known=1)
    assert {r["question_id"] for r in rows} == {"q1"}
    assert "Bohemia" in {r["candidate"] for r in rows}


def test_a_judge_measured_on_no_questions_asks_nothing(stub: Stub, ledger: Ledger) -> None:
    assert known(stub, ledger, [question("q1")], known=0) == []
    assert stub.requests == []


def test_a_rating_that_fails_on_a_known_pair_is_kept_as_failed(stub: Stub, ledger: Ledger) -> None:
    stub.behave = replies(3, [], 1)
    rows = known(stub, ledger, [question("q1")])
    assert {(r["answer_accuracy"], r["error"]) for r in rows} == {(None, "no valid first and second rating")}


def test_a_judge_that_refuses_everything_aborts_its_own_measurement(stub: Stub, ledger: Ledger) -> None:
    stub.behave = lambda body: Answer(404, b"{}")
    with pytest.raises(EndpointError, match="404"):
        known(stub, ledger, [question("q1")])


def test_a_judge_that_could_not_be_asked_is_told_apart_from_one_that_judged_badly(stub: Stub, ledger: Ledger) -> None:
    asked, garbled = question("q1"), question("q2")
    stub.behave = lambda body: Answer(500) if "q1?" in body["messages"][-1]["content"] else completion("no rating")
    lost, bad = judged(stub, ledger, [asked, garbled], [answer_row(asked), answer_row(garbled)])
    assert lost["accuracy_error"].startswith(f"{NOT_ASKED}{stub.url}: 500")
    assert bad["accuracy_error"] == "no valid first and second rating"


def test_the_calls_behind_judgements_are_kept_in_their_order(stub: Stub, ledger: Ledger) -> None:
    params = settings(stub.url)
    table, sample = tables([question("q1")])
    given = artifacts.table(artifacts.ANSWERS, [answer_row(question("q1"))])

    async def connected() -> Any:
        async with connect(params.llm, ledger) as client:
            return await judge("cell", params, given, table, sample, Judge(client, params.llm.endpoint, params.metrics))

    judgements, calls = asyncio.run(connected())
    nodes = [(c["question_id"], c["position"], c["node"]) for c in calls.to_pylist()]
    assert nodes == [("q1", i, node) for i, node in enumerate(2 * ["answer_accuracy"] + 2 * ["faithfulness"])]
    assert judgements["judge_calls"].to_pylist() == [4]
