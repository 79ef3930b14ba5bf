"""Keys of every service that takes one: what is sent of the environment's, and that none is ever shown or kept."""

import asyncio
import json
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest

from rag_arena.embedders.http import Http as Embedder
from rag_arena.errors import ArenaError, EndpointError
from rag_arena.llm.client import ChatModel, connect
from rag_arena.llm.ledger import Ledger
from rag_arena.llm.probe import Probe
from rag_arena.params import Endpoint, HttpEmbedder, HttpReranker, Llm, Metrics, Price, Store, Transport, Web, section
from rag_arena.rerankers.http import Http as Reranker
from rag_arena.retrieval import server
from rag_arena.retrieval.web import WebSearch
from rag_arena.scoring.judge import Judge
from rag_arena.sources import hub
from tests.servedstub import served_embedder, served_reranker
from tests.stub import listening

KEY = 'sk-Zq/7"a-key-of-someone=='
TRANSPORT = Transport(max_concurrency=1, deadline_s=5.0, max_retries=0)
METRICS = Metrics(questions=1, rating_tokens=9, claims_tokens=9, verdict_tokens=9)


class Echo:
    """A server that answers with the key it was sent, in whatever `form` writes."""

    url = ""
    form: Callable[[str], bytes]
    seen: list[str]


@pytest.fixture
def echo(monkeypatch: pytest.MonkeyPatch) -> Iterator[Echo]:
    monkeypatch.setattr(server, "_PAUSES_S", ())
    monkeypatch.setenv("MY_KEY", KEY)
    echo = Echo()
    echo.seen = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("content-length") or 0))
            sent = self.headers["authorization"] or f"Bearer {self.headers['api-key']}"
            echo.seen.append(sent.removeprefix("Bearer "))
            self.wfile.write(echo.form(echo.seen[-1]))

        def do_GET(self) -> None:
            self.do_POST()

        def log_message(self, *_: Any) -> None:
            pass

    with listening(Handler) as echo.url:
        yield echo


def llm(url: str) -> Llm:
    endpoint = Endpoint(kind="openai", model="m", base_url=f"{url}/v1", api_key_env="MY_KEY")
    return Llm(endpoint=endpoint, transport=TRANSPORT, price=Price(input=0.0, output=0.0))


def connected(url: str, ledger: Ledger, work: Callable[[Any], Any]) -> Any:
    async def done() -> Any:
        async with connect(llm(url), ledger) as client:
            return await work(client)

    return asyncio.run(done())


def chat(url: str, ledger: Ledger) -> Any:
    return connected(url, ledger, lambda client: ChatModel(client, llm(url).endpoint).complete("generate", "why?", 9))


def judge(url: str, ledger: Ledger) -> Any:
    return connected(url, ledger, lambda client: Judge(client, llm(url).endpoint, METRICS).accuracy("q", "a", "b"))


def doctor(url: str, _: Ledger) -> Any:
    return Probe(llm(url), "llm").reply()


def embedder(url: str, _: Ledger) -> Any:
    settings = section(HttpEmbedder, served_embedder(f"{url}/v1", api_key_env="MY_KEY"), "params.yaml", "embedder.")
    return Embedder(settings, TRANSPORT).dense("text")


def reranker(url: str, _: Ledger) -> Any:
    settings = section(HttpReranker, served_reranker(url, api_key_env="MY_KEY"), "params.yaml", "reranker.")
    return Reranker(settings, TRANSPORT).scores("question", ["text"])


def web(url: str, ledger: Ledger) -> Any:
    return asyncio.run(
        WebSearch(ledger, TRANSPORT).search("search", "searxng", Web(base_url=url, api_key_env="MY_KEY"), "river", 1)
    )


def store(url: str, _: Ledger) -> Any:
    return server.connect(Store(backend="server", url=url, api_key_env="MY_KEY"))


every_service = pytest.mark.parametrize("service", [chat, judge, doctor, embedder, reranker, web, store])


def told(service: Callable[[str, Ledger], Any], url: str, ledger: Ledger) -> str:
    """What a service's failure says: its error, or what a judgement records of it."""
    try:
        return str(service(url, ledger).error)
    except ArenaError as error:
        return str(error)


def reply(status: int, body: str) -> bytes:
    return f"HTTP/1.1 {status} Said\r\ncontent-length: {len(body)}\r\ncontent-type: application/json\r\n\r\n{body}".encode()


FORMS = {
    "in an error": lambda key: reply(400, json.dumps({"error": {"message": f"{key} is wrong"}})),
    "where an error is cut": lambda key: reply(500, json.dumps({"error": {"message": "x" * 270 + key}})),
    "where a body is cut": lambda key: reply(418, "x" * 100 + key),
    "with its slash escaped": lambda key: reply(400, json.dumps({"error": {"message": key}}).replace("/", r"\/")),
    "in place of a reply": lambda key: reply(200, f"Hello, {key}!"),
    "in a reply of another shape": lambda key: reply(200, json.dumps({key: [key]})),
    "in place of a status": lambda key: f"Authorization: {key}\r\n\r\n".encode(),
}


@every_service
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_a_key_that_a_server_sends_back_is_not_shown(
    echo: Echo, ledger: Ledger, service: Callable[..., Any], form: Callable[[str], bytes]
) -> None:
    echo.form = form
    line = told(service, echo.url, ledger)
    assert echo.seen[0] == KEY
    assert echo.url in line
    assert "\n" not in line
    assert "sk-" not in line
    assert "someone" not in line


@every_service
@pytest.mark.parametrize("value", [f"{KEY}\n", f" {KEY}\t", f"\r\n{KEY}\r\n"])
def test_white_space_around_a_key_is_not_part_of_it(
    echo: Echo, ledger: Ledger, monkeypatch: pytest.MonkeyPatch, service: Callable[..., Any], value: str
) -> None:
    monkeypatch.setenv("MY_KEY", value)
    echo.form = FORMS["in an error"]
    told(service, echo.url, ledger)
    assert echo.seen[0] == KEY


@every_service
@pytest.mark.parametrize("value", ["SECRET-schlüssel", "SECRET\nof two lines", "SECRET\x00", "SECRET\x7f", "SECRET 🔑"])
def test_a_key_that_no_header_can_carry_is_refused_by_its_variable(
    echo: Echo, ledger: Ledger, monkeypatch: pytest.MonkeyPatch, service: Callable[..., Any], value: str
) -> None:
    monkeypatch.setattr("os.environ", {"MY_KEY": value})  # the real one takes no NUL
    with pytest.raises(EndpointError) as caught:
        service(echo.url, ledger)
    assert str(caught.value).startswith(echo.url)
    assert str(caught.value).endswith(": MY_KEY holds a line break or a character outside ASCII; set it anew")
    assert echo.seen == []


@every_service
@pytest.mark.parametrize("value", ["", " \n"])
def test_a_key_that_is_empty_is_told_by_its_variable(
    echo: Echo, ledger: Ledger, monkeypatch: pytest.MonkeyPatch, service: Callable[..., Any], value: str
) -> None:
    monkeypatch.setenv("MY_KEY", value)
    with pytest.raises(EndpointError, match=": needs a key; set MY_KEY"):
        service(echo.url, ledger)
    assert echo.seen == []


def test_a_token_of_the_hub_that_no_header_can_carry_is_refused_by_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_schlüssel")
    with pytest.raises(EndpointError, match=r"^owner/name \(c, main\): HF_TOKEN holds a line break or a character outside ASCII"):
        hub.find("owner/name", "c", "main")


def test_a_contact_that_no_header_can_carry_is_refused_by_its_variable(
    echo: Echo, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARENA_CONTACT", "jürgen@example.org")
    with pytest.raises(
        EndpointError, match=r"/search: ARENA_CONTACT holds a line break or a character outside ASCII; set it anew$"
    ):
        web(echo.url, ledger)
