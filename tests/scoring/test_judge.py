"""The judge's rules on their own, and ragas's metrics over real sockets."""

import asyncio
import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from rag_arena.errors import EndpointError
from rag_arena.llm.client import connect
from rag_arena.llm.ledger import Ledger
from rag_arena.metering import metered
from rag_arena.params import Endpoint, Llm, Metrics, Price, Transport
from rag_arena.records import NOT_ASKED
from rag_arena.scoring.judge import Accuracy, Judge, Support, _stop_words, accuracy_of, support_of
from tests.stub import Answer, Stub, completion

METRICS = Metrics(questions=1, rating_tokens=16, claims_tokens=128, verdict_tokens=256)
EINSTEIN = "Albert Einstein was best known for developing the theory of relativity."
JOHN = "John is a dedicated student."
ANSWER = "Paris lies on the Seine and London on the Thames."
CLAIMS = ["Paris lies on the Seine.", "London lies on the Thames."]


# The rules


@pytest.mark.parametrize(("first", "second"), [(a, b) for a in (0, 2, 4) for b in (0, 2, 4)])
def test_accuracy_is_the_mean_of_both_ratings_over_four(first: int, second: int) -> None:
    assert accuracy_of([first, second]) == Accuracy(first, second, (first / 4 + second / 4) / 2, None)


@pytest.mark.parametrize("bad", [None, 1, 3, 5, -2, "4", "none"])
def test_one_bad_rating_fails_the_judgement_and_is_named(bad: Any) -> None:
    assert accuracy_of([bad, 4]) == Accuracy(None, 4, None, "no valid first rating")
    assert accuracy_of([0, bad]) == Accuracy(0, None, None, "no valid second rating")
    assert accuracy_of([bad, bad]) == Accuracy(None, None, None, "no valid first and second rating")


def test_ratings_that_never_came_are_bad_ones() -> None:
    assert accuracy_of([4]) == Accuracy(4, None, None, "no valid second rating")
    assert accuracy_of([]) == Accuracy(None, None, None, "no valid first and second rating")


@pytest.mark.parametrize(("first", "second"), [(1, 1), (1, 0), (0, 0)])
def test_support_is_supported_claims_over_claims(first: int, second: int) -> None:
    verdicts = [(CLAIMS[0], first), (CLAIMS[1], second)]
    assert support_of(ANSWER, CLAIMS, verdicts) == Support(2, first + second, (first + second) / 2, False, None)


def test_verdicts_may_come_in_any_order_and_differ_in_case_and_punctuation() -> None:
    verdicts = [("london lies on the thames", 1), ("PARIS lies on the Seine!", 0)]
    assert support_of(ANSWER, CLAIMS, verdicts) == Support(2, 1, 1 / 2, False, None)


def test_claims_that_could_not_be_read_fail_the_judgement() -> None:
    assert support_of(ANSWER, None, None) == Support(None, None, None, None, "claims could not be read")


def test_no_claims_fail_the_judgement() -> None:
    assert support_of(ANSWER, [], None) == Support(None, None, None, None, "no claims")


def test_verdicts_that_could_not_be_read_fail_the_judgement() -> None:
    assert support_of(ANSWER, CLAIMS, None) == Support(2, None, None, False, "verdicts could not be read")


@pytest.mark.parametrize("verdicts", [[], [(CLAIMS[0], 1)], [(CLAIMS[0], 1), (CLAIMS[1], 1), (CLAIMS[1], 1)]])
def test_another_number_of_verdicts_than_claims_fails_the_judgement(verdicts: list[tuple[str, int]]) -> None:
    assert support_of(ANSWER, CLAIMS, verdicts) == Support(2, None, None, False, f"{len(verdicts)} verdicts for 2 claims")


def test_a_verdict_about_no_claim_fails_the_judgement() -> None:
    verdicts = [(CLAIMS[0], 1), ("Rome lies on the Tiber.", 1)]
    assert support_of(ANSWER, CLAIMS, verdicts) == Support(2, None, None, False, "a verdict is about no claim")


def test_two_verdicts_about_one_claim_fail_the_judgement_as_another_claim_has_none() -> None:
    support = support_of(ANSWER, CLAIMS, [(CLAIMS[0], 1), (CLAIMS[0], 1)])
    assert support.value is None
    assert support.error is not None


@pytest.mark.parametrize("bad", [2, -1])
def test_a_verdict_other_than_0_or_1_fails_the_judgement(bad: int) -> None:
    verdicts = [(CLAIMS[0], 1), (CLAIMS[1], bad)]
    assert support_of(ANSWER, CLAIMS, verdicts) == Support(2, None, None, False, "a verdict is neither 0 nor 1")


def test_a_claim_that_shares_no_content_word_with_the_answer_fails_the_judgement() -> None:
    claims = [CLAIMS[0], "Rome is on it and the Tiber."]
    verdicts = [(claim, 1) for claim in claims]
    assert support_of(ANSWER, claims, verdicts) == Support(2, None, None, False, "1 of 2 claims share no word with the answer")


@pytest.mark.parametrize("example", [EINSTEIN, JOHN, EINSTEIN.upper().rstrip(".")])
def test_a_claim_recited_from_ragas_is_an_echo_and_fails_the_judgement(example: str) -> None:
    expected = Support(2, None, None, True, "1 of 2 claims share no word with the answer")
    assert support_of(ANSWER, [CLAIMS[0], example], [(CLAIMS[0], 1), (example, 1)]) == expected


def test_an_echo_that_shares_a_word_with_the_answer_is_scored_but_marked() -> None:
    answer = "It was Albert Einstein."
    assert support_of(answer, [EINSTEIN], [(EINSTEIN, 1)]) == Support(1, 1, 1 / 1, True, None)


def test_an_answer_that_says_what_ragas_says_is_no_echo() -> None:
    assert support_of(EINSTEIN, [EINSTEIN], [(EINSTEIN, 1)]) == Support(1, 1, 1 / 1, False, None)


# ragas's metrics against a server


def judged(url: str, ledger: Ledger, work: Callable[[Judge], Any], **endpoint: Any) -> Any:
    llm = Llm(
        endpoint=Endpoint(**{"kind": "openai", "model": "m", "base_url": url, **endpoint}),
        transport=Transport(max_concurrency=2, deadline_s=30.0, max_retries=0),
        price=Price(input=0.0, output=0.0),
    )

    async def connected() -> Any:
        async with connect(llm, ledger) as client:
            return await work(Judge(client, llm.endpoint, METRICS))

    return asyncio.run(connected())


def accuracy(stub: Stub, ledger: Ledger, **endpoint: Any) -> Accuracy:
    found: Accuracy = judged(stub.url, ledger, lambda judge: judge.accuracy("Where?", "the answer", "the reference"), **endpoint)
    return found


def faithfulness(stub: Stub, ledger: Ledger, **endpoint: Any) -> Support:
    work = lambda judge: judge.faithfulness("Where?", ANSWER, ["first context", "second context"])  # noqa: E731
    found: Support = judged(stub.url, ledger, work, **endpoint)
    return found


def schema_of(body: Any) -> str:
    return str(body["response_format"]["json_schema"]["name"])


def asked_last(prompt: str) -> Any:
    return json.loads(re.split(r"\ninput: ", prompt)[-1].rsplit("\nOutput:", 1)[0])


def rating(value: Any) -> Answer:
    return completion(json.dumps({"rating": value}))


def claims_then(verdicts: str, claims: list[str] = CLAIMS) -> Callable[[Any], Answer]:
    stated = completion(json.dumps({"statements": claims}))
    return lambda body: stated if schema_of(body) == "StatementGeneratorOutput" else completion(verdicts)


def verdicts_on(pairs: list[tuple[str, int]]) -> str:
    return json.dumps({"statements": [{"statement": s, "reason": "so", "verdict": v} for s, v in pairs]})


def test_two_ratings_are_asked_the_second_with_answer_and_reference_swapped(stub: Stub, ledger: Ledger) -> None:
    accuracy(stub, ledger)
    assert [asked_last(prompt) for prompt in stub.prompts] == [
        {"query": "Where?", "user_answer": "the answer", "reference_answer": "the reference"},
        {"query": "Where?", "user_answer": "the reference", "reference_answer": "the answer"},
    ]


def test_two_ratings_become_one_score(stub: Stub, ledger: Ledger) -> None:
    replies = [rating(4), rating(2)]
    stub.behave = lambda body: replies[len(stub.requests) - 1]
    assert accuracy(stub, ledger) == Accuracy(4, 2, (4 / 4 + 2 / 4) / 2, None)


def test_one_rating_out_of_range_fails_the_judgement_and_is_not_asked_again(stub: Stub, ledger: Ledger) -> None:
    replies = [rating(3), rating(4)]
    stub.behave = lambda body: replies[len(stub.requests) - 1]
    assert accuracy(stub, ledger) == Accuracy(None, 4, None, "no valid first rating")
    assert len(stub.requests) == 2


MALFORMED = {
    "no JSON": completion("I would say four."),
    "JSON cut inside": completion('{"rating": ', "length"),
    "another shape": completion('{"score": 4}'),
    "a rating in words": completion('{"rating": "four"}'),
    "a list": completion("[4]"),
    "empty": completion(""),
    "null": completion(None),
    "HTTP 500": Answer(500, b"{}"),
    "HTTP 400": Answer(400, b"{}"),
}


def reason(stub: Stub, answer: Answer, unreadable: str) -> str:
    """Why a judgement failed: a reply that cannot be read is the judge's fault, an error the server's."""
    return unreadable if answer.status == 200 else f"{NOT_ASKED}{stub.url}: {answer.status} Error code: {answer.status} - {{}}"


@pytest.mark.parametrize("answer", MALFORMED.values(), ids=MALFORMED.keys())
def test_a_rating_that_cannot_be_read_fails_the_judgement_after_two_requests(stub: Stub, ledger: Ledger, answer: Answer) -> None:
    stub.behave = lambda body: answer
    assert accuracy(stub, ledger) == Accuracy(None, None, None, reason(stub, answer, "no valid first and second rating"))
    assert len(stub.requests) == 2


def test_the_second_rating_stays_the_second_when_the_first_cannot_be_read(stub: Stub, ledger: Ledger) -> None:
    replies = [MALFORMED["no JSON"], rating(2)]
    stub.behave = lambda body: replies[len(stub.requests) - 1]
    assert accuracy(stub, ledger) == Accuracy(None, 2, None, "no valid first rating")


def test_claims_are_asked_of_the_answer_and_verdicts_on_them_from_all_contexts(stub: Stub, ledger: Ledger) -> None:
    stub.behave = claims_then(verdicts_on([(CLAIMS[0], 1), (CLAIMS[1], 0)]))
    assert faithfulness(stub, ledger) == Support(2, 1, 1 / 2, False, None)
    assert [asked_last(prompt) for prompt in stub.prompts] == [
        {"question": "Where?", "answer": ANSWER},
        {"context": "first context\nsecond context", "statements": CLAIMS},
    ]


@pytest.mark.parametrize("answer", MALFORMED.values(), ids=MALFORMED.keys())
def test_claims_that_cannot_be_read_end_the_judgement_after_at_most_two_requests(
    stub: Stub, ledger: Ledger, answer: Answer
) -> None:
    stub.behave = lambda body: answer
    assert faithfulness(stub, ledger) == Support(None, None, None, None, reason(stub, answer, "claims could not be read"))
    assert len(stub.requests) <= 2


@pytest.mark.parametrize("answer", MALFORMED.values(), ids=MALFORMED.keys())
def test_verdicts_that_cannot_be_read_fail_the_judgement_after_two_requests(stub: Stub, ledger: Ledger, answer: Answer) -> None:
    claims = claims_then("")
    stub.behave = lambda body: claims(body) if schema_of(body) == "StatementGeneratorOutput" else answer
    assert faithfulness(stub, ledger) == Support(2, None, None, False, reason(stub, answer, "verdicts could not be read"))
    assert len(stub.requests) == 2


def test_no_claims_end_the_judgement_without_asking_for_verdicts(stub: Stub, ledger: Ledger) -> None:
    stub.behave = claims_then("", [])
    assert faithfulness(stub, ledger) == Support(None, None, None, None, "no claims")
    assert len(stub.requests) == 1


def test_fewer_verdicts_than_claims_fail_the_judgement(stub: Stub, ledger: Ledger) -> None:
    stub.behave = claims_then(verdicts_on([(CLAIMS[0], 1)]))
    assert faithfulness(stub, ledger) == Support(2, None, None, False, "1 verdicts for 2 claims")


def test_an_empty_list_of_verdicts_fails_the_judgement(stub: Stub, ledger: Ledger) -> None:
    stub.behave = claims_then(verdicts_on([]))
    assert faithfulness(stub, ledger) == Support(2, None, None, False, "0 verdicts for 2 claims")


def test_a_judge_that_recites_ragas_fails_and_is_marked(stub: Stub, ledger: Ledger) -> None:
    stub.behave = claims_then(verdicts_on([(EINSTEIN, 1)]), [EINSTEIN])
    assert faithfulness(stub, ledger) == Support(1, None, None, True, "1 of 1 claims share no word with the answer")


@pytest.mark.parametrize("metric", [accuracy, faithfulness])
@pytest.mark.parametrize("status", [401, 403, 404])
def test_an_endpoint_that_refuses_everything_is_raised(
    stub: Stub, ledger: Ledger, metric: Callable[..., Any], status: int
) -> None:
    stub.behave = lambda body: Answer(status, b"{}")
    with pytest.raises(EndpointError, match=f"^{stub.url}: .*{status}"):
        metric(stub, ledger)


def test_an_endpoint_that_begins_to_refuse_at_the_verdicts_is_raised(stub: Stub, ledger: Ledger) -> None:
    claims = claims_then("")
    stub.behave = lambda body: claims(body) if schema_of(body) == "StatementGeneratorOutput" else Answer(401, b"{}")
    with pytest.raises(EndpointError, match="refuses the key"):
        faithfulness(stub, ledger)


def test_nobody_listening_is_raised(ledger: Ledger) -> None:
    with pytest.raises(EndpointError, match="nobody answers"):
        judged("http://127.0.0.1:1/v1", ledger, lambda judge: judge.accuracy("q", "a", "r"))


def test_each_request_is_bounded_by_its_own_limit(stub: Stub, ledger: Ledger) -> None:
    stub.behave = claims_then(verdicts_on([(claim, 1) for claim in CLAIMS]))
    faithfulness(stub, ledger)
    assert [body["max_tokens"] for body in stub.requests] == [METRICS.claims_tokens, METRICS.verdict_tokens]


def test_both_ratings_are_bounded_by_the_rating_limit(stub: Stub, ledger: Ledger) -> None:
    accuracy(stub, ledger)
    assert [body["max_tokens"] for body in stub.requests] == [METRICS.rating_tokens] * 2


def test_the_judges_requests_carry_the_endpoints_settings_and_no_others(stub: Stub, ledger: Ledger) -> None:
    accuracy(stub, ledger, temperature=0.5, seed=3, max_tokens_key="max_completion_tokens")
    sent = {k: v for k, v in stub.requests[0].items() if k not in ("messages", "response_format")}
    assert sent == {"model": "m", "temperature": 0.5, "seed": 3, "max_completion_tokens": METRICS.rating_tokens}


def test_a_null_temperature_is_not_sent_to_the_judge(stub: Stub, ledger: Ledger) -> None:
    accuracy(stub, ledger, temperature=None)
    assert set(stub.requests[0]) == {"model", "max_tokens", "messages", "response_format"}


def test_judgements_are_replayed_and_metered_under_their_metric(stub: Stub, ledger: Ledger) -> None:
    stub.behave = claims_then(verdicts_on([(claim, 1) for claim in CLAIMS]))
    with metered() as meter:
        assert faithfulness(stub, ledger) == faithfulness(stub, ledger)
    assert [(call.node, call.replayed) for call in meter.calls] == [("faithfulness", False)] * 2 + [("faithfulness", True)] * 2
    assert len(stub.requests) == 2


def test_words_that_carry_no_content_are_scikit_learns() -> None:
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    assert _stop_words() == ENGLISH_STOP_WORDS
