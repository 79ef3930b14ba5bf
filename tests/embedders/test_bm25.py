import pytest

from rag_arena.embedders.bm25 import Bm25


@pytest.fixture(scope="module")
def bm25(params) -> Bm25:
    return Bm25(params.embedder.bm25)


def test_a_term_of_the_query_is_the_same_dimension_in_the_document(bm25):
    document, query = bm25.document("The cat sat on the mat."), bm25.query("cat")
    assert len(query.indices) == 1
    assert set(query.indices) < set(document.indices)


def test_each_term_of_a_query_weighs_one(bm25):
    assert bm25.query("cat cat mat").values == [1.0, 1.0]


def test_a_document_term_has_its_bm25_weight(params, bm25):
    set_to = params.embedder.bm25
    words = ["cat", "cat", "mat"]
    weights = dict(zip(*(lambda s: (s.indices, s.values))(bm25.document(" ".join(words))), strict=True))
    length = 1 - set_to.b + set_to.b * len(words) / set_to.average_words
    assert weights[bm25.query("cat").indices[0]] == pytest.approx(2 * (set_to.k + 1) / (2 + set_to.k * length))
    assert weights[bm25.query("mat").indices[0]] == pytest.approx(1 * (set_to.k + 1) / (1 + set_to.k * length))


@pytest.mark.parametrize("text", ["", "the of and", "?!"])
def test_a_text_without_terms_has_no_sparse_weights(bm25, text):
    assert (list(bm25.query(text).indices), list(bm25.document(text).indices)) == ([], [])
