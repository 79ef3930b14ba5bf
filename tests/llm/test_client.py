"""The transport chain, over real sockets."""

import asyncio
import contextlib
import json
import math
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

import openai
import pytest

from rag_arena.errors import ArenaError, EndpointError
from rag_arena.llm.client import ChatModel, Message, Token, connect
from rag_arena.llm.ledger import Ledger
from rag_arena.llm.refusals import explain
from rag_arena.metering import Meter, metered
from rag_arena.params import Endpoint, Llm, Price, Transport
from tests.stub import Answer, Stub, completion, raw_completion, sensible, serve, unused_url, with_json

SOON = {"retry-after": "0.001"}


def llm_at(url: str, limit: int = 4, deadline_s: float = 30.0, retries: int = 0, **endpoint: Any) -> Llm:
    return Llm(
        endpoint=Endpoint(**{"kind": "openai", "model": "m", "base_url": url, **endpoint}),
        transport=Transport(max_concurrency=limit, deadline_s=deadline_s, max_retries=retries),
        price=Price(input=0.0, output=0.0),
    )


def within(llm: Llm, ledger: Ledger, work: Callable[[ChatModel], Awaitable[Any]]) -> Any:
    async def connected() -> Any:
        async with connect(llm, ledger) as client:
            return await work(ChatModel(client, llm.endpoint))

    return asyncio.run(connected())


def ask(llm: Llm, ledger: Ledger, prompt: str = "why?", max_tokens: int = 9) -> tuple[Message, Meter]:
    with metered() as meter:
        return within(llm, ledger, lambda model: model.complete("generate", prompt, max_tokens)), meter


def ask_all(llm: Llm, ledger: Ledger, prompts: list[str]) -> list[Any]:
    async def work(model: ChatModel) -> list[Any]:
        return await asyncio.gather(*(model.complete("generate", p, 9) for p in prompts), return_exceptions=True)

    return within(llm, ledger, work)


def in_turn(*answers: Answer) -> Callable[[Any], Answer]:
    """Each answer once, then sensible ones."""
    left = list(answers)
    return lambda body: left.pop(0) if left else sensible(body)


def cut_connection() -> Answer:
    whole = completion("yes").content
    chunk = f"{len(whole):x}\r\n".encode() + whole[:40]
    return Answer(content=chunk, headers={"transfer-encoding": "chunked", "connection": "close"})


# What a request holds


def test_a_request_holds_the_model_the_prompt_and_the_sampling_settings_and_nothing_else(stub: Stub, ledger: Ledger) -> None:
    ask(llm_at(stub.url), ledger, "why?", 9)
    message = {"role": "user", "content": "why?"}
    assert stub.requests == [{"model": "m", "messages": [message], "max_tokens": 9, "temperature": 0.0}]


def test_the_longest_reply_is_named_as_the_endpoint_wants_it(stub: Stub, ledger: Ledger) -> None:
    ask(llm_at(stub.url, max_tokens_key="max_completion_tokens"), ledger, max_tokens=9)
    assert stub.requests[0]["max_completion_tokens"] == 9
    assert "max_tokens" not in stub.requests[0]


def test_a_null_temperature_is_not_sent(stub: Stub, ledger: Ledger) -> None:
    ask(llm_at(stub.url, temperature=None), ledger)
    assert "temperature" not in stub.requests[0]


def test_a_seed_is_sent(stub: Stub, ledger: Ledger) -> None:
    ask(llm_at(stub.url, seed=0), ledger)
    assert stub.requests[0]["seed"] == 0


def test_the_key_is_sent_and_stands_in_no_byte_of_the_ledger(stub: Stub, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "sk-very-secret")
    ask(llm_at(stub.url, api_key_env="MY_KEY"), ledger, "a prompt to find")
    written = b"".join(path.read_bytes() for path in ledger.path.parent.glob("ledger.sqlite*"))
    assert {k.lower(): v for k, v in stub.headers[0].items()}["authorization"] == "Bearer sk-very-secret"
    assert b"a prompt to find" in written
    assert b"sk-very-secret" not in written


@pytest.mark.parametrize("value", [None, ""])
def test_without_a_key_the_variable_to_set_is_named(ledger: Ledger, monkeypatch: pytest.MonkeyPatch, value: str | None) -> None:
    monkeypatch.delenv("MY_KEY", raising=False)
    if value is not None:
        monkeypatch.setenv("MY_KEY", value)
    with pytest.raises(EndpointError, match="http://server/v1: needs a key; set MY_KEY"):
        connect(llm_at("http://server/v1/", api_key_env="MY_KEY"), ledger)


# What a reply becomes


def test_a_reply_is_text_and_the_reason_it_stopped(stub: Stub, ledger: Ledger) -> None:
    stub.behave = lambda body: completion(" Paris\n")
    assert ask(llm_at(stub.url), ledger)[0] == Message("Paris", "", "stop")


def test_thoughts_are_kept_apart_from_the_answer(stub: Stub, ledger: Ledger) -> None:
    stub.behave = lambda body: completion("<think>it is in France</think>Paris")
    assert ask(llm_at(stub.url), ledger)[0] == Message("Paris", "it is in France", "stop")


@pytest.mark.parametrize("content", ["", None, "  \n"])
def test_an_empty_reply_names_model_node_and_finish_reason(stub: Stub, ledger: Ledger, content: str | None) -> None:
    stub.behave = lambda body: completion(content, "length")
    with pytest.raises(ArenaError, match=r"^m: an empty reply at generate \(finish_reason length\); raise max_tokens$"):
        ask(llm_at(stub.url), ledger)


@pytest.mark.parametrize("content", ["<think>so far</think>", "<think>never closed"])
def test_a_reply_of_thoughts_alone_says_so(stub: Stub, ledger: Ledger, content: str) -> None:
    stub.behave = lambda body: completion(content, "length")
    with pytest.raises(ArenaError, match=r"^m: only reasoning at generate \(finish_reason length\); raise max_tokens$"):
        ask(llm_at(stub.url), ledger)


# Recorded and replayed


def test_a_recorded_call_is_replayed_without_a_request(stub: Stub, ledger: Ledger) -> None:
    first, _ = ask(llm_at(stub.url), ledger)
    second, _ = ask(llm_at(stub.url), ledger)
    assert first == second
    assert len(stub.requests) == 1


def test_a_recorded_call_is_replayed_when_the_server_is_gone(ledger: Ledger) -> None:
    with serve() as stub:
        llm = llm_at(stub.url)
        first, _ = ask(llm, ledger)
    assert ask(llm, ledger)[0] == first


def test_a_replay_reports_the_original_tokens_and_latency(stub: Stub, ledger: Ledger) -> None:
    slow = completion("two words")
    slow.pause_s = 0.05
    stub.behave = lambda body: slow
    (_, live), (_, replay) = ask(llm_at(stub.url), ledger), ask(llm_at(stub.url), ledger)
    original, replayed = live.calls[0], replay.calls[0]
    assert (original.replayed, replayed.replayed) == (False, True)
    assert original.latency_s >= slow.pause_s
    assert replayed.latency_s == original.latency_s
    assert (replayed.tokens_in, replayed.tokens_out) == (original.tokens_in, original.tokens_out) == (10, len(["two", "words"]))


def test_a_call_is_recorded_with_its_node_request_and_reply(stub: Stub, ledger: Ledger) -> None:
    _, meter = ask(llm_at(stub.url), ledger)
    call = meter.calls[0]
    assert call.node == "generate"
    assert json.loads(call.endpoint) == {"base_url": stub.url, "model": "m"}
    assert json.loads(call.request) == stub.requests[0]
    assert json.loads(call.reply) == json.loads(sensible(stub.requests[0]).content)


def test_a_reply_without_usage_counts_no_tokens(stub: Stub, ledger: Ledger) -> None:
    stub.behave = lambda body: with_json({"choices": [{"index": 0, "finish_reason": "stop", "message": {"content": "yes"}}]})
    _, meter = ask(llm_at(stub.url), ledger)
    assert (meter.calls[0].tokens_in, meter.calls[0].tokens_out) == (0, 0)


def test_a_reply_cut_by_the_token_limit_is_recorded(stub: Stub, ledger: Ledger) -> None:
    stub.behave = lambda body: completion("The capital of", "length")
    ask(llm_at(stub.url), ledger)
    assert ask(llm_at(stub.url), ledger)[0] == Message("The capital of", "", "length")
    assert len(stub.requests) == 1


def test_a_slash_at_the_end_of_the_url_makes_no_new_endpoint(stub: Stub, ledger: Ledger) -> None:
    ask(llm_at(stub.url), ledger)
    ask(llm_at(stub.url + "/"), ledger)
    assert len(stub.requests) == 1


@pytest.mark.parametrize("change", [{"model": "other"}, {"temperature": 1.0}, {"seed": 1}])
def test_another_endpoint_setting_is_another_call(stub: Stub, ledger: Ledger, change: dict[str, Any]) -> None:
    ask(llm_at(stub.url), ledger)
    ask(llm_at(stub.url, **change), ledger)
    assert len(stub.requests) == 2


@pytest.mark.parametrize("change", [{"limit": 1}, {"deadline_s": 9.0}, {"retries": 3}, {"api_key_env": "PATH"}])
def test_how_requests_travel_makes_no_new_call(stub: Stub, ledger: Ledger, change: dict[str, Any]) -> None:
    ask(llm_at(stub.url), ledger)
    ask(llm_at(stub.url, **change), ledger)
    assert len(stub.requests) == 1


NEVER_RECORDED = {
    "500": with_json({"error": {"message": "broken"}}, 500),
    "429": with_json({"error": {"message": "slow down"}}, 429),
    "400": with_json({"error": {"message": "bad"}}, 400),
    "connection cut inside the body": cut_connection(),
    "JSON cut inside": Answer(content=completion("yes").content[:40]),
    "200 with an error object": with_json({"error": {"message": "overloaded"}}),
    "200 with an error object beside choices": with_json({**json.loads(completion("yes").content), "error": {"code": 502}}),
    "HTML": Answer(content=b"<html>\n<body>Please log in</body></html>", headers={"content-type": "text/html"}),
    "empty body": Answer(),
    "not UTF-8": Answer(content=b'{"choices": "\xff"}'),
    "a list": with_json([1]),
    "no choices key": with_json({"object": "chat.completion"}),
    "no choices": with_json({"choices": []}),
    "null choices": with_json({"choices": None}),
    "a choice without a message": with_json({"choices": [{"index": 0, "finish_reason": "stop"}]}),
    "a choice with a null message": with_json({"choices": [{"index": 0, "finish_reason": "stop", "message": None}]}),
}


@pytest.mark.parametrize("answer", NEVER_RECORDED.values(), ids=NEVER_RECORDED.keys())
def test_what_is_no_complete_reply_is_an_error_and_never_recorded(stub: Stub, ledger: Ledger, answer: Answer) -> None:
    stub.behave = in_turn(answer)
    with pytest.raises(ArenaError) as error:
        ask(llm_at(stub.url), ledger)
    assert stub.url in str(error.value)
    assert "\n" not in str(error.value)
    assert not isinstance(error.value, EndpointError)
    assert ledger.stats() == []
    assert (
        ask(llm_at(stub.url), ledger)[0].text
        == json.loads(sensible(stub.requests[0]).content)["choices"][0]["message"]["content"]
    )


def test_a_page_in_place_of_a_reply_is_quoted(stub: Stub, ledger: Ledger) -> None:
    stub.behave = lambda body: NEVER_RECORDED["HTML"]
    with pytest.raises(ArenaError, match="200 without a chat completion: <html> <body>Please log in</body></html>"):
        ask(llm_at(stub.url), ledger)


def test_a_reply_that_cannot_be_stored_does_not_harm_the_next(stub: Stub, ledger: Ledger) -> None:
    stub.behave = in_turn(completion("half an emoji \ud83d"))
    with contextlib.suppress(ArenaError):
        ask(llm_at(stub.url), ledger, "first")
    ask(llm_at(stub.url), ledger, "second")
    assert ledger.stats()[0].calls >= 1


# Raw completions


def continued(llm: Llm, ledger: Ledger, prompt: str = "Once", **more: Any) -> Message:
    return within(llm, ledger, lambda model: model.continue_text("generate", prompt, 9, **more))


def test_a_raw_completion_keeps_its_white_space_and_the_probabilities_of_its_tokens(stub: Stub, ledger: Ledger) -> None:
    stub.behave = lambda body: raw_completion([(" upon", {" upon": 0.5, " a": 0.25}), (" a", {" a": 1.0})])
    reply = continued(llm_at(stub.url), ledger, logprobs=2)
    assert (reply.text, reply.finish_reason) == (" upon a", "stop")
    assert reply.tokens == (
        Token(" upon", math.log(0.5), {" upon": math.log(0.5), " a": math.log(0.25)}),
        Token(" a", 0.0, {" a": 0.0}),
    )
    assert stub.paths == ["/v1/completions"]


def test_a_raw_completions_limit_has_one_name_whatever_that_of_chats(stub: Stub, ledger: Ledger) -> None:
    stub.behave = lambda body: raw_completion([("upon", {"upon": 1.0})])
    continued(llm_at(stub.url, max_tokens_key="max_completion_tokens"), ledger)
    assert stub.requests == [{"model": "m", "prompt": "Once", "max_tokens": 9, "temperature": 0.0}]


@pytest.mark.parametrize("answer", [completion("a chat"), with_json({"choices": [{"text": None}]}), with_json({"choices": []})])
def test_what_is_no_raw_completion_is_an_error_and_never_recorded(stub: Stub, ledger: Ledger, answer: Answer) -> None:
    stub.behave = lambda body: answer
    with pytest.raises(ArenaError, match="200 without a completion: "):
        continued(llm_at(stub.url), ledger)
    assert ledger.stats() == []


def test_the_likelihood_of_a_part_counts_its_tokens_alone(stub: Stub, ledger: Ledger) -> None:
    tokens = [("It", {"It": 0.5}), (" is.", {" is.": 0.25}), (" No", {" No": 0.01})]
    stub.behave = lambda body: completion("It is. No", tokens=tokens)
    reply = ask(llm_at(stub.url), ledger)[0]
    assert reply.likelihood("It is.") == pytest.approx((0.5 * 0.25) ** (1 / 2))
    assert reply.likelihood("No") == pytest.approx(0.01)
    assert reply.likelihood("Yes") is None
    assert reply.likelihood(reply.text) == pytest.approx((0.5 * 0.25 * 0.01) ** (1 / 3))


@pytest.mark.parametrize("text", ["Paris", "<think>hm</think>Paris"])
def test_there_is_no_likelihood_without_log_probabilities_or_with_thoughts_among_the_tokens(
    stub: Stub, ledger: Ledger, text: str
) -> None:
    tokens = [] if text == "Paris" else [(text, {text: 0.5})]
    stub.behave = lambda body: completion(text, tokens=tokens)
    assert ask(llm_at(stub.url), ledger)[0].likelihood("Paris") is None


# Prompts that are too long

TOO_LONG = "m: a prompt of 11 characters, over max_prompt_characters (10); shorten the question, lower k, or cut documents"


@pytest.mark.parametrize("way", ["ask", "continue_text"])
def test_too_long_a_prompt_is_not_sent_and_fails_alone(stub: Stub, ledger: Ledger, way: str) -> None:
    llm = llm_at(stub.url, retries=3, max_prompt_characters=10)
    with pytest.raises(ArenaError) as error:
        within(llm, ledger, lambda model: getattr(model, way)("generate", "x" * 11, 9))
    assert not isinstance(error.value, EndpointError)
    assert str(error.value) == f"{TOO_LONG} (dataset.chunking)"
    assert (stub.requests, ledger.stats()) == ([], [])


def test_a_prompt_of_just_the_allowed_length_is_sent(stub: Stub, ledger: Ledger) -> None:
    ask(llm_at(stub.url, max_prompt_characters=10), ledger, "x" * 10)
    assert len(stub.requests) == 1


def test_a_recorded_reply_to_too_long_a_prompt_is_not_replayed(stub: Stub, ledger: Ledger) -> None:
    ask(llm_at(stub.url), ledger, "x" * 11)
    with pytest.raises(ArenaError, match="over max_prompt_characters"):
        ask(llm_at(stub.url, max_prompt_characters=10), ledger, "x" * 11)


# Identical calls under way


def test_identical_calls_under_way_share_one_request(stub: Stub, ledger: Ledger) -> None:
    slow = completion("shared")
    slow.pause_s = 0.1
    stub.behave = lambda body: slow
    with metered() as meter:
        replies = ask_all(llm_at(stub.url), ledger, ["same"] * 5)
    assert replies == [Message("shared", "", "stop")] * 5
    assert len(stub.requests) == 1
    assert sorted(call.replayed for call in meter.calls) == [False] + [True] * 4


@pytest.mark.parametrize("kind", ["500", "connection cut inside the body"])
def test_identical_calls_under_way_share_a_failure(stub: Stub, ledger: Ledger, kind: str) -> None:
    answer = NEVER_RECORDED[kind]
    stub.behave = lambda body: Answer(answer.status, answer.content, answer.headers, pause_s=0.2)
    errors = ask_all(llm_at(stub.url), ledger, ["same"] * 3)
    assert [type(error) for error in errors] == [ArenaError] * 3
    assert len({str(error) for error in errors}) == 1
    assert len(stub.requests) == 1


def test_different_calls_share_nothing(stub: Stub, ledger: Ledger) -> None:
    ask_all(llm_at(stub.url), ledger, ["a", "b", "c"])
    assert sorted(stub.prompts) == ["a", "b", "c"]


def test_a_call_whose_twin_was_cancelled_is_answered_by_its_retry(stub: Stub, ledger: Ledger) -> None:
    arrived, go = threading.Event(), threading.Event()

    def behave(body: Any) -> Answer:
        arrived.set()
        go.wait(10)
        return sensible(body)

    stub.behave = behave

    async def work(model: ChatModel) -> Message:
        leader = asyncio.create_task(model.complete("generate", "same", 9))
        follower = asyncio.create_task(model.complete("generate", "same", 9))
        await asyncio.to_thread(arrived.wait, 10)
        leader.cancel()
        go.set()
        return await follower

    assert within(llm_at(stub.url, retries=1), ledger, work).text.startswith("answer ")


# Concurrency and time


def test_as_many_requests_as_the_limit_are_under_way_and_never_more(stub: Stub, ledger: Ledger) -> None:
    limit, lock, now, peak = 3, threading.Lock(), 0, 0
    together = threading.Barrier(limit)

    def behave(body: Any) -> Answer:
        nonlocal now, peak
        with lock:
            now += 1
            peak = max(peak, now)
        together.wait(20)
        with lock:
            now -= 1
        return sensible(body)

    stub.behave = behave
    replies = ask_all(llm_at(stub.url, limit=limit), ledger, [f"question {i}" for i in range(4 * limit)])
    assert all(isinstance(reply, Message) for reply in replies)
    assert peak == limit


def test_latency_leaves_out_the_time_spent_waiting_for_a_slot(stub: Stub, ledger: Ledger) -> None:
    def slow(body: Any) -> Answer:
        answer = sensible(body)
        answer.pause_s = 0.05
        return answer

    stub.behave = slow
    start = time.perf_counter()
    with metered() as meter:
        ask_all(llm_at(stub.url, limit=1), ledger, [f"question {i}" for i in range(4)])
    assert sum(call.latency_s for call in meter.calls) <= time.perf_counter() - start


def test_the_deadline_does_not_run_while_a_call_waits_for_a_slot(stub: Stub, ledger: Ledger) -> None:
    def slow(body: Any) -> Answer:
        answer = sensible(body)
        answer.pause_s = 0.2
        return answer

    stub.behave = slow
    deadline_s, calls = 0.9, 5
    assert calls * slow({"messages": [{"content": ""}]}).pause_s > deadline_s
    replies = ask_all(llm_at(stub.url, limit=1, deadline_s=deadline_s), ledger, [f"question {i}" for i in range(calls)])
    assert all(isinstance(reply, Message) for reply in replies)


@pytest.mark.parametrize(
    "slow",
    [
        pytest.param({"drip_s": 0.02}, id="a slow drip"),
        pytest.param({"pause_s": 1.0}, id="silence"),
    ],
)
def test_a_reply_that_is_not_whole_by_the_deadline_is_an_error_and_not_recorded(
    stub: Stub, ledger: Ledger, slow: dict[str, float]
) -> None:
    whole = completion("yes")
    assert len(whole.content) * 0.02 > 1.0
    stub.behave = lambda body: Answer(content=whole.content, headers=whole.headers, **slow)
    with pytest.raises(ArenaError, match=rf"^{stub.url}: no complete reply in time; raise llm\.transport\.deadline_s$"):
        ask(llm_at(stub.url, deadline_s=0.2), ledger)
    assert ledger.stats() == []


def test_a_drip_that_ends_before_the_deadline_is_answered(stub: Stub, ledger: Ledger) -> None:
    whole = completion("yes")
    stub.behave = lambda body: Answer(content=whole.content, headers=whole.headers, drip_s=0.0005)
    assert ask(llm_at(stub.url), ledger)[0].text == "yes"


# Retries


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503])
def test_a_passing_failure_is_tried_again(stub: Stub, ledger: Ledger, status: int) -> None:
    stub.behave = in_turn(*[with_json({"error": {"message": "later"}}, status, SOON)] * 2)
    _, meter = ask(llm_at(stub.url, retries=2), ledger)
    assert len(stub.requests) == 1 + 2
    assert len(meter.calls) == 1


def test_a_lost_connection_is_tried_again(stub: Stub, ledger: Ledger) -> None:
    stub.behave = in_turn(cut_connection())
    ask(llm_at(stub.url, retries=1), ledger)
    assert len(stub.requests) == 1 + 1


def test_retries_end_and_the_last_failure_is_told(stub: Stub, ledger: Ledger) -> None:
    stub.behave = lambda body: with_json({"error": {"message": "slow down"}}, 429, SOON)
    with pytest.raises(ArenaError, match=f"^{stub.url}: 429 .*slow down"):
        ask(llm_at(stub.url, retries=2), ledger)
    assert len(stub.requests) == 1 + 2


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
def test_a_refusal_is_not_tried_again(stub: Stub, ledger: Ledger, status: int) -> None:
    stub.behave = lambda body: with_json({"error": {"message": "no"}}, status, SOON)
    with pytest.raises(ArenaError):
        ask(llm_at(stub.url, retries=3), ledger)
    assert len(stub.requests) == 1


def test_a_server_that_asks_for_no_retry_is_obeyed(stub: Stub, ledger: Ledger) -> None:
    stub.behave = lambda body: with_json({"error": {"message": "no"}}, 500, {"x-should-retry": "false"})
    with pytest.raises(ArenaError, match=": 500 "):
        ask(llm_at(stub.url, retries=3), ledger)
    assert len(stub.requests) == 1


@pytest.mark.parametrize("header", [{"retry-after": "0.8"}, {"retry-after-ms": "800"}])
def test_a_retry_waits_as_long_as_the_server_asks(stub: Stub, ledger: Ledger, header: dict[str, str]) -> None:
    longest_wait_of_its_own = 0.5
    arrivals = []

    def behave(body: Any) -> Answer:
        arrivals.append(time.perf_counter())
        return with_json({"error": {"message": "later"}}, 429, header) if len(arrivals) == 1 else sensible(body)

    stub.behave = behave
    ask(llm_at(stub.url, retries=1), ledger)
    assert arrivals[1] - arrivals[0] >= 0.8 > longest_wait_of_its_own


# Errors that no question survives, and those that only this one meets


@pytest.mark.parametrize(
    ("status", "advice"),
    [
        (401, r"refuses the key \(401\); check MY_KEY"),
        (403, r"refuses the key \(403\); check MY_KEY"),
        (404, r"404; check llm\.endpoint\.base_url and llm\.endpoint\.model \(m\)"),
    ],
)
def test_an_endpoint_that_refuses_everything_is_told_with_advice(
    stub: Stub, ledger: Ledger, monkeypatch: pytest.MonkeyPatch, status: int, advice: str
) -> None:
    monkeypatch.setenv("MY_KEY", "sk-very-secret")
    stub.behave = lambda body: with_json({"error": {"message": "sk-very-secret is wrong"}}, status)
    with pytest.raises(EndpointError, match=f"^{stub.url}: {advice}$"):
        ask(llm_at(stub.url, api_key_env="MY_KEY"), ledger)
    assert ledger.stats() == []


def test_nobody_listening_is_told_with_advice(ledger: Ledger) -> None:
    url = unused_url()
    with pytest.raises(EndpointError, match=rf"^{url}: nobody answers \(.+\); start the server or mend llm\.endpoint\.base_url$"):
        ask(llm_at(url), ledger)


@pytest.mark.parametrize("status", [400, 422])
def test_a_request_the_server_cannot_take_fails_alone_and_quotes_the_server(stub: Stub, ledger: Ledger, status: int) -> None:
    stub.behave = lambda body: with_json({"error": {"message": "prompt too long,\nshorten it"}}, status)
    with pytest.raises(ArenaError, match=f"^{stub.url}: {status} .*prompt too long,.*shorten it") as error:
        ask(llm_at(stub.url), ledger)
    assert not isinstance(error.value, EndpointError)
    assert "\n" not in str(error.value)


def test_a_long_complaint_of_the_server_is_cut(stub: Stub, ledger: Ledger) -> None:
    stub.behave = lambda body: with_json({"error": {"message": "no " * 1000}}, 400)
    with pytest.raises(ArenaError) as error:
        ask(llm_at(stub.url), ledger)
    assert len(str(error.value)) <= len(f"{stub.url}: 400 ") + 300


def test_any_other_error_of_the_client_becomes_one_line() -> None:
    error = explain(openai.OpenAIError("first\nsecond"), llm_at("http://server/v1").endpoint)
    assert type(error) is ArenaError
    assert str(error) == "http://server/v1: first second"
