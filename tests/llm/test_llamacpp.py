"""llama.cpp's own HTTP server, which the embedded engine runs on a loopback port, asked as any other server."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import httpx2
import pytest
import xllamacpp
import yaml

from rag_arena.compose import compose
from rag_arena.errors import ArenaError, EndpointError
from rag_arena.llm import embedded
from rag_arena.llm.client import ChatModel, connect
from rag_arena.llm.ledger import Ledger
from rag_arena.llm.probe import Probe
from rag_arena.llm.verdicts import classify
from rag_arena.params import Llm, Metrics, validate
from rag_arena.scoring.judge import RATINGS, Accuracy, Judge
from tests.conftest import ROOT
from tests.stub import Body
from tests.wire import LLAMACPP

KEY, SLOTS, CONTEXT = "sk-of-this-test", 2, 2048


@pytest.fixture(scope="module")
def served() -> Iterator[Llm]:
    """The `llm` section that llm=llamacpp sets for a running server with a key, two slots and 2,048 tokens of context."""
    params = xllamacpp.CommonParams()
    params.model.path = str(embedded.model_path())
    params.n_parallel, params.n_ctx, params.verbosity, params.api_keys = SLOTS, CONTEXT, -1, [KEY]
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    server = xllamacpp.Server(params)
    endpoint = {"model": "smollm2", "base_url": f"{server.listening_address}/v1", "api_key_env": "LLAMA_API_KEY"}
    chosen = [f"llm.endpoint.{key}={value}" for key, value in endpoint.items()]
    yield validate(yaml.safe_load(compose(ROOT / "conf", ["llm=llamacpp", *chosen])), "conf").llm
    del server


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLAMA_API_KEY", KEY)


def within(llm: Llm, ledger: Ledger, work: Callable[[ChatModel], Awaitable[Any]]) -> Any:
    async def connected() -> Any:
        async with connect(llm, ledger) as client:
            return await work(ChatModel(client, llm.endpoint))

    return asyncio.run(connected())


def sent(llm: Llm, path: str, body: Body) -> Body:
    """What the server replies, as it comes."""
    authorised = {"authorization": f"Bearer {os.environ['LLAMA_API_KEY']}"}
    reply: Body = httpx2.post(f"{llm.endpoint.base_url}/{path}", json=body, headers=authorised, timeout=60).json()
    return reply


def shape(value: Any) -> Any:
    """The keys of a reply at every level; of a list its first entry's."""
    if isinstance(value, dict):
        return {key: shape(inner) for key, inner in value.items()}
    return [shape(value[0])] if isinstance(value, list) and value else type(value).__name__


def assert_within(part: Any, whole: Any) -> None:
    """Every key of one shape stands in the other, with a value of the same kind."""
    if isinstance(part, dict):
        for key, inner in part.items():
            assert key in whole
            assert_within(inner, whole[key])
    elif isinstance(part, list):
        assert_within(part[0], whole[0])
    else:
        assert part == whole or {part, whole} == {"int", "float"}


QUESTION = [{"role": "user", "content": "Is Paris in France? Answer Yes or No."}]


def test_the_replies_that_stand_in_for_this_server_in_other_tests_have_its_shape(served: Llm) -> None:
    asked = {"model": "m", "messages": QUESTION, "max_tokens": 1, "logprobs": True, "top_logprobs": 2}
    stand_in = LLAMACPP.chat(
        " Yes",
        {
            "content": [
                {
                    "token": " Yes",
                    "logprob": -0.1,
                    "bytes": [32],
                    "top_logprobs": [{"token": " Yes", "logprob": -0.1, "bytes": [32]}],
                }
            ]
        },
    )
    assert_within(shape(stand_in), shape(sent(served, "chat/completions", asked)))
    assert LLAMACPP.raw is not None
    raw = sent(served, "completions", {"prompt": "Paris", "max_tokens": 1, "logprobs": 2})
    assert_within(shape(LLAMACPP.raw(2)), shape(raw))


def test_the_profile_is_found_to_fit(served: Llm) -> None:
    probe = Probe(served, "llm")
    assert probe.reply() == f"smollm2 at {served.endpoint.base_url} answers"
    assert probe.logprobs() == "the 20 likeliest tokens; verdicts are probabilities"
    assert probe.structure() == "json_schema is obeyed"
    assert probe.raw() == "/completions gives the 20 likeliest tokens"
    called = embedded.model_path()
    assert probe.context() == f"{CONTEXT // SLOTS} tokens in each slot (the model is called {called} there)"


def test_a_verdict_is_a_probability(served: Llm, ledger: Ledger) -> None:
    verdict = within(served, ledger, lambda model: classify(model, "grade", QUESTION[0]["content"], ("Yes", "No")))
    assert verdict.source == "logprobs"
    assert sum(verdict.probabilities.values()) == pytest.approx(1)
    assert 0 < verdict.outside < 1


def test_a_judge_gets_ratings_by_schema(served: Llm, ledger: Ledger) -> None:
    metrics = Metrics(questions=1, rating_tokens=16, claims_tokens=64, verdict_tokens=64)

    async def judged(model: ChatModel) -> Accuracy:
        return await Judge(model.client, served.endpoint, metrics).accuracy("Where is Paris?", "In France.", "France")

    found = within(served, ledger, judged)
    assert {found.first, found.second} <= set(RATINGS)
    assert found.error is None


def test_a_raw_completion_gives_every_tokens_alternatives(served: Llm, ledger: Ledger) -> None:
    reply = within(served, ledger, lambda model: model.continue_text("generate", "Paris is", 3, logprobs=5))
    assert "".join(token.text for token in reply.tokens) == reply.text
    assert all(len(token.alternatives) == 5 and token.text in token.alternatives for token in reply.tokens)


def test_a_wrong_key_is_told(served: Llm, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLAMA_API_KEY", "wrong")
    with pytest.raises(EndpointError, match=r"/v1: refuses the key \(401\); check LLAMA_API_KEY$"):
        within(served, ledger, lambda model: model.ask("generate", "why?", 3))


def test_too_long_a_prompt_fails_alone(served: Llm, ledger: Ledger) -> None:
    with pytest.raises(ArenaError, match=r"exceeds the available context size \(1024 tokens\).*; shorten the question") as error:
        within(served, ledger, lambda model: model.ask("generate", "word " * 2000, 3))
    assert not isinstance(error.value, EndpointError)
