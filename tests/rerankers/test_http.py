"""Rerank endpoints over real sockets, in both shapes."""

import json
import math
from typing import Any

import pytest

from rag_arena import embedders, rerankers
from rag_arena.errors import ArenaError, EndpointError
from rag_arena.llm.ledger import Ledger
from rag_arena.params import HttpReranker, section
from rag_arena.rerankers.http import Http, logit
from tests.servedstub import TRANSPORT, cohere, served_reranker, tei
from tests.stub import Answer, Stub, unused_url, with_json

QUERY = "where does the rhine begin"
TEXTS = ["the rhine", "cheese", "the rhine does begin", "the elbe", "milk"]
LOGITS = [2 - 1.5, 0 - 1.5, 4 - 1.5, 1 - 1.5, 0 - 1.5]
CHECKED = "check reranker.documents_key, reranker.max_characters and reranker.batch_size"
SHAPES = {"texts": tei, "documents": cohere}


def settings(url: str, **changes: Any) -> HttpReranker:
    return section(HttpReranker, served_reranker(url, **changes), "params.yaml", "reranker.")


def of(stub: Stub, **changes: Any) -> Http:
    stub.behave = SHAPES[changes.get("documents_key", "texts")]
    return Http(settings(stub.url, **changes), TRANSPORT)


def test_the_configured_reranker_is_loaded(stub: Stub, params) -> None:
    assert isinstance(rerankers.load(settings(stub.url), embedders.load(params.embedder), TRANSPORT), Http)


def test_tei_is_asked_for_raw_scores_of_texts(stub: Stub) -> None:
    assert of(stub).scores(QUERY, TEXTS) == LOGITS
    assert stub.paths == ["/rerank"]
    assert stub.requests == [{"query": QUERY, "texts": TEXTS, "raw_scores": True, "truncate": True}]


def test_the_others_are_asked_for_all_documents_by_model(stub: Stub) -> None:
    found = of(stub, documents_key="documents", scores="probabilities").scores(QUERY, TEXTS)
    assert found == pytest.approx(LOGITS, abs=1e-9)
    assert stub.requests == [{"model": "stub-reranker", "query": QUERY, "documents": TEXTS, "top_n": len(TEXTS)}]


def test_the_probabilities_of_tei_are_taken_back_to_logits_too(stub: Stub) -> None:
    assert of(stub, scores="probabilities").scores(QUERY, TEXTS) == pytest.approx(LOGITS, abs=1e-9)
    assert stub.requests[0]["raw_scores"] is False


def test_the_sigmoid_of_tau_0_and_temperature_1_gives_the_servers_probability_back(stub: Stub) -> None:
    [score] = of(stub, documents_key="documents", scores="probabilities").scores(QUERY, TEXTS[:1])
    assert rerankers.probability(score, settings(stub.url)) == pytest.approx(1 / (1 + math.exp(-(2 - 1.5))))


@pytest.mark.parametrize(("p", "wanted"), [(0.5, 0.0), (0.9, math.log(9)), (0.1, -math.log(9))])
def test_a_logit_is_the_logarithm_of_the_odds(p: float, wanted: float) -> None:
    assert logit(p) == pytest.approx(wanted)


@pytest.mark.parametrize(("p", "wanted"), [(1.0, math.log(2**24 - 1)), (0.0, -math.log(2**24 - 1))])
def test_certainty_is_finite(p: float, wanted: float) -> None:
    assert logit(p) == pytest.approx(wanted)


def test_many_documents_are_several_requests(stub: Stub) -> None:
    assert of(stub, batch_size=2).scores(QUERY, TEXTS) == LOGITS
    assert [request["texts"] for request in stub.requests] == [TEXTS[:2], TEXTS[2:4], TEXTS[4:]]


def test_what_is_over_max_characters_is_cut(stub: Stub) -> None:
    of(stub, max_characters=3).scores(QUERY, TEXTS[:2])
    assert (stub.requests[0]["query"], stub.requests[0]["texts"]) == (QUERY[:3], ["the", "che"])


def test_no_documents_are_no_request(stub: Stub) -> None:
    assert of(stub).scores(QUERY, []) == []
    assert stub.requests == []


@pytest.mark.parametrize("key", SHAPES)
def test_what_was_asked_before_is_replayed_without_the_server(stub: Stub, ledger: Ledger, key: str) -> None:
    scores = "logits" if key == "texts" else "probabilities"
    first = of(stub, documents_key=key, scores=scores).scores(QUERY, TEXTS)
    again = of(stub, documents_key=key, scores=scores)
    stub.behave = lambda _: with_json({}, 500)
    assert again.scores(QUERY, TEXTS) == first
    assert len(stub.requests) == 1
    assert json.loads(ledger.stats()[0].endpoint)["model"] == "stub-reranker"


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ([], "0 scores for 2 documents"),
        ([{"index": 0, "score": 1.0}, {"index": 0, "score": 2.0}], "2 scores for 2 documents, or not one for each"),
        ([{"index": 1, "score": 1.0}, {"index": 2, "score": 2.0}], "2 scores for 2 documents, or not one for each"),
        ([{"index": 0, "score": 1.0}], "1 scores for 2 documents"),
        ([{"index": 0, "score": 1.0}, {"index": 1, "score": math.nan}], "a score that is not finite"),
        ([{"index": 0, "score": 1.0}, {"index": 1, "score": None}], "JSON of another shape"),
        ([{"index": 0, "score": 1.0}, {"index": 1}], "JSON of another shape"),
        ({"results": [{"index": 0, "relevance_score": 1.0}]}, "1 scores for 2 documents"),
        ({}, "JSON of another shape"),
        ({"error": "Model is overloaded", "error_type": "overloaded"}, "JSON of another shape"),
        ("text", "JSON of another shape"),
    ],
)
def test_scores_of_the_wrong_number_shape_or_value_are_refused(stub: Stub, reply: Any, said: str) -> None:
    reranker = of(stub)
    stub.behave = lambda _: with_json(reply)
    with pytest.raises(ArenaError) as caught:
        reranker.scores(QUERY, TEXTS[:2])
    assert str(caught.value).startswith(f"{stub.url.removesuffix('/v1')}/rerank: 200 without scores (")
    assert said in str(caught.value)


def test_a_score_that_is_no_probability_names_the_setting(stub: Stub) -> None:
    reranker = of(stub, scores="probabilities")
    stub.behave = lambda _: with_json([{"index": 0, "score": -3.5}])
    with pytest.raises(ArenaError, match=r"\(-3\.5 is no probability; set reranker\.scores to logits\)"):
        reranker.scores(QUERY, TEXTS[:1])


@pytest.mark.parametrize(
    ("answer", "error", "said"),
    [
        (with_json({}, 401), EndpointError, "401; check reranker.api_key_env"),
        (with_json({}, 404), EndpointError, "404; mend reranker.base_url or reranker.model (stub-reranker)"),
        (with_json({"error": "no"}, 400), ArenaError, f'400 {{"error": "no"}}; {CHECKED}'),
        (with_json({"error": "no texts"}, 422), ArenaError, f'422 {{"error": "no texts"}}; {CHECKED}'),
        (
            with_json({"error": "Batch size error"}, 413),
            ArenaError,
            '413 {"error": "Batch size error"}; lower reranker.batch_size or reranker.max_characters',
        ),
        (with_json({"error": "not a reranker"}, 424), ArenaError, '424 {"error": "not a reranker"}'),
    ],
)
def test_a_refusal_is_told_in_one_line(stub: Stub, answer: Answer, error: type[ArenaError], said: str) -> None:
    reranker = of(stub)
    stub.behave = lambda _: answer
    with pytest.raises(error) as caught:
        reranker.scores(QUERY, TEXTS)
    assert str(caught.value) == f"{stub.url.removesuffix('/v1')}/rerank: {said}"


def test_nobody_listening_is_told() -> None:
    url = unused_url().removesuffix("/v1")
    with pytest.raises(
        EndpointError, match=rf"^{url}/rerank: nobody answers \(.+\); start the server or mend reranker\.base_url$"
    ):
        Http(settings(url), TRANSPORT).scores(QUERY, TEXTS)
