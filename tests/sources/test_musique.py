"""RAGRouter's MuSiQue subset, read by `datasets` from a folder in the layout of the hub."""

import json
from pathlib import Path
from typing import Any

import datasets
import pytest

from rag_arena import sources
from rag_arena.errors import ArenaError
from rag_arena.params import Musique
from rag_arena.sources.table import Loaded

CARD = """---
configs:
- config_name: musique
  data_files:
  - split: train
    path: data/musique/Question.json
- config_name: quality
  data_files:
  - split: train
    path: data/quality/Question.json
---
"""
CORPUS = [
    {"id": 0, "title": "Bern", "context": "Bern is the capital of Switzerland."},
    {"id": 1, "title": "Hochdorf", "context": "Hochdorf is a town in Switzerland."},
    {"id": 2, "title": "Hochdorf", "context": "Hochdorf is a village in Germany."},
]
ORIGINAL = {
    "id": "musique_0001",
    "question": "What is the capital of the country in which Hochdorf lies?",
    "answer": "Bern",
    "supporting_facts": [
        {"title": "Bern", "paragraph_text": "Bern is the capital of Switzerland."},
        {"title": "Hochdorf", "paragraph_text": "Hochdorf is a town in Switzerland."},
    ],
    "type": "multi_hop",
}
GENERATED = {
    "id": "musique_2418",
    "question": "Where does the village of Hochdorf lie?",
    "answer": "Germany",
    "supporting_facts": [{"doc_id": 2, "text": "Hochdorf is a village in Germany."}],
    "type": "single_hop",
}
OWN = {
    "id": "2hop__131820_41402",
    "paragraphs": [
        {"idx": 0, "title": "Rhine", "paragraph_text": "Only in MuSiQue's own pool.", "is_supporting": False},
        {"idx": 1, "title": "Bern", "paragraph_text": "Bern is the capital of Switzerland.", "is_supporting": True},
        {"idx": 2, "title": "Hochdorf", "paragraph_text": "Hochdorf is a town in Switzerland.", "is_supporting": True},
    ],
    "question": "What is the capital of the country in which  Hochdorf lies?",
    "question_decomposition": [
        {"id": 131820, "question": "Hochdorf >> country", "answer": "Switzerland", "paragraph_support_idx": 2},
        {"id": 41402, "question": "What is the capital of #1?", "answer": "Bern", "paragraph_support_idx": 1},
    ],
    "answer": "Bern",
    "answer_aliases": ["Berne"],
    "answerable": True,
}


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")


def lines(rows: list[Any]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def dataset(folder: Path, **changes: str) -> Musique:
    values = {"hub": str(folder / "hub"), "config": "musique", "revision": "main", "path": str(folder / "own"), **changes}
    return Musique(kind="musique", name="test", licence="CC-BY-4.0", **values)


def laid_out(folder: Path, corpus: str = lines(CORPUS), questions: str = lines([ORIGINAL, GENERATED]), own: str = "") -> Path:
    place = folder / "hub/data/musique"
    place.mkdir(parents=True)
    (folder / "hub/README.md").write_text(CARD)
    (folder / "hub/data/quality").mkdir()
    for name, text in (("musique/Corpus", corpus), ("musique/Question", questions), ("quality/Question", lines([{"id": 1}]))):
        (folder / f"hub/data/{name}.json").write_text(text, encoding="utf-8")
    (folder / "own").mkdir()
    (folder / "own/README.md").write_text("not read")
    if own:
        (folder / "own/musique_ans_v1.0_dev.jsonl").write_text(own, encoding="utf-8")
    return folder


def loaded(folder: Path, **files: str) -> Loaded:
    return sources.load(dataset(laid_out(folder, **files)))


def refusal(folder: Path, **changes: str) -> str:
    with pytest.raises(ArenaError) as caught:
        sources.load(dataset(folder, **changes))
    assert "\n" not in str(caught.value)
    return str(caught.value).removeprefix(f"{folder}/hub ")


def test_both_tables_come_from_the_configurations_folder(tmp_path):
    found = loaded(tmp_path)
    assert [row["doc_id"] for row in found.corpus] == ["0", "1", "2"]
    assert [(row["question_id"], row["gold_ids"]) for row in found.questions] == [
        ("musique_0001", ["0", "1"]),
        ("musique_2418", ["2"]),
    ]
    assert found.unresolved == []


def test_a_json_array_gives_the_same_tables(tmp_path):
    array = loaded(tmp_path / "array", corpus=json.dumps(CORPUS), questions=json.dumps([ORIGINAL, GENERATED]))
    assert array == loaded(tmp_path / "lines")


def test_supporting_facts_of_all_shapes_may_stand_in_one_file(tmp_path):
    facts = [{"title": "Bern"}, ["Bern", 0], "Bern", {"doc_id": 0, "text": ""}, CORPUS[0]["context"]]
    questions = [{**GENERATED, "id": str(number), "supporting_facts": [fact]} for number, fact in enumerate(facts)]
    found = loaded(tmp_path, questions=lines([ORIGINAL, *questions]))
    assert [row["gold_ids"] for row in found.questions[1:]] == [["0"]] * 5


def test_what_stays_unresolved_is_listed_as_it_was_written(tmp_path):
    questions = [ORIGINAL | {"supporting_facts": [{"title": "Hochdorf"}]}, GENERATED]
    assert loaded(tmp_path, questions=lines(questions)).unresolved == ['musique_0001: {"title": "Hochdorf"}']


def test_without_musiques_own_files_only_what_must_be_generated_is_said_to_be(tmp_path):
    original, generated = loaded(tmp_path).questions
    assert (original["origin"], generated["origin"]) == (None, "generated")
    assert (original["aliases"], original["decomposition"]) == ([], [])


def test_musiques_own_files_bring_back_aliases_and_hops_and_tell_original_from_generated(tmp_path):
    multi_hop = {**ORIGINAL, "id": "musique_2419", "question": "Which country is Bern the capital of?"}
    original, single, other = loaded(tmp_path, questions=lines([ORIGINAL, GENERATED, multi_hop]), own=lines([OWN])).questions
    assert original["aliases"] == ["Berne"]
    assert original["decomposition"] == [
        {"question": "Hochdorf >> country", "answer": "Switzerland", "doc_id": "1"},
        {"question": "What is the capital of #1?", "answer": "Bern", "doc_id": "0"},
    ]
    assert (original["origin"], single["origin"], other["origin"]) == ("original", "generated", "generated")


def test_own_files_of_other_questions_tell_nothing(tmp_path):
    original, _ = loaded(tmp_path, own=lines([OWN | {"question": "Another one?"}])).questions
    assert (original["aliases"], original["origin"]) == ([], None)


def test_an_unknown_configuration_is_refused_with_the_known_ones(tmp_path):
    laid_out(tmp_path)
    assert refusal(tmp_path, config="musik").startswith(
        "(musik, main): BuilderConfig 'musik' not found. Available: ['musique', 'quality']; mend dataset.hub, dataset.config or"
    )


def test_a_dataset_of_another_layout_is_refused(tmp_path):
    laid_out(tmp_path)
    card = tmp_path / "hub/README.md"
    card.write_text(CARD.replace("data/quality/Question.json", "data/*/Question.json"))
    assert refusal(tmp_path, config="quality") == (
        "(quality, main): is 2 files, not one Question.json as in Chaplain0908/RAGRouter; mend dataset.hub"
    )


def test_a_configuration_without_a_corpus_is_refused(tmp_path):
    laid_out(tmp_path)
    assert refusal(tmp_path, config="quality").startswith("(quality, main) Corpus.json: ")


def test_a_file_that_is_not_json_is_refused(tmp_path):
    laid_out(tmp_path, questions='{"id": 1\n{"id": 2}\n')
    assert refusal(tmp_path).startswith("(musique, main) Question.json: ")


def test_a_malformed_question_is_refused_by_its_row(tmp_path):
    laid_out(tmp_path, questions=lines([ORIGINAL, GENERATED | {"type": "riddle"}]))
    assert refusal(tmp_path).startswith("(musique, main) Question.json, row 2: unknown question type 'riddle'; known: ")


def test_a_missing_folder_for_musiques_own_files_is_refused(tmp_path):
    with pytest.raises(
        ArenaError, match=r"own: missing; dataset\.path must be a folder, in which MuSiQue's own \.jsonl files may lie"
    ):
        sources.check(dataset(tmp_path))
