import math
from typing import Any

import numpy as np
import pytest

from rag_arena import embedders
from rag_arena.errors import ArenaError
from rag_arena.metering import metered
from rag_arena.params import MODES, Params, Sigmoid, validate
from rag_arena.records import Document, Hit
from rag_arena.rerankers import probability
from rag_arena.rerankers.maxsim import MaxSim
from rag_arena.retrieval.fusion import reciprocal_rank_fusion
from rag_arena.retrieval.index import Index
from rag_arena.retrieval.retriever import RecordedRetriever, Retrievers

PASSAGES = {
    "Niger River": "The Niger River rises in Guinea and bends south near Timbuktu.",
    "Timbuktu": "Timbuktu is a city in Mali, north of the great river.",
    "Lyon": "Lyon lies where two rivers meet, the Rhône and the Saône.",
    "Sonnet": "A sonnet is a poem of fourteen lines.",
    "Haiku": "A haiku is a short Japanese poem of seventeen syllables.",
    "Mungo Park": "Mungo Park drowned while he explored the Niger.",
    "Titan": "Titan is the largest moon of Saturn, with seas of methane.",
    "Green": "Green is a colour between blue and yellow.",
    "Eucalyptus": "Eucalyptus oil makes the mountains look blue.",
    "Sydney": "Sydney is the largest city of New South Wales.",
}
QUERIES = ["Which river flows near Timbuktu?", "a short poem", "the largest moon", "blue"]
NO_TERMS = "what is it?"


@pytest.fixture(scope="module")
def embedder(params):
    return embedders.load(params.embedder)


@pytest.fixture(scope="module")
def index(embedder) -> Index:
    documents = tuple(Document(f"d{i}", title, text) for i, (title, text) in enumerate(PASSAGES.items()))
    sparse = [each.sparse for each in next(embedder.documents([[d.full_text for d in documents]]))]
    dense = np.stack([embedder.dense(d.full_text) for d in documents])
    return Index(documents, dense, tuple((np.array(s.indices, np.uint32), np.array(s.values, np.float32)) for s in sparse))


@pytest.fixture(scope="module")
def built(params, index, embedder) -> Retrievers:
    return Retrievers(params, lambda: index, embedder)


def with_settings(params: Params, mode: str, **settings: Any) -> Params:
    values = params.model_dump()
    values["retrieval"][mode] |= settings
    return validate(values, "params.yaml")


def ids(hits) -> list[str]:
    return [hit.doc_id for hit in hits]


@pytest.mark.parametrize("query", QUERIES)
def test_dense_orders_by_cosine(built, index, embedder, query):
    cosines = index.dense @ embedder.dense(query)
    found = built.of("dense").search(query, len(PASSAGES))
    assert ids(found) == [index.documents[row].doc_id for row in np.argsort(-cosines)]
    assert [hit.score for hit in found] == pytest.approx(sorted(cosines, reverse=True), abs=1e-6)


def test_sparse_finds_the_documents_that_share_a_term(built):
    assert set(ids(built.of("sparse").search("Timbuktu", 10))) == {"d0", "d1"}


@pytest.mark.parametrize("query", QUERIES)
def test_hybrid_is_the_reciprocal_rank_fusion_of_both_lanes(built, params, query):
    lanes = [ids(built.of(mode).search(query, 10)) for mode in ("dense", "sparse")]
    wanted = reciprocal_rank_fusion(lanes, params.retrieval.hybrid.rrf_constant)
    assert [(hit.doc_id, hit.score) for hit in built.of("hybrid").search(query, 10)] == wanted


def test_a_document_first_in_both_lanes_has_twice_the_first_share(built, params):
    constant = params.retrieval.hybrid.rrf_constant
    first = built.of("hybrid").search("Mungo Park drowned", 1)[0]
    assert (first.doc_id, first.score) == ("d5", 1 / (constant + 1) + 1 / (constant + 1))


@pytest.mark.parametrize("query", [*QUERIES, NO_TERMS])
def test_qdrants_fusion_gives_the_same_hits_as_ours(params, index, embedder, built, query):
    theirs = Retrievers(with_settings(params, "hybrid", fusion="qdrant"), lambda: index, embedder).of("hybrid")
    ours, found = built.of("hybrid").search(query, 5), theirs.search(query, 5)
    assert ids(found) == ids(ours)
    assert [hit.score for hit in found] == pytest.approx([hit.score for hit in ours], rel=1e-6)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("query", QUERIES)
def test_the_edge_store_gives_the_same_hits_as_the_local_one(params, index, embedder, built, mode, query):
    values = params.model_dump() | {"store": {"backend": "edge"}}
    edge = Retrievers(validate(values, "params.yaml"), lambda: index, embedder).of(mode).search(query, 5)
    local = built.of(mode).search(query, 5)
    assert ids(edge) == ids(local)
    assert [hit.score for hit in edge] == pytest.approx([hit.score for hit in local], rel=1e-5)


@pytest.mark.parametrize("query", QUERIES)
def test_hybrid_rerank_orders_the_hybrid_candidates_by_relevance(params, index, embedder, built, query):
    settings = params.retrieval.hybrid_rerank
    reranker = MaxSim(embedder)
    candidates = ids(built.of("hybrid").search(query, settings.candidates))
    scores = reranker.scores(query, [index.document(i).full_text for i in candidates])
    relevance = {i: probability(score, settings.reranker) for i, score in zip(candidates, scores, strict=True)}
    kept = sorted((i for i in candidates if relevance[i] >= settings.relevance_threshold), key=lambda i: (-relevance[i], i))
    assert [(hit.doc_id, hit.score) for hit in built.of("hybrid_rerank").search(query, 4)] == [
        (i, relevance[i]) for i in kept[:4]
    ]


def test_the_reranker_drops_every_document_under_the_threshold(params, index, embedder):
    whole = Retrievers(with_settings(params, "hybrid_rerank", relevance_threshold=0.0), lambda: index, embedder)
    every = whole.of("hybrid_rerank").search(QUERIES[0], 10)
    threshold = every[2].score
    strict = Retrievers(with_settings(params, "hybrid_rerank", relevance_threshold=threshold), lambda: index, embedder)
    assert strict.of("hybrid_rerank").search(QUERIES[0], 10) == every[:3]


def test_the_reranker_drops_all_documents_when_all_are_under_the_threshold(params, index, embedder):
    strict = Retrievers(with_settings(params, "hybrid_rerank", relevance_threshold=1.0), lambda: index, embedder)
    assert strict.of("hybrid_rerank").search(QUERIES[0], 10) == []


def test_the_reranker_sees_no_more_than_the_candidates(params, index, embedder, built):
    narrow = Retrievers(with_settings(params, "hybrid_rerank", candidates=3, relevance_threshold=0.0), lambda: index, embedder)
    shallow = Retrievers(with_settings(params, "hybrid", candidates=3), lambda: index, embedder)
    assert set(ids(narrow.of("hybrid_rerank").search(QUERIES[0], 2))) <= set(ids(shallow.of("hybrid").search(QUERIES[0], 3)))


def test_the_reranker_sees_more_than_the_candidates_when_more_are_asked_for(params, index, embedder):
    narrow = Retrievers(with_settings(params, "hybrid_rerank", candidates=1, relevance_threshold=0.0), lambda: index, embedder)
    assert len(narrow.of("hybrid_rerank").search(QUERIES[0], 6)) == 6


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("query", QUERIES)
def test_a_shorter_ranking_is_the_beginning_of_a_longer_one(built, mode, query):
    retriever = built.of(mode)
    longer = [(hit.doc_id, hit.score) for hit in retriever.search(query, 6)]
    for k in (1, 3, 5):
        assert [(hit.doc_id, hit.score) for hit in retriever.search(query, k)] == longer[:k]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("query", QUERIES)
def test_a_cosine_does_not_depend_on_how_many_hits_are_asked_for(built, mode, query):
    retriever = built.of(mode)
    longer = [hit.cosine for hit in retriever.search(query, len(PASSAGES))]
    for k in range(1, len(longer)):
        assert [hit.cosine for hit in retriever.search(query, k)] == longer[:k]


@pytest.mark.parametrize("mode", MODES)
def test_every_mode_carries_the_cosine_of_its_hits(built, index, embedder, mode):
    vector = embedder.dense(QUERIES[0])
    found = built.of(mode).search(QUERIES[0], 5)
    assert [hit.cosine for hit in found] == pytest.approx(
        [float(index.dense[index.row_of[i]] @ vector) for i in ids(found)], abs=1e-6
    )


@pytest.mark.parametrize("mode", MODES)
def test_excluded_documents_are_not_found_in_any_mode(params, index, embedder, mode):
    lenient = with_settings(params, "hybrid_rerank", relevance_threshold=0.0)
    retriever = Retrievers(lenient, lambda: index, embedder).of(mode)
    first = frozenset(ids(retriever.search(QUERIES[0], 2)))
    again = retriever.search(QUERIES[0], 2, first)
    assert again
    assert first.isdisjoint(ids(again))


def test_a_query_without_terms_finds_nothing_sparse_and_the_dense_order_hybrid(built):
    assert built.of("sparse").search(NO_TERMS, 5) == []
    assert ids(built.of("hybrid").search(NO_TERMS, 5)) == ids(built.of("dense").search(NO_TERMS, 5))


def test_an_unknown_mode_is_refused(built):
    with pytest.raises(ArenaError, match=r"^retrieval mode 'dnese' does not exist; did you mean dense\?$"):
        built.of("dnese")


def test_a_lane_can_be_had_without_being_a_mode_of_the_grid(params, index, embedder, built):
    lone = params.model_copy(update={"retrieval": params.retrieval.model_copy(update={"sparse": None})})
    found = Retrievers(lone, lambda: index, embedder).lane("sparse", 10).search("Timbuktu", 10)
    assert found == built.of("sparse").search("Timbuktu", 10)


def test_cosines_come_in_the_order_asked_for_and_are_metered(built, index, embedder):
    vector = embedder.dense("blue")
    with metered() as meter:
        found = built.cosines("blue", ["d8", "d0", "d7"])
    assert found == pytest.approx([float(index.dense[row] @ vector) for row in (8, 0, 7)], abs=1e-6)
    assert meter.search_s > 0


def test_relevance_is_the_rerankers_score_through_the_sigmoid_and_metered_as_grading(built):
    texts, sigmoid = ["blue sky", "red clay"], Sigmoid(tau=0.4, temperature=0.1)
    with metered() as meter:
        found = built.relevance("blue", texts, sigmoid)
    assert found == [1 / (1 + math.exp(-(score - 0.4) / 0.1)) for score in built.reranker.scores("blue", texts)]
    assert found[0] > found[1]
    assert meter.grading_s > 0 == meter.search_s


def test_the_cosines_of_no_documents_are_none(built):
    assert built.cosines("blue", []) == []


def test_the_index_is_loaded_once_and_at_first_use(params, index):
    loads: list[str] = []
    lazy = Retrievers(params, lambda: loads.append("load") or index, embedders.load(params.embedder, params.served))
    assert loads == []
    lazy.of("dense").search("blue", 1)
    lazy.of("sparse").search("blue", 1)
    assert loads == ["load"]


RECORDED = [Hit("d8", 0.9, 0.9), Hit("d7", 0.8, 0.8), Hit("d0", 0.1, 0.1)]


class Opening:
    """A live retriever's opener that counts how often it is used."""

    def __init__(self, built: Retrievers) -> None:
        self.times = 0
        self._built = built

    def __call__(self):
        self.times += 1
        return self._built.of("dense")


@pytest.fixture
def opening(built) -> Opening:
    return Opening(built)


@pytest.fixture
def recorded(opening) -> RecordedRetriever:
    return RecordedRetriever({"blue": RECORDED, "nothing": []}, len(RECORDED), opening)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_a_recorded_query_is_answered_from_the_record(recorded, opening, k):
    with metered() as meter:
        assert recorded.search("blue", k) == RECORDED[:k]
    assert (meter.recorded_searches, meter.search_s, opening.times) == (1, 0.0, 0)


def test_a_recorded_query_that_found_nothing_is_not_asked_again(recorded, opening):
    with metered() as meter:
        assert recorded.search("nothing", 3) == []
    assert (meter.recorded_searches, opening.times) == (1, 0)


@pytest.mark.parametrize(
    ("query", "k", "exclude"),
    [("a short poem", 2, frozenset()), ("blue", len(RECORDED) + 1, frozenset()), ("blue", 2, frozenset({"d8"}))],
    ids=["another query", "deeper than the record", "with documents excluded"],
)
def test_what_the_record_does_not_answer_goes_to_the_store(recorded, built, query, k, exclude):
    with metered() as meter:
        found = recorded.search(query, k, exclude)
    assert found == built.of("dense").search(query, k, exclude)
    assert meter.recorded_searches == 0
    assert meter.search_s > 0


def test_the_store_is_opened_once(recorded, opening):
    recorded.search("a short poem", 1)
    recorded.search("the largest moon", 1)
    assert opening.times == 1


def test_searches_add_up(recorded):
    with metered() as meter:
        recorded.search("blue", 1)
        recorded.search("blue", 2)
        recorded.search("a short poem", 1)
        once = meter.search_s
        recorded.search("the largest moon", 1)
    assert meter.recorded_searches == 2
    assert meter.search_s > once > 0


def test_a_search_outside_any_meter_works(recorded):
    assert recorded.search("blue", 1) == RECORDED[:1]


@pytest.mark.parametrize("mode", MODES)
def test_the_record_of_a_mode_agrees_with_a_live_search_to_the_last_bit(built, mode):
    live = built.of(mode)
    record = RecordedRetriever({"blue": live.search("blue", 6)}, 6, lambda: live)
    assert record.search("blue", 3) == live.search("blue", 3)
