"""Embeddings over real sockets."""

import asyncio
import hashlib
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rag_arena import artifacts, embedders
from rag_arena.artifacts import Parts
from rag_arena.embedders.bm25 import Bm25
from rag_arena.embedders.http import Http
from rag_arena.errors import ArenaError, EndpointError
from rag_arena.llm.ledger import Ledger
from rag_arena.params import HttpEmbedder, section
from rag_arena.stages.index import index
from tests.servedstub import DIMENSIONS, TRANSPORT, embeddings, served_embedder, vector
from tests.stub import Answer, Stub, unused_url, with_json

TEXTS = ["The Rhine begins in the Alps.", "The Elbe begins in Bohemia.", "Cheese is made of milk."]
QUERY = "Where does the Rhine begin?"
CHECKED = r"check embedder\.send_dimensions, embedder\.max_characters and embedder\.batch_size"


@pytest.fixture(autouse=True)
def _speaks_embeddings(stub: Stub) -> None:
    stub.behave = embeddings


def settings(url: str, **changes: Any) -> HttpEmbedder:
    return section(HttpEmbedder, served_embedder(url, **changes), "params.yaml", "embedder.")


def of(stub: Stub, **changes: Any) -> Http:
    return Http(settings(stub.url, **changes), TRANSPORT)


def unit(values: list[float]) -> Any:
    return pytest.approx(np.array(values) / math.sqrt(sum(value * value for value in values)), abs=1e-6)


# What is asked, and what comes back


def test_the_configured_embedder_is_loaded(stub: Stub) -> None:
    assert isinstance(embedders.load(settings(stub.url), TRANSPORT), Http)


def test_a_query_is_one_request_in_openais_format(stub: Stub) -> None:
    assert of(stub).dense(QUERY) == unit(vector(QUERY))
    assert stub.paths == ["/v1/embeddings"]
    assert stub.requests == [{"model": "stub-embedder", "input": [QUERY], "encoding_format": "float"}]


def test_documents_are_asked_for_in_requests_of_batch_size_and_come_back_in_their_order(stub: Stub) -> None:
    [first, second] = of(stub).documents([TEXTS, ["One more."]])
    assert [each.dense for each in (*first, *second)] == [unit(vector(text)) for text in [*TEXTS, "One more."]]
    assert sorted(request["input"] for request in stub.requests) == sorted([TEXTS[:2], TEXTS[2:], ["One more."]])


def test_the_sparse_lane_is_bm25(stub: Stub) -> None:
    embedder, bm25 = of(stub), Bm25(settings(stub.url).bm25)
    [[found]] = embedder.documents([TEXTS[:1]])
    assert found.sparse.values == bm25.document(TEXTS[0]).values
    assert embedder.sparse_query(QUERY).indices == bm25.query(QUERY).indices
    assert embedder.idf


def test_prefixes_are_put_before_queries_and_documents(stub: Stub) -> None:
    embedder = of(stub, query_prefix="query: ", document_prefix="passage: ")
    embedder.dense(QUERY)
    list(embedder.documents([TEXTS[:1]]))
    assert [request["input"] for request in stub.requests] == [[f"query: {QUERY}"], [f"passage: {TEXTS[0]}"]]


def test_what_is_over_max_characters_is_cut(stub: Stub) -> None:
    list(of(stub, max_characters=9).documents([TEXTS[:1]]))
    assert stub.requests[0]["input"] == ["The Rhine"]


def test_a_server_that_can_shorten_vectors_is_asked_to(stub: Stub) -> None:
    of(stub, send_dimensions=True).dense(QUERY)
    assert stub.requests[0]["dimensions"] == DIMENSIONS


def test_it_can_be_asked_inside_an_event_loop(stub: Stub) -> None:
    async def inside() -> Any:
        return of(stub).dense(QUERY)

    assert asyncio.run(inside()) == unit(vector(QUERY))


# Replays and resumption


def test_a_query_is_asked_once_for_all_processes_and_replayed_without_the_server(stub: Stub, ledger: Ledger) -> None:
    first = of(stub).dense(QUERY)
    stub.behave = lambda _: with_json({}, 500)
    assert of(stub).dense(QUERY).tobytes() == first.tobytes()
    assert len(stub.requests) == 1
    [totals] = ledger.stats()
    assert (totals.calls, totals.tokens_in, json.loads(totals.endpoint)) == (
        1,
        len(QUERY.split()),
        {"base_url": stub.url, "model": "stub-embedder"},
    )


def test_many_queries_are_asked_for_together_and_then_found_in_the_ledger(stub: Stub) -> None:
    embedder = of(stub)
    embedder.prepare([*TEXTS, QUERY, QUERY])
    assert sorted(request["input"] for request in stub.requests) == sorted([text] for text in [*TEXTS, QUERY])
    stub.behave = lambda _: with_json({}, 500)
    assert [embedder.dense(text) for text in TEXTS] == [unit(vector(text)) for text in TEXTS]
    of(stub).prepare(TEXTS)


def test_a_refused_query_is_not_recorded(stub: Stub, ledger: Ledger) -> None:
    stub.behave = lambda body: embeddings(body, [[1.0]])
    with pytest.raises(ArenaError):
        of(stub).dense(QUERY)
    assert ledger.stats() == []
    stub.behave = embeddings
    assert of(stub).dense(QUERY) == unit(vector(QUERY))


def test_an_index_that_a_server_broke_off_goes_on_where_it_stopped(stub: Stub, tmp_path: Path) -> None:
    texts = [f"text {i}" for i in range(64)]
    rows = [{"doc_id": f"d{i:02}", "title": "", "text": text, "metadata": ()} for i, text in enumerate(texts)]
    corpus = artifacts.table(artifacts.CORPUS, rows)
    params, parts = settings(stub.url), Parts(tmp_path / "parts", artifacts.VECTORS)
    stub.behave = lambda body: embeddings(body) if len(stub.requests) <= 20 else with_json({"error": "out of credit"}, 400)
    with pytest.raises(ArenaError, match=r"/embeddings: 400 {\"error\": \"out of credit\"}"):
        index(corpus, params, None, parts, TRANSPORT)
    files = (tmp_path / "parts").iterdir()
    kept = {digest for file in files for digest in artifacts.read(file, artifacts.VECTORS)["text_sha256"].to_pylist()}
    stub.requests.clear()
    stub.behave = embeddings
    resumed = index(corpus, params, None, parts, TRANSPORT)
    asked = {hashlib.sha256(text.encode()).hexdigest() for request in stub.requests for text in request["input"]}
    assert kept
    assert asked
    assert asked.isdisjoint(kept)
    assert len(asked | kept) == len(texts)
    assert resumed.equals(index(corpus, params, None, None, TRANSPORT))


# Who answers


@pytest.mark.parametrize(
    "change",
    [
        {"model": "another"},
        {"dimensions": 9},
        {"send_dimensions": True},
        {"query_prefix": "q"},
        {"document_prefix": "d"},
        {"max_characters": 10},
        {"batch_size": 3},
        {"bm25": {"k": 1.0, "b": 0.75, "average_words": 256.0}},
        {"base_url": "http://elsewhere.example/v1"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_what_can_change_a_vector_changes_the_identity(stub: Stub, change: dict[str, Any]) -> None:
    assert of(stub, **change).identity != of(stub).identity


def test_the_variable_of_the_key_does_not_change_the_identity(stub: Stub) -> None:
    assert of(stub, api_key_env="KEY").identity == of(stub).identity


def test_an_embedder_over_http_has_no_token_vectors(stub: Stub) -> None:
    with pytest.raises(NotImplementedError):
        of(stub).tokens(QUERY)


# Refusals


@pytest.mark.parametrize(
    ("vectors", "said"),
    [
        ([], "0 vectors for 1 texts"),
        ([vector("a"), vector("b")], "2 vectors for 1 texts"),
        ([[1.0, 2.0]], f"vectors of length 2, embedder.dimensions is {DIMENSIONS}"),
        ([[math.nan] * DIMENSIONS], "a vector that is not finite, or is zero"),
        ([[1.0] * (DIMENSIONS - 1) + [math.inf]], "a vector that is not finite, or is zero"),
        ([[0.0] * DIMENSIONS], "a vector that is not finite, or is zero"),
        ([[None] * DIMENSIONS], "a vector that is not finite, or is zero"),
        ([["1", "x"] * (DIMENSIONS // 2)], "could not convert string to float"),
        (["AACAPw=="], "a vector as text, where encoding_format float was asked for"),
        ([None], "JSON of another shape"),
    ],
    ids=["none", "two", "short", "nan", "infinite", "zero", "null", "text", "base64", "no vector"],
)
def test_vectors_of_the_wrong_number_length_or_value_are_refused(stub: Stub, vectors: list[Any], said: str) -> None:
    stub.behave = lambda body: embeddings(body, vectors)
    with pytest.raises(ArenaError) as caught:
        of(stub).dense(QUERY)
    assert str(caught.value).startswith(f"{stub.url}/embeddings: 200 without embeddings (")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("reply", [{}, [], "text", {"data": {}}, {"data": [{"embedding": [1.0]}]}, {"error": {"message": "no"}}])
def test_a_reply_of_another_shape_is_refused(stub: Stub, reply: Any) -> None:
    stub.behave = lambda _: with_json(reply)
    with pytest.raises(ArenaError, match=rf"^{stub.url}/embeddings: 200 without embeddings \((JSON of another shape|0 vectors)"):
        of(stub).dense(QUERY)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (with_json({}, 401), "401; check embedder.api_key_env"),
        (with_json({}, 403), "403; check embedder.api_key_env"),
        (with_json({}, 404), "404; mend embedder.base_url or embedder.model (stub-embedder)"),
        (Answer(307, b"", {"location": "/"}), "307; mend embedder.base_url or embedder.model (stub-embedder)"),
    ],
)
def test_what_is_refused_every_time_stops_a_cell(stub: Stub, answer: Answer, said: str) -> None:
    stub.behave = lambda _: answer
    with pytest.raises(EndpointError) as caught:
        of(stub).dense(QUERY)
    assert str(caught.value) == f"{stub.url}/embeddings: {said}"


def test_nobody_listening_is_told() -> None:
    url = unused_url()
    with pytest.raises(
        EndpointError, match=rf"^{url}/embeddings: nobody answers \(.+\); start the server or mend embedder\.base_url$"
    ):
        Http(settings(url), TRANSPORT).dense(QUERY)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (with_json({"error": "no"}, 400), rf"400 {{\"error\": \"no\"}}; {CHECKED}$"),
        (with_json({"error": "too many texts"}, 422), rf"422 {{\"error\": \"too many texts\"}}; {CHECKED}$"),
        (with_json({}, 413), r"413 {}; lower embedder\.batch_size or embedder\.max_characters$"),
        (Answer(content=b"<html>"), r"200 without embeddings \(no JSON\): <html>"),
        (
            Answer(content=b"{}", pause_s=0.7),
            r"no complete reply within 0\.5 s; wait until it has loaded its model, raise served\.deadline_s, or lower embedder\.",
        ),
        (Answer(content=b"{}" + b" " * 20, drip_s=0.05), r"no complete reply within 0\.5 s"),
        (with_json({}, 503), "503 {}"),
    ],
    ids=["400", "422", "413", "a page", "silence", "drops", "503"],
)
def test_a_request_that_fails_is_told_in_one_line(stub: Stub, answer: Answer, said: str) -> None:
    stub.behave = lambda _: answer
    with pytest.raises(ArenaError, match=rf"^{stub.url}/embeddings: {said}") as caught:
        list(of(stub).documents([TEXTS]))
    assert not isinstance(caught.value, EndpointError)
    assert "\n" not in str(caught.value)


def test_what_may_pass_is_tried_again(stub: Stub) -> None:
    stub.behave = lambda body: embeddings(body) if len(stub.requests) > 1 else with_json({}, 429)
    assert Http(settings(stub.url), TRANSPORT.model_copy(update={"max_retries": 1})).dense(QUERY) == unit(vector(QUERY))


# Keys


def test_a_key_is_sent_and_neither_kept_nor_shown(stub: Stub, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMBED_KEY", "secret-of-the-embedder")
    embedder = of(stub, api_key_env="EMBED_KEY")
    embedder.dense(QUERY)
    assert stub.headers[0]["authorization"] == "Bearer secret-of-the-embedder"
    assert "secret" not in str(ledger.find("")) + embedder.identity
    stub.behave = lambda _: with_json({"error": "secret-of-the-embedder has no credit"}, 402)
    with pytest.raises(ArenaError, match=r"402 {\"error\": \"\*\*\* has no credit\"}"):
        embedder.dense("another")


def test_a_key_that_is_not_set_is_told_by_its_variable(stub: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EMBED_KEY", raising=False)
    with pytest.raises(EndpointError, match=r"embeddings: needs a key; set EMBED_KEY, or embedder\.api_key_env to '' for none$"):
        of(stub, api_key_env="EMBED_KEY").dense(QUERY)
    assert stub.requests == []


def test_without_a_variable_no_key_is_sent(stub: Stub) -> None:
    of(stub).dense(QUERY)
    assert "authorization" not in stub.headers[0]
