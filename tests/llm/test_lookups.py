"""GET requests over real sockets: a busy server is obeyed, and who asks is said. Refusals: `retrieval/test_web.py`."""

import asyncio
import json
import time
from typing import Any

import pytest

from rag_arena.errors import ArenaError
from rag_arena.llm.ledger import Entry, Ledger
from rag_arena.llm.lookups import Lookups, Site
from rag_arena.params import Transport
from tests.stub import Answer, Stub, with_json

GOOD = with_json({"rivers": ["Rhine"]})
MAXLAG = {"error": {"code": "maxlag", "info": "Waiting for db1: 7 seconds lagged", "lag": 7}}


def get(stub: Stub, ledger: Ledger, retries: int = 0) -> tuple[Entry, bool]:
    site = Site(f"{stub.url}/rivers", "rivers.base_url", "rivers", "", lambda reply: reply["rivers"])
    transport = Transport(max_concurrency=1, deadline_s=5.0, max_retries=retries)
    return asyncio.run(Lookups(ledger, transport).get(site, {"engine": "rivers"}, {"q": "all"}))


def first(answer: Answer, stub: Stub) -> Any:
    return lambda body: GOOD if len(stub.requests) > 1 else answer


@pytest.mark.parametrize(
    "busy",
    [
        with_json({}, 429, {"retry-after": "1"}),
        with_json({}, 503, {"retry-after": "1"}),
        with_json(MAXLAG, headers={"retry-after": "1"}),
    ],
    ids=["429", "503", "maxlag"],
)
def test_a_busy_server_is_asked_again_after_as_long_as_it_says(stub: Stub, ledger: Ledger, busy: Answer) -> None:
    stub.behave = first(busy, stub)
    start = time.monotonic()
    entry, replayed = get(stub, ledger, retries=1)
    assert time.monotonic() - start >= 1
    assert (json.loads(entry.reply), replayed) == ({"rivers": ["Rhine"]}, False)
    assert get(stub, ledger) == (entry, True)
    assert len(stub.requests) == 2


def test_a_date_to_wait_for_is_not_understood_and_does_not_stop_the_retry(stub: Stub, ledger: Ledger) -> None:
    stub.behave = first(with_json({}, 503, {"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"}), stub)
    assert json.loads(get(stub, ledger, retries=1)[0].reply) == {"rivers": ["Rhine"]}


@pytest.mark.parametrize("code", ["maxlag", "ratelimited", "readonly"])
def test_a_wiki_that_stays_busy_is_told_in_its_own_words_and_not_recorded(stub: Stub, ledger: Ledger, code: str) -> None:
    stub.behave = lambda body: with_json({"error": {"code": code, "info": "Try later"}})
    with pytest.raises(ArenaError, match=rf"^{stub.url}/rivers: busy \(Try later\)$"):
        get(stub, ledger, retries=1)
    assert len(stub.requests) == 2
    stub.behave = lambda body: GOOD
    assert get(stub, ledger)[1] is False


def test_a_contact_is_sent_along_where_one_is_given(stub: Stub, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARENA_CONTACT", "me@example.org")
    stub.behave = lambda body: GOOD
    get(stub, ledger)
    assert stub.headers[0]["user-agent"].startswith("rag-arena/")
    assert stub.headers[0]["user-agent"].endswith(" me@example.org")
