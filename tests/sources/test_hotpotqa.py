import json
from pathlib import Path
from typing import Any

import pytest

from rag_arena import sources
from rag_arena.errors import ArenaError
from rag_arena.params import HotpotQa, TwoWiki
from rag_arena.sources.table import Loaded

RHINE = ["Rhine", ["The Rhine rises in the Alps.", " It flows into the North Sea."]]
ALPS = ["Alps", ["The Alps are mountains."]]
ELBE = ["Elbe", ["The Elbe rises in Bohemia."]]
FIRST = {
    "_id": "5a7a06935542990198eaf050",
    "question": "What kind of landform is the source of the Rhine?",
    "answer": "mountains",
    "type": "bridge",
    "level": "medium",
    "supporting_facts": [["Rhine", 0], ["Rhine", 1], ["Alps", 0]],
    "context": [ELBE, RHINE, ALPS],
}
SECOND = {
    "_id": "5a8b57f25542995d1e6f1371",
    "question": "Do the Elbe and the Rhine rise in the same country?",
    "answer": "no",
    "type": "comparison",
    "level": "hard",
    "supporting_facts": [["Elbe", 0], ["Rhine", 0]],
    "context": [RHINE, ELBE, ["Danube", ["The Danube rises in the Black Forest."]]],
}


def loaded(folder: Path, rows: Any, kind: str = "hotpotqa", limit: int | None = None) -> Loaded:
    path = folder / "dev.json"
    path.write_text(rows if isinstance(rows, str) else json.dumps(rows), encoding="utf-8")
    section = {"hotpotqa": HotpotQa, "2wikimultihopqa": TwoWiki}[kind]
    return sources.load(section(kind=kind, name="test", path=str(path), licence="CC-BY-SA-4.0", limit=limit))


def refusal(folder: Path, rows: Any) -> str:
    with pytest.raises(ArenaError) as caught:
        loaded(folder, rows)
    return str(caught.value).removeprefix(f"{folder}/")


def test_the_pools_of_all_questions_become_one_corpus_without_repetition(tmp_path):
    assert loaded(tmp_path, [FIRST, SECOND]).corpus == [
        {"doc_id": "0", "title": "Elbe", "text": "The Elbe rises in Bohemia."},
        {"doc_id": "1", "title": "Rhine", "text": "The Rhine rises in the Alps. It flows into the North Sea."},
        {"doc_id": "2", "title": "Alps", "text": "The Alps are mountains."},
        {"doc_id": "3", "title": "Danube", "text": "The Danube rises in the Black Forest."},
    ]


def test_a_limit_reads_the_first_questions_with_their_paragraphs_alone(tmp_path):
    found = loaded(tmp_path, [FIRST, SECOND], limit=1)
    assert [row["question_id"] for row in found.questions] == [FIRST["_id"]]
    assert [row["title"] for row in found.corpus] == ["Elbe", "Rhine", "Alps"]


def test_paragraphs_of_supporting_facts_are_the_gold_documents_each_once_and_in_order(tmp_path):
    first, second = loaded(tmp_path, [FIRST, SECOND]).questions
    assert (first["gold_ids"], second["gold_ids"]) == (["1", "2"], ["0", "1"])
    assert first == {
        "question_id": FIRST["_id"],
        "question": FIRST["question"],
        "answer": "mountains",
        "aliases": [],
        "question_type": "multi_hop",
        "origin": "original",
        "gold_ids": ["1", "2"],
        "decomposition": [],
    }


def test_a_title_means_the_paragraph_of_the_questions_own_pool(tmp_path):
    namesake = ["Elbe", ["Elbe is a village in Lower Saxony."]]
    found = loaded(tmp_path, [FIRST, SECOND | {"context": [RHINE, namesake]}])
    assert [row["text"] for row in found.corpus if row["doc_id"] in found.questions[1]["gold_ids"]] == [
        "The Rhine rises in the Alps. It flows into the North Sea.",
        "Elbe is a village in Lower Saxony.",
    ]
    assert found.unresolved == []


@pytest.mark.parametrize(
    ("context", "why"),
    [
        ([RHINE], "its title is not in the pool"),
        ([RHINE, ALPS, ["Alps", ["Alps is a film."]]], "two paragraphs of the pool bear its title"),
        ([RHINE, ["Alps", []]], "its paragraph has no text, and is no document"),
        ([RHINE, ["Alps", [" "]]], "its paragraph has only spaces"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_supporting_fact_without_one_paragraph_is_listed_as_unresolved(tmp_path, context, why):
    found = loaded(tmp_path, [FIRST | {"context": context}])
    assert found.questions[0]["gold_ids"] == ["0"]
    assert found.unresolved == [f'{FIRST["_id"]}: ["Alps", 0]']


def test_the_triples_of_2wikimultihopqa_become_hops_with_the_gold_document_of_their_subject(tmp_path):
    evidences = [["Rhine", "source", "Alps"], ["the Alps", "instance of", "mountains"]]
    [question] = loaded(tmp_path, [FIRST | {"evidences": evidences}], "2wikimultihopqa").questions
    assert question["decomposition"] == [
        {"question": "Rhine >> source", "answer": "Alps", "doc_id": "1"},
        {"question": "the Alps >> instance of", "answer": "mountains", "doc_id": None},
    ]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"_id": None}, "_id or id is missing or empty"),
        ({"question": " "}, "question is missing or empty"),
        ({"answer": ""}, "answer is missing or empty"),
        ({"answer": None}, "no answer; use the file of the dev or train set, since the test set has none"),
        ({"supporting_facts": []}, f"question {FIRST['_id']!r} has no supporting_facts; recall needs gold documents"),
        ({"supporting_facts": ["Rhine"]}, "an entry of supporting_facts is not [title, number of the sentence]"),
        ({"supporting_facts": {"title": ["Rhine"]}}, "supporting_facts is not a list"),
        ({"context": [["Rhine", "The Rhine rises in the Alps."]]}, "an entry of context is not [title, [sentence, …]]"),
        ({"context": [{"title": "Rhine"}]}, "an entry of context is not [title, [sentence, …]]"),
        ({"evidences": [["Rhine", "source"]]}, "an entry of evidences is not [subject, relation, object]"),
    ],
)
def test_a_malformed_question_is_refused_by_its_entry(tmp_path, changes, message):
    assert refusal(tmp_path, [SECOND, FIRST | changes]) == f"dev.json, entry 2: {message}"


def test_an_id_that_occurs_twice_is_refused(tmp_path):
    assert (
        refusal(tmp_path, [FIRST, FIRST]) == f"dev.json, entry 2: question id {FIRST['_id']!r} occurs twice; ids must be unique"
    )


def test_a_file_without_questions_is_refused(tmp_path):
    assert refusal(tmp_path, "[]") == "dev.json: no questions; the file is empty"


def test_a_file_that_is_cut_short_is_refused(tmp_path):
    assert refusal(tmp_path, json.dumps([FIRST])[:-20]).startswith("dev.json:1: not JSON (")


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(ArenaError, match=r"dev\.json: missing; dataset\.path must be the dataset's JSON file"):
        sources.check(HotpotQa(kind="hotpotqa", name="test", path=str(tmp_path / "dev.json"), licence="none"))
