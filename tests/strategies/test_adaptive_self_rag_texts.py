"""adaptive_self_rag's readers of texts: exact terms of a question, lists in replies, documents within a budget."""

import pytest

from rag_arena.records import Document, Hit
from rag_arena.strategies.adaptive_self_rag.context import best_within
from rag_arena.strategies.adaptive_self_rag.replies import claims_of, queries_of
from rag_arena.strategies.adaptive_self_rag.terms import exact_terms, lost


@pytest.mark.parametrize(
    ("question", "terms"),
    [
        ("How do I fix error 504 on endpoint /api/v1/auth?", ["504", "/api/v1/auth"]),
        ("Where does the Rhine begin?", ["Rhine"]),
        ("On which island did Austen's reader's architect die?", ["Austen"]),
        ("What does ERR_CONN mean in app.config, v1.2.3?", ["ERR_CONN", "app.config", "v1.2.3"]),
        ("Is NASA older than iPhone?", ["NASA", "iPhone"]),
        ('Who wrote "the old man" and \u201cA Farewell\u201d?', ["the old man", "A Farewell"]),
        ("Does it cost $5 or 3.5%?", ["$5", "3.5%"]),
        ("In 1930s Massachusetts, which city?", ["1930s", "Massachusetts"]),
        ("Who is it, and the Rhine of the Rhine?", ["Rhine"]),
        ("Die Z\u00fcrich \u00d6resund?", ["Die", "Z\u00fcrich", "\u00d6resund"]),
        ("which river is longest?", []),
        ("", []),
    ],
)
def test_exact_terms_are_names_numbers_codes_paths_and_quotations(question: str, terms: list[str]) -> None:
    assert exact_terms(question) == terms


@pytest.mark.parametrize(
    ("terms", "queries", "missing"),
    [
        (["Rhine", "504"], ["source of the Rhine"], ["504"]),
        (["Rhine"], ["Rhineland castles"], ["Rhine"]),
        (["5"], ["1952 film"], ["5"]),
        (["Rhine", "Alps"], ["Rhine river", "where are the Alps"], []),
        (["Rhine"], ["rhine"], ["Rhine"]),
        (["$5", "C++"], ["is it $5 in C++?"], []),
        ([], ["anything"], []),
    ],
)
def test_a_term_is_lost_when_no_query_holds_it_as_a_whole_word_in_the_same_letters(
    terms: list[str], queries: list[str], missing: list[str]
) -> None:
    assert lost(terms, queries) == missing


@pytest.mark.parametrize(
    ("reply", "queries"),
    [
        ("source of the Rhine", ["source of the Rhine"]),
        ('- "Rhine source"\n\n* Alps', ["Rhine source", "Alps"]),
        ("1. Rhine\n2) Alps\n3. Elbe", ["Rhine", "Alps"]),
        ("Query: Rhine\nSearch query 2: Alps", ["Rhine", "Alps"]),
        ("Question: Where is the Rhine?", ["Where is the Rhine?"]),
        ("The answer to this question is: Rhine\nWords to keep: 1492", ["Rhine", "1492"]),
        ("Searched for: Searched for: Rhine", ["Rhine"]),
        ("what opens at 10:30 on /a:b", ["what opens at 10:30 on /a:b"]),
        ("Query:\nAnswer: ", []),
        ("Rhine\nRhine\nAlps", ["Rhine", "Alps"]),
        ("1952 film", ["1952 film"]),
        ("...\n--\n", []),
        ("", []),
        ("x" * 100_000, ["x" * 300]),
    ],
)
def test_queries_are_the_lines_of_a_reply_without_marks_and_labels(reply: str, queries: list[str]) -> None:
    assert queries_of(reply, 2) == queries


@pytest.mark.parametrize(
    ("reply", "claims"),
    [
        ("- The Rhine begins in Tyrol.", ["The Rhine begins in Tyrol."]),
        ("None", []),
        ("Einstein was born in Ulm", []),
        ('{"claims": [', []),
        ("It was in 1952", ["It was in 1952"]),
        ("Rhine\nTyrol\nbegins", ["Rhine", "Tyrol"]),
    ],
)
def test_claims_are_lines_that_speak_of_the_answer(reply: str, claims: list[str]) -> None:
    assert claims_of(reply, "The Rhine begins in Tyrol, known since 1952.", 2) == claims


DOCUMENTS = {name: Document(name, "", name * size) for name, size in {"a": 10, "b": 20, "c": 30, "d": 10}.items()}


@pytest.mark.parametrize(
    ("scores", "k", "budget", "chosen"),
    [
        ({"a": 0.8, "b": 0.9}, 2, 32, ["b", "a"]),  # 20 + 2 + 10 = 32
        ({"a": 0.8, "b": 0.9}, 2, 31, ["b"]),
        ({"a": 0.8, "b": 0.9, "c": 0.85}, 3, 40, ["b", "a"]),  # c does not fit beside b, a does
        ({"a": 0.8, "d": 0.8}, 1, 99, ["a"]),  # equal scores by id
        ({"a": 0.8, "b": 0.9, "c": 0.7}, 2, 99, ["b", "a"]),
        ({}, 3, 99, []),
    ],
)
def test_the_best_documents_that_fit_are_chosen(scores: dict[str, float], k: int, budget: int, chosen: list[str]) -> None:
    hits, cut = best_within([Hit(name, p, 0.0) for name, p in scores.items()], k, budget, DOCUMENTS.__getitem__)
    assert [hit.doc_id for hit in hits] == chosen
    assert cut == {}


def test_the_best_document_is_cut_rather_than_left_out() -> None:
    long = Document("long", "Rhine", "It begins high up in the Alps.")
    hits, cut = best_within([Hit("long", 0.9, 0.0)], 2, len("Rhine: It begins hi"), {"long": long}.__getitem__)
    assert [hit.doc_id for hit in hits] == ["long"]
    assert cut == {"long": Document("long", "Rhine", "It begins")}


@pytest.mark.parametrize(
    ("budget", "text"),
    [("It begins", "It begins"), ("It begins ", "It begins"), ("It beg", "It"), ("It", "It"), ("I", "I"), ("", "")],
)
def test_a_cut_falls_between_words(budget: str, text: str) -> None:
    long = Document("long", "", "It begins high up.")
    _, cut = best_within([Hit("long", 0.9, 0.0)], 1, len(budget), {"long": long}.__getitem__)
    assert cut["long"].text == text
