"""Search outside the corpus, over real sockets."""

import asyncio
import json
from pathlib import Path

import pytest

from rag_arena.errors import ArenaError, EndpointError
from rag_arena.llm.ledger import Ledger
from rag_arena.metering import Meter, metered
from rag_arena.params import Transport, Web, section
from rag_arena.records import Document
from rag_arena.retrieval.web import WebSearch
from tests.stub import Answer, Stub
from tests.webstub import PAGES, both, mediawiki, searxng, sends

DOCUMENTS = [Document(f"web:{url}", title, text) for url, title, text in PAGES]
KINDS = ("searxng", "wikipedia")
PATHS = {"searxng": "", "wikipedia": "/w/api.php"}


@pytest.fixture(autouse=True)
def _speaks_both(stub: Stub) -> None:
    stub.behave = both


def root(stub: Stub) -> str:
    return stub.url.removesuffix("/v1")


def ask(
    ledger: Ledger, url: str, kind: str = "searxng", query: str = "Rhine", k: int = 3, retries: int = 0, key: str = ""
) -> tuple[list[Document], Meter]:
    web = Web(base_url=url + PATHS[kind], api_key_env=key)
    transport = Transport(max_concurrency=2, deadline_s=0.5, max_retries=retries)
    with metered() as meter:
        found = asyncio.run(WebSearch(ledger, transport).search("search", kind, web, query, k))
    return found, meter


@pytest.mark.parametrize("kind", KINDS)
def test_documents_come_in_the_engines_order_named_by_their_address(stub: Stub, ledger: Ledger, kind: str) -> None:
    assert ask(ledger, root(stub), kind)[0] == DOCUMENTS


@pytest.mark.parametrize("kind", KINDS)
def test_at_most_k_documents_come_back(stub: Stub, ledger: Ledger, kind: str) -> None:
    assert ask(ledger, root(stub), kind, k=2)[0] == DOCUMENTS[:2]


def test_searxng_is_asked_for_json(stub: Stub, ledger: Ledger) -> None:
    ask(ledger, root(stub), query="Rhine & Elbe?")
    assert stub.requests == [{"path": "/search", "q": "Rhine & Elbe?", "format": "json"}]


def test_mediawiki_is_asked_for_plain_introductions_and_for_no_more_than_it_gives(stub: Stub, ledger: Ledger) -> None:
    ask(ledger, root(stub), "wikipedia", k=50)
    [asked] = stub.requests
    assert (asked["gsrsearch"], asked["gsrlimit"], asked["formatversion"]) == ("Rhine", "20", "2")
    assert (asked["prop"], asked["exintro"], asked["explaintext"], asked["inprop"]) == ("extracts|info", "1", "1", "url")


@pytest.mark.parametrize("kind", KINDS)
def test_the_client_names_itself(stub: Stub, ledger: Ledger, kind: str) -> None:
    ask(ledger, root(stub), kind)
    assert stub.headers[0]["user-agent"].startswith("rag-arena/")


@pytest.mark.parametrize(("kind", "nothing"), [("searxng", searxng("?", [])), ("wikipedia", mediawiki([]))])
def test_nothing_found_is_an_answer(stub: Stub, ledger: Ledger, kind: str, nothing: Answer) -> None:
    stub.behave = lambda body: nothing
    assert ask(ledger, root(stub), kind)[0] == ask(ledger, root(stub), kind)[0] == []
    assert len(stub.requests) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_that_comes_twice_or_without_text_counts_once_or_not_at_all(stub: Stub, ledger: Ledger, kind: str) -> None:
    pages = [PAGES[0], ("https://empty.example", "Empty", " "), PAGES[1], PAGES[0]]
    stub.behave = lambda body: searxng("?", pages) if kind == "searxng" else mediawiki(pages)
    assert ask(ledger, root(stub), kind)[0] == DOCUMENTS[:2]


# Recorded and replayed


@pytest.mark.parametrize("kind", KINDS)
def test_a_search_is_sent_once_and_replayed_without_a_server(stub: Stub, ledger: Ledger, kind: str) -> None:
    first, live = ask(ledger, root(stub), kind)
    stub.behave = lambda body: sends({}, 500)
    again, replay = ask(ledger, root(stub), kind)
    assert first == again
    assert len(stub.requests) == 1
    assert [lookup.replayed for meter in (live, replay) for lookup in meter.lookups] == [False, True]


def test_a_search_counts_as_searching_and_not_as_a_model_call(stub: Stub, ledger: Ledger) -> None:
    _, live = ask(ledger, root(stub))
    _, replay = ask(ledger, root(stub))
    assert (live.calls, live.lookups[0].node, live.lookups[0].tokens_in) == ([], "search", 0)
    assert live.search_s == replay.search_s == live.lookups[0].latency_s > 0


def test_another_address_another_engine_or_another_query_is_another_search(stub: Stub, ledger: Ledger) -> None:
    ask(ledger, root(stub))
    ask(ledger, root(stub) + "/")
    assert len(stub.requests) == 1, "a final slash names the same server"
    ask(ledger, root(stub), query="Elbe")
    ask(ledger, root(stub), "wikipedia")
    ask(ledger, root(stub).replace("127.0.0.1", "localhost"))
    assert len(stub.requests) == 1 + 3


def test_half_an_emoji_in_a_snippet_can_be_kept(stub: Stub, ledger: Ledger) -> None:
    stub.behave = lambda body: searxng("?", [("https://a.example", "A", "a river \ud83d")])
    assert ask(ledger, root(stub))[0] == ask(ledger, root(stub))[0] == [Document("web:https://a.example", "A", "a river ?")]


# Refusals


@pytest.mark.parametrize(
    ("kind", "answer", "said"),
    [
        ("searxng", sends({}, 403), r"/search: 403; allow the format json in the instance's settings\.yml"),
        ("wikipedia", sends({}, 401), r"/w/api\.php: 401; check the key in web\.api_key_env"),
        ("searxng", sends({}, 404), r"/search: 404; mend web\.base_url"),
        ("searxng", Answer(302, b"", {"location": "https://elsewhere.example"}), r"/search: 302; mend web\.base_url"),
    ],
)
def test_an_engine_that_refuses_every_request_stops_the_cell(
    stub: Stub, ledger: Ledger, kind: str, answer: Answer, said: str
) -> None:
    stub.behave = lambda body: answer
    with pytest.raises(EndpointError, match=f"^{root(stub)}{said}"):
        ask(ledger, root(stub), kind)


def test_nobody_listening_names_the_address(ledger: Ledger) -> None:
    with pytest.raises(EndpointError, match=r"^http://127\.0\.0\.1:9/search: nobody answers \(.+\); start the server or mend"):
        ask(ledger, "http://127.0.0.1:9")


@pytest.mark.parametrize(
    ("kind", "answer", "said"),
    [
        ("searxng", sends({"error": "slow down"}, 429), r'429 {"error": "slow down"}'),
        ("searxng", sends({}, 500), "500"),
        ("searxng", sends({}, 400), "400"),
        ("searxng", Answer(content=b"<html>Welcome</html>"), r"200 without search results \(.+\): <html>Welcome</html>"),
        ("searxng", sends([]), "200 without search results"),
        ("searxng", sends({"results": ["text"]}), "200 without search results"),
        ("searxng", searxng("?", [], ["google"]), r"200 without search results \(no engine behind it answered\)"),
        ("wikipedia", sends({"error": {"code": "badvalue", "info": "Bad value"}}), r"200 without search results \(Bad value\)"),
        ("wikipedia", sends({"query": {"pages": [{"index": 1}]}}), r"200 without search results \(JSON of another shape\)"),
        ("searxng", Answer(content=b"{}", pause_s=0.6), r"no complete reply within 0\.5 s; raise llm\.transport\.deadline_s"),
        ("searxng", Answer(content=b"{}" + b" " * 20, drip_s=0.05), r"no complete reply within 0\.5 s"),
    ],
)
def test_a_search_that_fails_is_told_in_one_line_and_not_recorded(
    stub: Stub, ledger: Ledger, kind: str, answer: Answer, said: str
) -> None:
    stub.behave = lambda body: answer
    with pytest.raises(ArenaError, match=rf"^{root(stub)}\S*: .*{said}") as error:
        ask(ledger, root(stub), kind)
    assert "\n" not in str(error.value)
    assert not isinstance(error.value, EndpointError)
    stub.behave = both
    assert ask(ledger, root(stub), kind)[0] == DOCUMENTS


def test_what_may_pass_is_tried_again(stub: Stub, ledger: Ledger) -> None:
    stub.behave = lambda body: both(body) if len(stub.requests) > 1 else sends({}, 503)
    assert ask(ledger, root(stub), retries=1)[0] == DOCUMENTS
    assert len(stub.requests) == 2


def test_what_will_not_pass_is_not_tried_again(stub: Stub, ledger: Ledger) -> None:
    stub.behave = lambda body: sends({}, 400)
    with pytest.raises(ArenaError):
        ask(ledger, root(stub), retries=3)
    assert len(stub.requests) == 1


# Keys


def test_a_key_is_sent_and_neither_kept_nor_shown(
    stub: Stub, ledger: Ledger, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SEARCH_KEY", "secret-of-the-engine")
    stub.behave = lambda body: searxng("secret-of-the-engine", [("https://a.example", "A", "secret-of-the-engine")])
    [found], meter = ask(ledger, root(stub), key="SEARCH_KEY")
    assert stub.headers[0]["authorization"] == "Bearer secret-of-the-engine"
    assert found.text == "***"
    assert "secret-of" not in json.dumps([meter.lookups[0].endpoint, meter.lookups[0].request, meter.lookups[0].reply])
    stub.behave = lambda body: sends({"error": "secret-of-the-engine is used up"}, 429)
    with pytest.raises(ArenaError, match=r"429 {\"error\": \"\*\*\* is used up\"}"):
        ask(ledger, root(stub), query="more", key="SEARCH_KEY")


def test_without_a_variable_no_key_is_sent(stub: Stub, ledger: Ledger) -> None:
    ask(ledger, root(stub))
    assert "authorization" not in stub.headers[0]


def test_an_address_may_hold_no_password_and_the_refusal_does_not_show_it() -> None:
    with pytest.raises(ArenaError) as error:
        section(Web, {"base_url": "https://user:word@search.example", "api_key_env": ""}, "params.yaml", "web.")
    told = "base_url must not hold a password, which would be kept with the results; use api_key_env"
    assert str(error.value) == f"params.yaml: web: {told}"
