import json
from pathlib import Path
from typing import Any

import pytest

from rag_arena import sources
from rag_arena.errors import ArenaError
from rag_arena.params import MusiqueOfficial
from rag_arena.sources.table import Loaded


def paragraph(idx: int, title: str, text: str, supports: bool = False) -> dict[str, Any]:
    return {"idx": idx, "title": title, "paragraph_text": text, "is_supporting": supports}


HOPS = [
    {"id": 131820, "question": "Hochdorf >> country", "answer": "Switzerland", "paragraph_support_idx": 2},
    {"id": 41402, "question": "What is the capital of #1?", "answer": "Bern", "paragraph_support_idx": 0},
]
FIRST = {
    "id": "2hop__131820_41402",
    "paragraphs": [
        paragraph(0, "Bern", "Bern is the capital of Switzerland.", True),
        paragraph(1, "Rhine", "The Rhine rises in the Alps."),
        paragraph(2, "Hochdorf", "Hochdorf is a town in Switzerland.", True),
    ],
    "question": "What is the capital of the country in which Hochdorf lies?",
    "question_decomposition": HOPS,
    "answer": "Bern",
    "answer_aliases": ["Berne"],
    "answerable": True,
}
SECOND = {
    "id": "2hop__131820_99999",
    "paragraphs": [
        paragraph(0, "Rhine", "The Rhine rises in the Alps.", True),
        paragraph(1, "Hochdorf", "Hochdorf is a town in Switzerland.", True),
        paragraph(2, "Hochdorf", "Hochdorf is a village in Germany."),
    ],
    "question": "Where does the longest river of the country of Hochdorf rise?",
    "question_decomposition": [],
    "answer": "the Alps",
    "answer_aliases": [],
    "answerable": True,
}


def dataset(path: Path, limit: int | None = None) -> MusiqueOfficial:
    return MusiqueOfficial(kind="musique_official", name="test", path=str(path), licence="CC-BY-4.0", limit=limit)


def loaded(folder: Path, *rows: dict[str, Any]) -> Loaded:
    path = folder / "dev.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return sources.load(dataset(path))


def refusal(folder: Path, *rows: dict[str, Any]) -> str:
    with pytest.raises(ArenaError) as caught:
        loaded(folder, *rows)
    return str(caught.value).removeprefix(f"{folder}/")


def test_the_paragraphs_of_all_questions_become_one_corpus_in_which_titles_may_repeat(tmp_path):
    assert [(row["doc_id"], row["title"], row["text"]) for row in loaded(tmp_path, FIRST, SECOND).corpus] == [
        ("0", "Bern", "Bern is the capital of Switzerland."),
        ("1", "Rhine", "The Rhine rises in the Alps."),
        ("2", "Hochdorf", "Hochdorf is a town in Switzerland."),
        ("3", "Hochdorf", "Hochdorf is a village in Germany."),
    ]


def test_a_limit_reads_the_first_questions_with_their_paragraphs_alone(tmp_path):
    loaded(tmp_path, FIRST, SECOND)
    found = sources.load(dataset(tmp_path / "dev.jsonl", limit=1))
    assert ([row["question_id"] for row in found.questions], len(found.corpus)) == (["2hop__131820_41402"], 3)


def test_supporting_paragraphs_are_gold_in_the_order_in_which_the_hops_need_them(tmp_path):
    assert loaded(tmp_path, FIRST).questions == [
        {
            "question_id": "2hop__131820_41402",
            "question": FIRST["question"],
            "answer": "Bern",
            "aliases": ["Berne"],
            "question_type": "multi_hop",
            "gold_ids": ["2", "0"],
            "decomposition": [
                {"question": "Hochdorf >> country", "answer": "Switzerland", "doc_id": "2"},
                {"question": "What is the capital of #1?", "answer": "Bern", "doc_id": "0"},
            ],
            "origin": "original",
        }
    ]


def test_without_a_decomposition_gold_documents_keep_the_order_of_the_paragraphs(tmp_path):
    [question] = loaded(tmp_path, SECOND).questions
    assert (question["gold_ids"], question["decomposition"]) == (["0", "1"], [])


def test_a_hop_may_name_no_paragraph(tmp_path):
    hops = [HOPS[0], {**HOPS[1], "paragraph_support_idx": None}]
    [question] = loaded(tmp_path, FIRST | {"question_decomposition": hops}).questions
    assert [hop["doc_id"] for hop in question["decomposition"]] == ["2", None]
    assert question["gold_ids"] == ["2", "0"]


def test_a_supporting_paragraph_without_text_is_listed_as_unresolved(tmp_path):
    found = loaded(tmp_path, FIRST | {"paragraphs": [paragraph(0, "Bern", " ", True), *FIRST["paragraphs"][1:]]})
    assert found.questions[0]["gold_ids"] == ["1"], "Hochdorf, the second paragraph with a text"
    assert found.unresolved == ["2hop__131820_41402: paragraph 0 has no text"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"id": ""}, "id is missing or empty"),
        ({"question": None}, "question is missing or empty"),
        ({"answer": None}, "answer is missing or empty"),
        (
            {"answerable": False},
            "question '2hop__131820_41402' is unanswerable; use a file of MuSiQue-Ans, not MuSiQue-Full",
        ),
        (
            {"paragraphs": [paragraph(0, "Bern", "Bern is a city.")]},
            "question '2hop__131820_41402' has no paragraph that is_supporting; recall needs gold documents",
        ),
        (
            {"paragraphs": [{"idx": 0, "title": "Bern", "text": "Bern is a city."}]},
            "an entry of paragraphs lacks idx, title, paragraph_text or is_supporting",
        ),
        ({"paragraphs": {"0": "Bern"}}, "paragraphs is not a list"),
        (
            {"question_decomposition": [{"id": 1}]},
            "an entry of question_decomposition lacks question, answer or paragraph_support_idx",
        ),
        ({"answer_aliases": "Berne"}, "answer_aliases is not a list"),
    ],
)
def test_a_malformed_question_is_refused_by_its_line(tmp_path, changes, message):
    assert refusal(tmp_path, SECOND, FIRST | changes) == f"dev.jsonl:2: {message}"


def test_an_id_that_occurs_twice_is_refused(tmp_path):
    said = "question id '2hop__131820_41402' occurs twice; ids must be unique"
    assert refusal(tmp_path, FIRST, FIRST) == f"dev.jsonl:2: {said}"


def test_a_file_without_questions_is_refused(tmp_path):
    assert refusal(tmp_path) == "dev.jsonl: no questions; the file is empty"


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(ArenaError, match=r"dev\.jsonl: missing; dataset\.path must be a file of MuSiQue-Ans"):
        sources.check(dataset(tmp_path / "dev.jsonl"))
