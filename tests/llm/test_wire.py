"""Every server's replies, in its own shape, through the client as conf/llm configures it for that server."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from functools import cache
from typing import Any

import pytest
import yaml

from rag_arena.compose import compose
from rag_arena.errors import ArenaError, EndpointError
from rag_arena.llm.client import ChatModel, connect
from rag_arena.llm.ledger import Ledger
from rag_arena.llm.probe import Probe
from rag_arena.llm.verdicts import Verdict, classify
from rag_arena.params import Llm, validate
from tests.conftest import ROOT
from tests.stub import Answer, Body, Stub, with_json
from tests.wire import (
    GROQ,
    LLAMACPP,
    NO_CREDIT,
    NO_LOGPROBS,
    NO_SCHEMA,
    OLLAMA,
    OPENAI,
    REASONING,
    SERVERS,
    TOO_MANY_LOGPROBS,
    VLLM,
    Server,
)

BUSY = [server for server in SERVERS.values() if server.busy]
PROMPT = "Is Paris in France?"


@cache
def profile(option: str, model: str) -> Llm:
    """The `llm` section as an option of conf/llm sets it."""
    return validate(yaml.safe_load(compose(ROOT / "conf", [f"llm={option}", f"llm.endpoint.model={model}"])), "conf").llm


@pytest.fixture
def configured(stub: Stub, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Llm]:
    """A server's own profile, pointed at the stub, which then speaks as that server."""

    def configure(server: Server, **endpoint: Any) -> Llm:
        stub.behave = server.behaviour(stub)
        llm = profile(server.option, server.model)
        if server.key:
            monkeypatch.setenv(llm.endpoint.api_key_env, server.key)
        changes = {"base_url": stub.url, **endpoint}
        transport = llm.transport.model_copy(update={"max_retries": 1})
        return llm.model_copy(update={"endpoint": llm.endpoint.model_copy(update=changes), "transport": transport})

    return configure


def within(llm: Llm, ledger: Ledger, work: Callable[[ChatModel], Awaitable[Any]]) -> Any:
    async def connected() -> Any:
        async with connect(llm, ledger) as client:
            return await work(ChatModel(client, llm.endpoint))

    return asyncio.run(connected())


def asked(llm: Llm, ledger: Ledger) -> str:
    return str(within(llm, ledger, lambda model: model.complete("generate", PROMPT, 16)).text)


def verdict(llm: Llm, ledger: Ledger) -> Verdict:
    found: Verdict = within(llm, ledger, lambda model: classify(model, "grade", PROMPT, ("Yes", "No")))
    return found


def failure(llm: Llm, ledger: Ledger) -> ArenaError:
    with pytest.raises(ArenaError) as raised:
        asked(llm, ledger)
    return raised.value


# Replies


@pytest.mark.parametrize("server", SERVERS.values(), ids=SERVERS)
def test_a_reply_is_read_and_the_request_has_the_fields_that_the_server_takes(
    configured: Callable[..., Llm], stub: Stub, ledger: Ledger, server: Server
) -> None:
    assert asked(configured(server), ledger) == "1, 2, 3, 4, 5,"
    limit = "max_completion_tokens" if server in (OPENAI, REASONING, GROQ) else "max_tokens"
    sampling = {} if server is REASONING else {"temperature": 0.0}
    message = {"role": "user", "content": PROMPT}
    assert stub.requests == [{"model": server.model, "messages": [message], limit: 16, **sampling}]


@pytest.mark.parametrize("server", [OPENAI, VLLM, OLLAMA, LLAMACPP], ids=lambda server: server.option)
def test_a_verdict_is_read_from_log_probabilities(
    configured: Callable[..., Llm], stub: Stub, ledger: Ledger, server: Server
) -> None:
    found = verdict(configured(server), ledger)
    assert (found.source, len(stub.requests)) == ("logprobs", 1)
    assert found.probabilities["Yes"] == pytest.approx(0.75 / (0.75 + 0.125))
    assert found.outside == pytest.approx(1 - (0.75 + 0.125))


@pytest.mark.parametrize("server", [REASONING, GROQ], ids=lambda server: server.option)
def test_a_verdict_is_asked_for_in_json_alone_where_there_are_no_log_probabilities(
    configured: Callable[..., Llm], stub: Stub, ledger: Ledger, server: Server
) -> None:
    found = verdict(configured(server), ledger)
    assert (found.source, found.probabilities, len(stub.requests)) == ("schema", {"Yes": 1.0, "No": 0.0}, 1)


def test_a_json_object_is_asked_for_in_a_prompt_that_mentions_json(
    configured: Callable[..., Llm], stub: Stub, ledger: Ledger
) -> None:
    verdict(configured(GROQ), ledger)
    assert stub.requests[0]["response_format"] == {"type": "json_object"}
    assert stub.prompts == [f'{PROMPT}\nReply in JSON: {{"verdict": "Yes" or "No"}}']


@pytest.mark.parametrize("server", [VLLM, LLAMACPP], ids=lambda server: server.option)
def test_a_raw_completion_gives_every_tokens_alternatives(
    configured: Callable[..., Llm], stub: Stub, ledger: Ledger, server: Server
) -> None:
    reply = within(configured(server), ledger, lambda model: model.continue_text("generate", "Paris", 1, logprobs=2))
    assert (reply.text, set(reply.tokens[0].alternatives)) == (" Yes", {" Yes", " No"})


# Refusals


@pytest.mark.parametrize("server", SERVERS.values(), ids=SERVERS)
def test_a_wrong_key_is_told_by_its_variable(configured: Callable[..., Llm], stub: Stub, ledger: Ledger, server: Server) -> None:
    llm = configured(server)
    stub.behave = lambda _: server.wrong_key
    variable = llm.endpoint.api_key_env
    mend = (
        f"refuses the key (401); check {variable}"
        if variable
        else ("wants a key (401); set llm.endpoint.api_key_env to the variable that holds it")
    )
    assert str(failure(llm, ledger)) == f"{stub.url}: {mend}"


@pytest.mark.parametrize("server", [s for s in SERVERS.values() if s.unknown_model], ids=lambda server: server.option)
def test_an_unknown_model_is_told(configured: Callable[..., Llm], stub: Stub, ledger: Ledger, server: Server) -> None:
    error = failure(configured(server, model="llama4"), ledger)
    assert isinstance(error, EndpointError)
    assert str(error) == f"{stub.url}: 404; check llm.endpoint.base_url and llm.endpoint.model (llama4)"


@pytest.mark.parametrize("server", SERVERS.values(), ids=SERVERS)
def test_too_long_a_prompt_fails_alone(configured: Callable[..., Llm], stub: Stub, ledger: Ledger, server: Server) -> None:
    llm = configured(server)
    stub.behave = lambda _: server.too_long
    error = failure(llm, ledger)
    assert not isinstance(error, EndpointError)
    assert str(error).endswith("; shorten the question, lower k, or cut documents (dataset.chunking)")


@pytest.mark.parametrize("server", BUSY, ids=lambda server: server.option)
def test_a_busy_server_is_asked_again_after_the_pause_that_it_names(
    configured: Callable[..., Llm], stub: Stub, ledger: Ledger, server: Server
) -> None:
    llm, well = configured(server), server.behaviour(stub)
    stub.behave = lambda body: (server.busy or Answer()) if len(stub.requests) == 1 else well(body)
    start = time.perf_counter()
    assert asked(llm, ledger) == "1, 2, 3, 4, 5,"
    named = {"openai": 0.12, "openai_reasoning": 0.12, "groq": 1.0}.get(server.option, 0.0)
    assert time.perf_counter() - start >= named


def test_spent_credit_stops_everything(configured: Callable[..., Llm], stub: Stub, ledger: Ledger) -> None:
    llm = configured(OPENAI)
    stub.behave = lambda _: NO_CREDIT
    error = failure(llm, ledger)
    assert isinstance(error, EndpointError)
    assert str(error).endswith("check your plan and billing details.; buy credit there or choose another endpoint")


# A profile against a server that it is not meant for

UNFIT: dict[str, tuple[Server, dict[str, Any], str]] = {
    "temperature": (REASONING, {"temperature": 0.0}, "set llm.endpoint.temperature to null"),
    "max_tokens": (REASONING, {"max_tokens_key": "max_tokens"}, "set llm.endpoint.max_tokens_key to max_completion_tokens"),
}


@pytest.mark.parametrize(("server", "endpoint", "mend"), UNFIT.values(), ids=UNFIT)
def test_a_field_that_is_refused_is_told_with_the_key_to_set(
    configured: Callable[..., Llm], ledger: Ledger, server: Server, endpoint: dict[str, Any], mend: str
) -> None:
    error = failure(configured(server, **endpoint), ledger)
    assert isinstance(error, EndpointError)
    assert str(error).endswith(f"; {mend}")


@pytest.mark.parametrize(
    ("server", "answer"),
    [(GROQ, GROQ.refused["logprobs"]), (OPENAI, NO_LOGPROBS), (VLLM, TOO_MANY_LOGPROBS)],
    ids=["Groq's 400", "OpenAI's 403", "vLLM's limit"],
)
def test_refused_log_probabilities_are_not_taken_for_a_refused_key(
    configured: Callable[..., Llm], stub: Stub, ledger: Ledger, server: Server, answer: Answer
) -> None:
    llm = configured(server, top_logprobs=20)
    stub.behave = lambda _: answer
    with pytest.raises(EndpointError, match=r"; set llm\.endpoint\.top_logprobs to what it allows, 0 for none$"):
        verdict(llm, ledger)


# The probe


def test_a_key_that_a_server_echoes_is_not_shown(configured: Callable[..., Llm], stub: Stub) -> None:
    llm = configured(GROQ)
    stub.behave = lambda _: with_json({"error": {"message": f"Bearer {GROQ.key} may not ask this"}}, 400)
    assert probed(llm, "reply") == [f"{stub.url}: 400 Bearer *** may not ask this"]


def probed(llm: Llm, *questions: str) -> list[str]:
    """What the probe says of each question, well or ill."""
    said = []
    for question in questions or ("reply", "logprobs", "structure", "context"):
        try:
            said.append(getattr(Probe(llm, "llm"), question)())
        except ArenaError as error:
            said.append(str(error))
    return said


ABLE = {
    "openai": ("the 20 likeliest tokens; verdicts are probabilities", "json_schema is obeyed", "the server does not tell"),
    "openai_reasoning": (
        "not asked for; verdicts are asked for in JSON, with probability 0 or 1",
        "json_schema is obeyed",
        "the server does not tell",
    ),
    "groq": ("not asked for; verdicts are asked for in JSON, with probability 0 or 1", "json_object is obeyed", "131072 tokens"),
    "vllm": ("the 20 likeliest tokens; verdicts are probabilities", "json_schema is obeyed", "4096 tokens"),
    "ollama": (
        "the 20 likeliest tokens; verdicts are probabilities",
        "json_schema is obeyed",
        "4096 tokens; Ollama cuts longer prompts silently, OLLAMA_CONTEXT_LENGTH sets the length",
    ),
    "llamacpp": ("the 20 likeliest tokens; verdicts are probabilities", "json_schema is obeyed", "8192 tokens in each slot"),
}


@pytest.mark.parametrize("server", SERVERS.values(), ids=SERVERS)
def test_each_servers_own_profile_is_found_to_fit(configured: Callable[..., Llm], stub: Stub, server: Server) -> None:
    assert probed(configured(server)) == [f"{server.model} at {stub.url} answers", *ABLE[server.option]]


def test_the_probe_leaves_nothing_in_the_ledger(configured: Callable[..., Llm], ledger: Ledger) -> None:
    probed(configured(VLLM))
    assert ledger.stats() == []


def test_raw_completions_are_found_where_they_are(configured: Callable[..., Llm], stub: Stub) -> None:
    for server in (VLLM, LLAMACPP):
        assert probed(configured(server), "raw") == ["/completions gives the 20 likeliest tokens"]
    instead = "set strategy.self_rag.variant to prompted, or serve the checkpoint with vLLM"
    assert probed(configured(GROQ, top_logprobs=20), "raw") == [f"{stub.url}: has no /completions; {instead}"]
    assert probed(configured(OLLAMA), "raw") == [f"{stub.url}: its /completions gives no likeliest tokens; {instead}"]


def without(field: str, server: Server, stub: Stub) -> Callable[[Body], Answer]:
    """The server, had it never heard of a field."""
    well = server.behaviour(stub)
    return lambda body: well({name: value for name, value in body.items() if name != field})


def test_a_server_without_log_probabilities_is_told_with_what_a_run_would_do(configured: Callable[..., Llm], stub: Stub) -> None:
    llm = configured(OLLAMA)
    stub.behave = without("logprobs", OLLAMA, stub)
    then = "then verdicts are asked for in JSON, with probability 0 or 1; until then each costs a request more"
    assert probed(llm, "logprobs") == [f"{stub.url}: gives none; set llm.endpoint.top_logprobs to 0: {then}"]


def test_fewer_alternatives_than_asked_for_are_told(configured: Callable[..., Llm], stub: Stub) -> None:
    llm, well = configured(LLAMACPP), LLAMACPP.behaviour(stub)
    stub.behave = lambda body: well({**body, "top_logprobs": 5})
    expected = f"{stub.url}: gives 5 likeliest tokens of 20; set llm.endpoint.top_logprobs to 5"
    assert probed(llm, "logprobs") == [expected]


def test_a_schema_that_is_ignored_is_told_with_the_key_to_set(configured: Callable[..., Llm], stub: Stub) -> None:
    llm = configured(VLLM)
    stub.behave = without("response_format", VLLM, stub)
    mend = "in spite of json_schema; set llm.endpoint.structured_output to json_object or none"
    assert probed(llm, "structure") == [f"{stub.url}: replies '1, 2, 3, 4, 5,' {mend}"]


def test_a_schema_that_is_refused_is_told_with_the_key_to_set(configured: Callable[..., Llm], stub: Stub) -> None:
    llm = configured(GROQ, structured_output="json_schema")
    stub.behave = lambda _: NO_SCHEMA
    assert probed(llm, "structure")[0].endswith("; set llm.endpoint.structured_output to json_object or none")


def test_a_limit_that_is_not_heeded_is_told_by_the_key_that_names_it(configured: Callable[..., Llm], stub: Stub) -> None:
    llm = configured(OLLAMA, max_tokens_key="max_completion_tokens")
    chatty = OLLAMA.chat("1, 2, 3, and so on to fifty", None)
    chatty["usage"]["completion_tokens"] = 150
    stub.behave = lambda _: with_json(chatty)
    expected = f"{stub.url}: wrote 150 tokens where 32 were the most; set llm.endpoint.max_tokens_key to max_tokens"
    assert probed(llm, "reply") == [expected]


def test_an_absent_model_is_told_with_the_nearest_that_are_there(configured: Callable[..., Llm], stub: Stub) -> None:
    nearest = "gpt-4o-mini, gpt-4.1-mini, gpt-4o, o4-mini, text-embedding-3-small"
    expected = f"{stub.url}: has no model 'gpt-4o-mni'; set llm.endpoint.model; the nearest it has: {nearest}"
    assert probed(configured(OPENAI, model="gpt-4o-mni"), "reply") == [expected]


def test_a_list_of_models_that_holds_something_else_is_passed_over(configured: Callable[..., Llm], stub: Stub) -> None:
    llm, well = configured(VLLM), VLLM.behaviour(stub)
    stub.behave = lambda body: with_json({"object": "list", "data": ["a", {"name": "b"}]}) if "path" in body else well(body)
    assert probed(llm, "context") == ["the server does not tell"]


def test_a_reply_that_does_not_count_its_tokens_is_an_answer(configured: Callable[..., Llm], stub: Stub) -> None:
    llm = configured(VLLM)
    stub.behave = lambda _: with_json({**VLLM.chat("1, 2", None), "usage": {"prompt_tokens": 14, "total_tokens": 14}})
    assert probed(llm, "reply") == [f"{VLLM.model} at {stub.url} answers"]


def test_an_url_that_lacks_its_v1_is_told(configured: Callable[..., Llm], stub: Stub) -> None:
    root = stub.url.removesuffix("/v1")
    llm, well = configured(VLLM, base_url=root), VLLM.behaviour(stub)
    lost = Answer(404, b'{"detail":"Not Found"}', {"content-type": "application/json"})
    stub.behave = lambda body: well(body) if "path" in body else lost
    assert probed(llm, "reply") == [f"{root}: 404; set llm.endpoint.base_url to {root}/v1"]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (
            "<think>Paris is",
            "nothing but thoughts in 32 tokens; raise llm.endpoint.verdict_tokens, and other limits of replies as well",
        ),
        ("Perhaps.", "replies 'Perhaps.' in spite of none; set llm.endpoint.structured_output to json_schema or json_object"),
    ],
)
def test_a_verdict_in_words_that_cannot_be_read_is_told(configured: Callable[..., Llm], stub: Stub, text: str, what: str) -> None:
    llm = configured(VLLM, structured_output="none")
    stub.behave = lambda _: with_json(VLLM.chat(text, None))
    assert probed(llm, "structure") == [f"{stub.url}: {what}"]
