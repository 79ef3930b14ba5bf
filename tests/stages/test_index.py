import hashlib

import numpy as np
import pyarrow as pa
import pytest

from rag_arena import artifacts, embedders
from rag_arena.errors import ArenaError
from rag_arena.retrieval.index import join
from rag_arena.stages.index import index

ROWS = [
    {"doc_id": "2", "title": "Niger River", "text": "It bends south near Timbuktu.", "metadata": ()},
    {"doc_id": "1", "title": "Sonnet", "text": "A poem of fourteen lines.", "metadata": ()},
    {"doc_id": "3", "title": "", "text": "No title.", "metadata": ()},
]
MARK = [0.5] * 384


def corpus(rows=ROWS) -> pa.Table:
    return artifacts.table(artifacts.CORPUS, rows)


def changed(which: str, **fields: str) -> pa.Table:
    return corpus([row | fields if row["doc_id"] == which else row for row in ROWS])


def marked(built: pa.Table) -> pa.Table:
    """An earlier index with vectors that no text has: where they come back, nothing was embedded."""
    note = {"arena.embedder": built.schema.metadata[b"arena.embedder"].decode()}
    return artifacts.table(artifacts.INDEX, [row | {"dense": MARK} for row in built.to_pylist()], note)


def kept(built: pa.Table) -> set[str]:
    return {row["doc_id"] for row in built.to_pylist() if row["dense"] == MARK}


@pytest.fixture(scope="module")
def settings(params):
    return params.embedder


@pytest.fixture(scope="module")
def built(settings) -> pa.Table:
    return index(corpus(), settings, None)


@pytest.fixture
def other(settings):
    return settings.model_copy(update={"max_tokens": settings.max_tokens - 1})


def test_each_document_has_the_vectors_of_its_title_and_text(settings, built):
    embedder = embedders.load(settings)
    text = "Niger River\nIt bends south near Timbuktu."
    [[embedded]] = embedder.documents([[text]])
    sparse = embedded.sparse
    assert built.to_pylist()[1] == {
        "doc_id": "2",
        "text_sha256": hashlib.sha256(text.encode()).hexdigest(),
        "dense": embedder.dense(text).tolist(),
        "sparse_indices": list(sparse.indices),
        "sparse_values": pytest.approx(list(sparse.values), rel=1e-6),
    }


def test_an_untitled_document_is_indexed_by_its_text_alone(built):
    assert built["text_sha256"].to_pylist()[2] == hashlib.sha256(b"No title.").hexdigest()


def test_the_index_names_its_embedder(settings, built):
    assert built.schema.metadata[b"arena.embedder"].decode() == embedders.load(settings).identity


def test_two_builds_are_byte_identical(settings, built, tmp_path):
    artifacts.write(tmp_path / "one.parquet", built)
    artifacts.write(tmp_path / "two.parquet", index(corpus(ROWS[::-1]), settings, None))
    assert (tmp_path / "one.parquet").read_bytes() == (tmp_path / "two.parquet").read_bytes()


def test_a_build_from_an_earlier_index_is_byte_identical_to_one_from_scratch(settings, built, tmp_path):
    artifacts.write(tmp_path / "earlier.parquet", index(corpus(ROWS[:2]), settings, None))
    earlier = artifacts.read(tmp_path / "earlier.parquet", artifacts.INDEX)
    artifacts.write(tmp_path / "one.parquet", built)
    artifacts.write(tmp_path / "two.parquet", index(corpus(), settings, earlier))
    assert (tmp_path / "one.parquet").read_bytes() == (tmp_path / "two.parquet").read_bytes()


def test_unchanged_documents_are_not_embedded_again(settings, built):
    assert kept(index(corpus(), settings, marked(built))) == {"1", "2", "3"}


@pytest.mark.parametrize("fields", [{"text": "A poem of 14 lines."}, {"title": "Sonnets"}], ids=["text", "title"])
def test_a_changed_document_alone_is_embedded_again(settings, built, fields):
    again = index(changed("1", **fields), settings, marked(built))
    assert kept(again) == {"2", "3"}
    assert again["dense"][0].as_py() == index(changed("1", **fields), settings, None)["dense"][0].as_py()


def test_a_document_that_only_changes_its_id_is_not_embedded_again(settings, built):
    assert kept(index(changed("1", doc_id="9"), settings, marked(built))) == {"2", "3", "9"}


def test_a_document_that_left_the_corpus_leaves_the_index(settings, built):
    assert index(corpus(ROWS[:1]), settings, built)["doc_id"].to_pylist() == ["2"]


def test_documents_of_equal_text_have_equal_vectors(settings):
    twins = index(corpus([ROWS[0], ROWS[0] | {"doc_id": "9"}]), settings, None).to_pylist()
    assert twins[0] | {"doc_id": "9"} == twins[1]


def test_another_embedder_embeds_everything_anew(built, other):
    assert kept(index(corpus(), other, marked(built))) == set()


def test_an_earlier_index_that_names_no_embedder_is_not_used(settings, built):
    assert kept(index(corpus(), settings, marked(built).replace_schema_metadata(None))) == set()


def test_corpus_and_index_are_joined_row_by_row(settings, built):
    joined = join(corpus(), built, embedders.load(settings))
    assert [d.doc_id for d in joined.documents] == ["1", "2", "3"]
    assert joined.document("2").text == ROWS[0]["text"]
    assert joined.dense.dtype == np.float32
    assert joined.dense.tolist() == built["dense"].to_pylist()
    for column, name in enumerate(("sparse_indices", "sparse_values")):
        assert [row[column].tolist() for row in joined.sparse] == built[name].to_pylist()


@pytest.mark.parametrize("metadata", [None, {"arena.embedder": "glove"}])
def test_an_index_of_another_embedder_is_refused(settings, built, metadata):
    with pytest.raises(ArenaError, match=r"^data/index\.parquet: built by another embedder \(.*\); run `dvc repro index`$"):
        join(corpus(), built.replace_schema_metadata(metadata), embedders.load(settings))


@pytest.mark.parametrize(
    "table",
    [corpus(ROWS[:2]), corpus([*ROWS, ROWS[0] | {"doc_id": "9"}]), changed("1", doc_id="9"), changed("1", text="Another text.")],
    ids=["fewer documents", "more documents", "another id", "another text"],
)
def test_an_index_of_another_corpus_is_refused(settings, built, table):
    with pytest.raises(ArenaError, match=r"^data/index\.parquet: built from another corpus; run `dvc repro index`$"):
        join(table, built, embedders.load(settings))
