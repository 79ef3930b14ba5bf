"""What becomes of unusual texts on the way from a dataset's files to first-pass hits, with the embedded models."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from rag_arena import artifacts
from rag_arena.params import Chunking, Params, RagRouter
from rag_arena.stages.download import download
from rag_arena.stages.index import index
from rag_arena.stages.retrieve import retrieve

FILLER = "The wind blows over the hills again and again. " * 22_000  # 1 MB
TEXTS = {
    "long": f"The Elbe rises in Bohemia. {FILLER}The last word is xylophone.",
    "alps": "The Rhine rises in the Alps.",
    "alps again": "The Rhine rises in the Alps.",
    "russian": "Дунай берёт начало в Шварцвальде.",
    "chinese": "长江发源于青藏高原",
    "arabic": "ينبع نهر النيل من بحيرة فيكتوريا.",
}
ASKED = {
    "start": ("Where does the Elbe rise?", "long"),
    "end": ("Which word is the xylophone?", "long"),
    "russian": ("Где берёт начало Дунай?", "russian"),
    "chinese": ("长江发源于哪里", "chinese"),
    "arabic": ("من أين ينبع نهر النيل؟", "arabic"),
    "twice": ("Where does the Rhine rise?", "alps"),
}


def made(folder: Path, chunking: Chunking | None = None) -> tuple[pa.Table, pa.Table]:
    def write(name: str, rows: list[dict[str, Any]]) -> None:
        (folder / name).write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")

    write("Corpus.json", [{"id": doc_id, "title": "Rivers", "context": text} for doc_id, text in TEXTS.items()])
    question = {"answer": "x", "type": "single_hop"}
    write(
        "Question.json",
        [{"id": q, "question": text, **question, "supporting_facts": [{"doc_id": d}]} for q, (text, d) in ASKED.items()],
    )
    done = download(RagRouter(kind="ragrouter", name="texts", path=str(folder), licence="none", chunking=chunking))
    return done.corpus, done.questions


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, params: Params) -> tuple[pa.Table, pa.Table, pa.Table]:
    corpus, questions = made(tmp_path_factory.mktemp("texts"))
    return corpus, index(corpus, params.embedder, None), questions


def found(mode: str, params: Params, tables: tuple[pa.Table, pa.Table, pa.Table]) -> dict[str, list[str]]:
    hits, _ = retrieve(mode, params, *tables)
    return {question_id: [hit.doc_id for hit in ranking] for question_id, ranking in artifacts.hits_of(hits).items()}


def test_texts_are_kept_character_by_character(whole: tuple[pa.Table, pa.Table, pa.Table]) -> None:
    kept = {row["doc_id"]: row["text"] for row in whole[0].to_pylist()}
    assert kept == TEXTS


def test_the_dense_lane_finds_texts_of_any_script(whole: tuple[pa.Table, pa.Table, pa.Table], params: Params) -> None:
    rankings = found("dense", params, whole)
    assert {name: rankings[name][0] for name in ("russian", "chinese", "arabic")} == {
        "russian": "russian",
        "chinese": "chinese",
        "arabic": "arabic",
    }


def test_the_sparse_lane_finds_words_and_so_no_text_without_spaces(
    whole: tuple[pa.Table, pa.Table, pa.Table], params: Params
) -> None:
    rankings = found("sparse", params, whole)
    assert (rankings["russian"][0], rankings["arabic"][0]) == ("russian", "arabic")
    assert "chinese" not in rankings.get("chinese", [])


def test_of_a_long_document_the_dense_lane_reads_the_beginning_and_the_sparse_lane_all(
    whole: tuple[pa.Table, pa.Table, pa.Table], params: Params
) -> None:
    _, built, _ = whole
    start = artifacts.table(
        artifacts.CORPUS, [{"doc_id": "long", "title": "Rivers", "text": TEXTS["long"][:20_000], "metadata": ()}]
    )
    vectors = {row["doc_id"]: row for row in built.to_pylist()}
    [of_start] = index(start, params.embedder, None).to_pylist()
    assert vectors["long"]["dense"] == of_start["dense"]
    assert found("sparse", params, whole)["end"][0] == "long"
    assert not set(vectors["long"]["sparse_indices"]) <= set(of_start["sparse_indices"])


def test_documents_of_one_text_are_both_kept_side_by_side_in_the_order_of_their_ids(
    whole: tuple[pa.Table, pa.Table, pa.Table], params: Params
) -> None:
    for mode in ("dense", "sparse", "hybrid"):
        assert found(mode, params, whole)["twice"][:2] == ["alps", "alps again"]


def test_cut_into_chunks_a_long_document_is_found_by_its_end_in_every_mode(tmp_path: Path, params: Params) -> None:
    corpus, questions = made(tmp_path, Chunking(characters=500, overlap=0))
    rows = corpus.to_pylist()
    last = max((row["doc_id"] for row in rows if row["doc_id"].startswith("long¶")), key=lambda i: int(i.partition("¶")[2]))
    ends = [row for row in rows if not row["doc_id"].startswith("long¶") or row["doc_id"] in ("long¶1", last)]
    few = artifacts.table(artifacts.CORPUS, ends)
    built = index(few, params.embedder, None)
    for mode in ("dense", "sparse"):
        rankings = found(mode, params, (few, built, questions))
        assert (rankings["start"][0], rankings["end"][0]) == ("long¶1", last)
