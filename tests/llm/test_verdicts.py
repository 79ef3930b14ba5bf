"""Verdicts as probabilities, over real sockets."""

import json
import math
from collections.abc import Mapping
from typing import Any

import pytest

from rag_arena.errors import EndpointError
from rag_arena.llm.embedded import model_path
from rag_arena.llm.ledger import Ledger
from rag_arena.llm.verdicts import Verdict, class_of, classify, from_alternatives
from rag_arena.params import Endpoint, Llm, Price, Transport
from tests.llm.test_client import llm_at, with_json, within
from tests.stub import Answer, Body, Stub, completion, one_token, sensible

YES_NO = ("Yes", "No")
SUPPORT = ("Fully", "Partially", "No")
EVEN = Verdict({"Yes": 1 / 2, "No": 1 / 2}, 1.0, "unreadable")


def logs(probabilities: Mapping[str, float]) -> dict[str, float]:
    return {token: math.log(p) for token, p in probabilities.items()}


def verdict(llm: Llm, ledger: Ledger, classes: tuple[str, ...] = YES_NO, prompt: str = "Is it?") -> Verdict:
    found = within(llm, ledger, lambda model: classify(model, "grade", prompt, classes))
    assert isinstance(found, Verdict)
    return found


def first(answer: Answer, then: Answer | None = None) -> Any:
    """One answer where log-probabilities are asked for, another where they are not."""
    return lambda body: answer if body.get("logprobs") else then or sensible(body)


# Which class a token names


@pytest.mark.parametrize(
    "token", ["Yes", " Yes", "yes", "YES", "\u2581Yes", "\u0120Yes", "Yes.", "\nYes", '"Yes"', "**Yes**", "Ye"]
)
def test_spaces_case_and_punctuation_do_not_count(token: str) -> None:
    assert class_of(token, YES_NO) == "Yes"


@pytest.mark.parametrize(
    ("token", "name"), [("F", "Fully"), ("Ful", "Fully"), (" fu", "Fully"), ("Part", "Partially"), ("No", "No"), ("NO", "No")]
)
def test_the_beginning_of_one_class_alone_names_it(token: str, name: str) -> None:
    assert class_of(token, SUPPORT) == name


@pytest.mark.parametrize("token", ["", " ", "\n", ".", "A", "I", "Q", "Yesterday", "Not", "Nothing", "The", "<think>", "\u2581"])
def test_other_tokens_name_no_class(token: str) -> None:
    assert class_of(token, (*YES_NO, "Ambiguous")) is None


def test_a_beginning_that_two_classes_share_names_neither() -> None:
    assert class_of("Relev", ("Relevant", "Relevance")) is None


def test_a_digit_is_a_class_of_one_letter() -> None:
    assert [class_of(token, ("1", "2")) for token in ("1", " 2", "2.", "12")] == ["1", "2", "2", None]


# Probabilities


def test_every_spelling_of_a_class_counts_to_it_and_the_rest_is_outside() -> None:
    found = from_alternatives(logs({"Yes": 0.3, " Yes": 0.1, "yes": 0.05, "YES": 0.05, "No": 0.2, "The": 0.2}), YES_NO)
    assert found is not None
    inside = 0.3 + 0.1 + 0.05 + 0.05 + 0.2
    assert found.probabilities == pytest.approx({"Yes": 0.5 / inside, "No": 0.2 / inside})
    assert found.outside == pytest.approx(1 - inside)
    assert (found.source, found.best) == ("logprobs", "Yes")


def test_a_class_that_is_not_among_the_likeliest_tokens_has_probability_zero() -> None:
    found = from_alternatives(logs({"Ful": 0.6, "No": 0.2}), SUPPORT)
    assert found is not None
    assert found.probabilities == pytest.approx({"Fully": 0.6 / 0.8, "Partially": 0.0, "No": 0.2 / 0.8})


@pytest.mark.parametrize("alternatives", [{}, {"The": -0.1}, {"Yes": -math.inf}, {"Yes": -9999.0}])
def test_without_any_mass_in_the_classes_there_is_no_verdict(alternatives: dict[str, float]) -> None:
    assert from_alternatives(alternatives, YES_NO) is None


def test_of_equal_classes_the_first_is_the_best() -> None:
    assert EVEN.best == "Yes"


# What is asked


def test_a_verdict_costs_one_call_of_one_token_with_its_alternatives(stub: Stub, ledger: Ledger) -> None:
    stub.behave = first(one_token({"Yes": 0.6, "No": 0.2, "I": 0.2}))
    found = verdict(llm_at(stub.url, top_logprobs=7), ledger)
    assert found.probabilities == pytest.approx({"Yes": 0.6 / 0.8, "No": 0.2 / 0.8})
    [body] = stub.requests
    assert (body["max_tokens"], body["logprobs"], body["top_logprobs"]) == (1, True, 7)
    assert "response_format" not in body


def test_a_verdict_that_is_not_the_token_said_is_read_from_the_alternatives(stub: Stub, ledger: Ledger) -> None:
    stub.behave = first(one_token({"Paris": 0.5, "Yes": 0.1, "No": 0.3}))
    assert verdict(llm_at(stub.url), ledger).best == "No"


FALLS_BACK = {
    "no class among the tokens": one_token({"The": 0.9, "A": 0.1}),
    "no log-probabilities in the reply": completion("Yes", "length"),
    "an empty reply": completion("", "length"),
    "a thought begins": one_token({"<think>": 0.9, "Yes": 0.1}),
    "a thought begins with a bracket alone": one_token({"<": 0.9, "Yes": 0.1}),
    "a whole thought": completion("<think>Yes</think>Yes", tokens=[("<think>", {"<think>": 0.9, "No": 0.1})]),
    "thoughts in a field of their own": with_json(
        {
            "choices": [
                {
                    "index": 0,
                    "finish_reason": "length",
                    "message": {"role": "assistant", "content": "Yes", "reasoning_content": "No"},
                    "logprobs": {"content": [{"token": "No", "logprob": 0.0, "top_logprobs": [{"token": "No", "logprob": 0.0}]}]},
                }
            ]
        }
    ),
}


@pytest.mark.parametrize("answer", FALLS_BACK.values(), ids=FALLS_BACK.keys())
def test_a_first_token_that_says_nothing_is_followed_by_a_question_for_json(stub: Stub, ledger: Ledger, answer: Answer) -> None:
    stub.behave = first(answer, completion('{"verdict": "Yes"}'))
    assert verdict(llm_at(stub.url, verdict_tokens=9), ledger) == Verdict({"Yes": 1.0, "No": 0.0}, 0.0, "schema")
    _, body = stub.requests
    assert body["max_tokens"] == 9
    assert "logprobs" not in body
    assert body["response_format"]["json_schema"]["schema"]["properties"]["verdict"]["enum"] == list(YES_NO)


def test_a_server_known_to_give_no_log_probabilities_is_asked_for_json_at_once(stub: Stub, ledger: Ledger) -> None:
    stub.behave = lambda body: completion('{"verdict": "No"}')
    assert verdict(llm_at(stub.url, top_logprobs=0), ledger).source == "schema"
    [body] = stub.requests
    assert "logprobs" not in body
    assert "top_logprobs" not in body


@pytest.mark.parametrize(("shape", "format_"), [("json_object", {"type": "json_object"}), ("none", None)])
def test_json_is_asked_for_as_the_server_can(stub: Stub, ledger: Ledger, shape: str, format_: Body | None) -> None:
    stub.behave = lambda body: completion('{"verdict": "No"}')
    assert verdict(llm_at(stub.url, top_logprobs=0, structured_output=shape), ledger).best == "No"
    assert stub.requests[0].get("response_format") == format_


SAID = {
    '{"verdict": "Yes"}': "Yes",
    '{"answer": "yes."}': "Yes",
    '```json\n{"verdict": "No"}\n```': "No",
    'Sure: {"verdict": "No"}': "No",
    '{"verdict": "Yes", "why": "it says so"}': "Yes",
    '{"verdict": ["Yes"]}': "Yes",
    "Yes": "Yes",
    "No, it does not.": "No",
    '"No"': "No",
    "<think>No</think>Yes": "Yes",
}


@pytest.mark.parametrize(("text", "name"), SAID.items(), ids=SAID.keys())
def test_a_verdict_in_words_has_probability_one(stub: Stub, ledger: Ledger, text: str, name: str) -> None:
    stub.behave = lambda body: completion(text)
    found = verdict(llm_at(stub.url, top_logprobs=0), ledger)
    assert found == Verdict({"Yes": float(name == "Yes"), "No": float(name == "No")}, 0.0, "schema")


def test_a_number_in_json_names_a_class_of_digits(stub: Stub, ledger: Ledger) -> None:
    stub.behave = lambda body: completion('{"rating": 4}')
    assert verdict(llm_at(stub.url, top_logprobs=0), ledger, tuple("12345")).best == "4"


RUBBISH = [
    "",
    "{}",
    "[]",
    "null",
    '{"verdict": "maybe"}',
    '{"a": "Yes", "b": "No"}',
    "{",
    "I cannot tell",
    "x" * 100_000,
]


@pytest.mark.parametrize("text", RUBBISH, ids=range(len(RUBBISH)))
def test_what_names_no_class_or_two_leaves_all_equally_likely(stub: Stub, ledger: Ledger, text: str) -> None:
    stub.behave = lambda body: completion(text)
    assert verdict(llm_at(stub.url, top_logprobs=0), ledger) == EVEN


def test_rubbish_costs_no_more_than_two_calls(stub: Stub, ledger: Ledger) -> None:
    stub.behave = lambda body: completion("rubbish")
    assert verdict(llm_at(stub.url), ledger) == EVEN
    assert len(stub.requests) == 2


def test_a_thought_alone_is_no_verdict(stub: Stub, ledger: Ledger) -> None:
    stub.behave = lambda body: completion("<think>Yes, because", "length")
    assert verdict(llm_at(stub.url, top_logprobs=0), ledger) == EVEN


# Servers that refuse


REFUSALS = [
    "logprobs are not supported by this model",
    "Unknown field: top_logprobs",
    "Requested sample logprobs of 20, which is greater than max allowed: 5",
    "top_logprobs must be at most 5",
    "The value of top_logprobs is too large",
]


@pytest.mark.parametrize("said", REFUSALS)
def test_a_server_that_refuses_log_probabilities_is_told_how_to_be_asked_for_none(stub: Stub, ledger: Ledger, said: str) -> None:
    stub.behave = lambda body: with_json({"error": {"message": said}}, 400)
    with pytest.raises(EndpointError, match=r"; set llm\.endpoint\.top_logprobs to what it allows, 0 for none$"):
        verdict(llm_at(stub.url), ledger)


# The stub and the embedded model


def test_the_stubs_verdicts_depend_on_the_prompt_alone(stub: Stub, ledger: Ledger) -> None:
    llm = llm_at(stub.url)
    found = [verdict(llm, ledger, SUPPORT, prompt) for prompt in ("a", "b")]
    assert found[0] != found[1]
    assert from_alternatives(_alternatives(sensible(stub.requests[0])), SUPPORT) == found[0]


def _alternatives(answer: Answer) -> dict[str, float]:
    [token] = json.loads(answer.content)["choices"][0]["logprobs"]["content"]
    return {t["token"]: t["logprob"] for t in token["top_logprobs"]}


def test_the_embedded_model_gives_probabilities_in_one_call(ledger: Ledger) -> None:
    assert model_path().is_file()
    llm = Llm(
        endpoint=Endpoint(kind="embedded", model="smollm2-135m-instruct", context_tokens=512),
        transport=Transport(max_concurrency=1, deadline_s=60.0, max_retries=0),
        price=Price(input=0.0, output=0.0),
    )
    found = verdict(llm, ledger, YES_NO, "Is water wet? Reply with one word, Yes or No.")
    assert found.source == "logprobs"
    assert math.fsum(found.probabilities.values()) == pytest.approx(1.0)
    assert 0 < found.probabilities["Yes"] < 1
    assert 0 < found.outside < 1
    assert ledger.stats()[0].calls == 1
