import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from rag_arena.params import Store as StoreParams
from rag_arena.records import Document, Metadata
from rag_arena.retrieval.fusion import reciprocal_rank_fusion
from rag_arena.retrieval.index import Index
from rag_arena.retrieval.store import Store, open_store
from tests.qdrantstub import serve_qdrant

NONE: frozenset[str] = frozenset()
BACKENDS = ["local", "edge", "server"]


def index(vectors, sparse, ids=None, metadata=None) -> Index:
    """Documents with ids that run against the order of the rows, so that no tie is broken by a row number by chance."""
    dense = np.array(vectors, dtype=np.float32)
    dense /= np.linalg.norm(dense, axis=1, keepdims=True)
    ids = ids or [f"d{len(dense) - row:04}" for row in range(len(dense))]
    metadata = metadata or [()] * len(dense)
    terms = tuple((np.array(indices, np.uint32), np.array(values, np.float32)) for indices, values in sparse)
    return Index(tuple(Document(i, "", "x", m) for i, m in zip(ids, metadata, strict=True)), dense, terms)


def opened(backend: StoreParams, held: Index) -> Store:
    return open_store(backend, held)


def ids(ranking) -> list[str]:
    return [doc_id for doc_id, _ in ranking]


def scores(ranking) -> list[float]:
    return [score for _, score in ranking]


def at_angle(cosine: float) -> list[float]:
    return [cosine, math.sqrt(1 - cosine**2)]


@pytest.fixture(scope="module")
def backends() -> Iterator[dict[str, StoreParams]]:
    with serve_qdrant() as server:
        embedded = {name: StoreParams(backend=name) for name in BACKENDS if name != "server"}
        yield {**embedded, "server": StoreParams(backend="server", url=server.url)}


@pytest.fixture(params=BACKENDS)
def backend(request, backends) -> StoreParams:
    return backends[request.param]


@pytest.fixture(scope="module")
def scattered() -> Index:
    """60 documents without ties in either lane."""
    random = np.random.default_rng(5)
    weights = random.uniform(0.5, 2.0, size=(60, 3)).astype(np.float32).tolist()
    sparse = [([1 + row % 3, 4 + row % 2], weights[row][:2]) for row in range(60)]
    return index(random.normal(size=(60, 16)), sparse)


@pytest.fixture(scope="module")
def queries() -> list[tuple]:
    random = np.random.default_rng(6)
    vectors = random.normal(size=(8, 16)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return [(vector, [1 + i % 3, 4], [1.0, 1.0]) for i, vector in enumerate(vectors)]


@pytest.fixture(scope="module")
def every(scattered, backends) -> list[Store]:
    return [opened(backend, scattered) for backend in backends.values()]


@pytest.fixture
def three() -> Index:
    """Dense order of the query [1, 0]: a, b, c. Sparse order of the term 1: b, a; c does not have it."""
    return index([at_angle(0.9), at_angle(0.5), at_angle(0.1)], [([1], [1.0]), ([1], [2.0]), ([2], [1.0])], ["a", "b", "c"])


EAST = np.array([1, 0], dtype=np.float32)


def test_the_dense_lane_orders_by_cosine(backend, three):
    found = opened(backend, three).dense(EAST, 3, NONE)
    assert ids(found) == ["a", "b", "c"]
    assert scores(found) == pytest.approx([0.9, 0.5, 0.1], abs=1e-6)


def test_the_sparse_lane_multiplies_weights_by_inverse_document_frequency(backend, three):
    n_documents, n_with_term = 3, 2
    idf = math.log(1 + (n_documents - n_with_term + 0.5) / (n_with_term + 0.5))
    found = opened(backend, three).sparse([1], [1.0], 3, NONE)
    assert ids(found) == ["b", "a"]
    assert scores(found) == pytest.approx([2.0 * idf, 1.0 * idf], rel=1e-5)


def test_the_stores_own_fusion_gives_textbook_scores(backend, three):
    found = opened(backend, three).fused(EAST, [1], [1.0], 3, 60, NONE)
    assert ids(found) == ["a", "b", "c"]
    assert scores(found) == pytest.approx([1 / (60 + 1) + 1 / (60 + 2), 1 / (60 + 2) + 1 / (60 + 1), 1 / (60 + 3)], rel=1e-6)


@pytest.mark.parametrize("constant", [1, 2, 10])
def test_the_stores_own_fusion_uses_the_constant_given(backend, three, constant):
    found = opened(backend, three).fused(EAST, [1], [1.0], 3, constant, NONE)
    wanted = [1 / (constant + 1) + 1 / (constant + 2)] * 2 + [1 / (constant + 3)]
    assert scores(found) == pytest.approx(wanted, rel=1e-6)


@pytest.mark.parametrize("k", [1, 5, 20, 60])
def test_every_store_gives_the_same_dense_ranking(every, queries, k):
    for vector, _, _ in queries:
        first, *others = (store.dense(vector, k, NONE) for store in every)
        assert len(first) == k
        assert all(ranking == first for ranking in others)


@pytest.mark.parametrize("k", [1, 5, 20, 60])
def test_every_store_gives_the_same_sparse_ranking(every, queries, k):
    for _, indices, values in queries:
        first, *others = (store.sparse(indices, values, k, NONE) for store in every)
        assert first
        for ranking in others:
            assert ids(ranking) == ids(first)
            assert scores(ranking) == pytest.approx(scores(first), rel=1e-5)


@pytest.mark.parametrize("k", [1, 5, 20, 60])
def test_our_fusion_and_qdrants_own_agree_on_every_store(every, queries, k):
    for vector, indices, values in queries:
        for store in every:
            lanes = (store.dense(vector, k, NONE), store.sparse(indices, values, k, NONE))
            ours = reciprocal_rank_fusion(map(ids, lanes), 60)[:k]
            theirs = store.fused(vector, indices, values, k, 60, NONE)
            assert ids(theirs) == ids(ours)
            assert scores(theirs) == pytest.approx(scores(ours), rel=1e-6)


def test_dense_ties_are_broken_by_document_id(backend):
    held = index([at_angle(0.5)] * 7 + [at_angle(0.9)], [([1], [1.0])] * 8)
    found = opened(backend, held).dense(EAST, 8, NONE)
    assert ids(found) == ["d0001", *(f"d{i:04}" for i in range(2, 8 + 1))]


def test_sparse_ties_are_broken_by_document_id(backend):
    held = index([[1, 0]] * 6, [([1], [1.0])] * 5 + [([1], [3.0])])
    assert ids(opened(backend, held).sparse([1], [1.0], 6, NONE)) == ["d0001", *(f"d{i:04}" for i in range(2, 6 + 1))]


@pytest.mark.parametrize("k", [1, 2, 5, 30])
def test_ties_at_the_cut_keep_the_lowest_document_ids(backend, k):
    held = index([at_angle(0.5)] * 40, [([1], [1.0])] * 40)
    store = opened(backend, held)
    lowest = sorted(document.doc_id for document in held.documents)[:k]
    assert ids(store.dense(EAST, k, NONE)) == lowest
    assert ids(store.sparse([1], [1.0], k, NONE)) == lowest


def test_ties_of_the_stores_own_fusion_are_broken_by_document_id(backend):
    held = index([at_angle(0.9), at_angle(0.5)], [([1], [1.0]), ([1], [2.0])], ["b", "a"])
    assert ids(opened(backend, held).fused(EAST, [1], [1.0], 2, 60, NONE)) == ["a", "b"]


@pytest.mark.parametrize("rows", [11, 50])
def test_equal_vectors_of_real_size_tie_whatever_their_rows(backend, rows):
    random = np.random.default_rng(0)
    vectors = random.normal(size=(rows, 384))
    equal = random.choice(rows, size=rows // 3, replace=False)
    vectors[equal] = vectors[equal[0]]
    held = index(vectors, [([1], [1.0])] * rows)
    query = held.dense[equal[0]] + 0.02 * random.normal(size=384).astype(np.float32)
    found = opened(backend, held).dense(query / np.linalg.norm(query), len(equal), NONE)
    assert ids(found) == sorted(held.documents[row].doc_id for row in equal)
    assert len(set(scores(found))) == 1


def test_excluded_documents_are_left_out_and_others_take_their_places(backend, scattered, queries):
    store = opened(backend, scattered)
    vector, indices, values = queries[0]
    for lane in (lambda k, x: store.dense(vector, k, x), lambda k, x: store.sparse(indices, values, k, x)):
        ranking = ids(lane(10, NONE))
        exclude = frozenset(ranking[:8:2])
        assert ids(lane(6, exclude)) == [doc_id for doc_id in ranking if doc_id not in exclude][:6]


def test_the_stores_own_fusion_leaves_excluded_documents_out_of_both_lanes(backend, scattered, queries):
    store = opened(backend, scattered)
    vector, indices, values = queries[0]
    exclude = frozenset(ids(store.fused(vector, indices, values, 5, 60, NONE))[:3])
    lanes = (store.dense(vector, 5, exclude), store.sparse(indices, values, 5, exclude))
    assert ids(store.fused(vector, indices, values, 5, 60, exclude)) == ids(reciprocal_rank_fusion(map(ids, lanes), 60))[:5]


@pytest.fixture
def tenants(backend) -> Store:
    """40 documents, the nearer the lower their number; every tenth is of tenant a, and the last of these of another year."""
    sparse = [([1], [2.0 - row / 40]) for row in range(40)]
    metadata = [
        (("tenant.of document", "a" if row % 10 == 9 else "b"), ("year", "2019" if row == 39 else "2020")) for row in range(40)
    ]
    return opened(
        backend, index([at_angle(1 - row / 40) for row in range(40)], sparse, [f"d{row:02}" for row in range(40)], metadata)
    )


def lanes_of(store: Store, k: int, exclude: frozenset[str], where: Metadata) -> list[list[str]]:
    found = (
        store.dense(EAST, k, exclude, where),
        store.sparse([1], [1.0], k, exclude, where),
        store.fused(EAST, [1], [1.0], k, 60, exclude, where),
    )
    return [ids(ranking) for ranking in found]


OF_A = ("tenant.of document", "a")


def test_only_documents_that_agree_are_searched_so_that_k_of_them_come_back_however_far_they_are(tenants):
    assert lanes_of(tenants, 3, NONE, (OF_A,)) == [["d09", "d19", "d29"]] * 3


def test_documents_must_agree_in_every_column(tenants):
    assert lanes_of(tenants, 3, NONE, (OF_A, ("year", "2019"))) == [["d39"]] * 3


def test_excluded_documents_are_left_out_of_those_that_agree(tenants):
    assert lanes_of(tenants, 2, frozenset({"d09", "d01"}), (OF_A,)) == [["d19", "d29"]] * 3


@pytest.mark.parametrize("where", [("tenant.of document", "c"), ("language", "a")], ids=["unknown value", "unknown column"])
def test_nothing_is_found_where_no_document_agrees(tenants, where):
    assert lanes_of(tenants, 2, NONE, (where,)) == [[]] * 3


def test_a_document_without_a_value_agrees_with_none(backend):
    store = opened(backend, index([at_angle(0.9), at_angle(0.5)], [([1], [1.0])] * 2, ["a", "b"], [(), (("year", "2020"),)]))
    assert lanes_of(store, 2, NONE, (("year", "2020"),)) == [["b"]] * 3


def test_nothing_is_left_when_everything_is_excluded(backend, three):
    store = opened(backend, three)
    every = frozenset("abc")
    assert store.dense(EAST, 3, every) == []
    assert store.sparse([1], [1.0], 3, every) == []
    assert store.fused(EAST, [1], [1.0], 3, 60, every) == []


def test_more_documents_than_there_are_cannot_be_had(backend, three):
    store = opened(backend, three)
    assert len(store.dense(EAST, 100, NONE)) == 3
    assert len(store.sparse([1], [1.0], 100, NONE)) == 2
    assert len(store.fused(EAST, [1], [1.0], 100, 60, NONE)) == 3


@pytest.mark.parametrize("terms", [([], []), ([99], [1.0])], ids=["no terms", "unknown term"])
def test_a_query_that_shares_no_term_finds_nothing_in_the_sparse_lane(backend, three, terms):
    assert opened(backend, three).sparse(*terms, 3, NONE) == []


@pytest.mark.parametrize("terms", [([], []), ([99], [1.0])], ids=["no terms", "unknown term"])
def test_a_query_that_shares_no_term_is_fused_from_the_dense_lane_alone(backend, three, terms):
    found = opened(backend, three).fused(EAST, *terms, 3, 60, NONE)
    assert ids(found) == ["a", "b", "c"]
    assert scores(found) == pytest.approx([1 / (60 + 1), 1 / (60 + 2), 1 / (60 + 3)], rel=1e-6)


def test_a_document_without_terms_is_found_by_its_vector_alone(backend):
    store = opened(backend, index([at_angle(0.9), at_angle(0.5)], [([], []), ([1], [1.0])], ["a", "b"]))
    assert ids(store.dense(EAST, 2, NONE)) == ["a", "b"]
    assert ids(store.sparse([1], [1.0], 2, NONE)) == ["b"]


def test_every_document_of_a_large_index_is_held(backend):
    rows = 1100
    held = index([at_angle(row / rows) for row in range(rows)], [([row], [1.0]) for row in range(rows)])
    store = opened(backend, held)
    assert len(store.dense(EAST, rows, NONE)) == rows
    for row in (0, 511, 512, 1023, 1024, rows - 1):
        assert ids(store.sparse([row], [1.0], 5, NONE)) == [held.documents[row].doc_id]


def test_an_index_knows_its_documents_by_id(three):
    assert [three.row_of[i] for i in "abc"] == [0, 1, 2]
    assert three.document("b") is three.documents[1]


def test_terms_weigh_by_inverse_document_frequency_only_where_the_index_wants_it(backend):
    # the term 1 is in two documents of three, the term 2 in one: as BM25 the rarer counts more, as learnt weights it does not
    held = index([at_angle(0.9), at_angle(0.5), at_angle(0.1)], [([1], [3.0]), ([1], [1.0]), ([2], [2.0])], ["a", "b", "c"])
    as_bm25, as_learnt = (opened(backend, replace(held, idf=idf)).sparse([1, 2], [1.0, 1.0], 2, NONE) for idf in (True, False))
    assert as_learnt == [("a", pytest.approx(3.0)), ("c", pytest.approx(2.0))]
    idf = [math.log(1 + (3 - n + 0.5) / (n + 0.5)) for n in (1, 2)]
    assert as_bm25 == [("c", pytest.approx(2.0 * idf[0], rel=1e-5)), ("a", pytest.approx(3.0 * idf[1], rel=1e-5))]
