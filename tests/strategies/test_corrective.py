"""corrective: its actions at the borders of the thresholds, its strips, and the graph from end to end."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from pydantic import ValidationError

from rag_arena.llm.ledger import Ledger
from rag_arena.records import Document
from rag_arena.retrieval.retriever import Retrievers
from rag_arena.retrieval.web import WebSearch
from rag_arena.strategies.corrective.graph import Settings
from rag_arena.strategies.corrective.nodes import action_of, keywords
from rag_arena.strategies.corrective.strips import Strip, best, recomposed, split
from rag_arena.strategies.prompts import Prompts
from tests.strategies.harness import DOCUMENTS, QUESTION, Answers, hit, path
from tests.stub import Answer, Body, completion, serve, words
from tests.webstub import PAGES, both

UPPER, LOWER = 0.7, 0.3
REWRITE_TOKENS = 8


def settings(**changes: Any) -> Settings:
    defaults = {
        "k": 2,
        "max_tokens": 16,
        "grader": "cross_encoder",
        "relevance": {"tau": 0.5, "temperature": 0.1},
        "upper": UPPER,
        "lower": LOWER,
        "strips": "sentences",
        "strip_length": 1,
        "strip_filter": 0.2,
        "max_strips": 5,
        "elsewhere": "second_lane",
        "widen_factor": 2,
        "rewrite_tokens": REWRITE_TOKENS,
        "web": {"base_url": "", "api_key_env": ""},
    }
    return Settings.model_validate({**defaults, **changes})


def by_word(scores: dict[str, float]) -> Callable[[str, Sequence[str]], list[float]]:
    """A reranker that goes by the first word of these that a text holds; 0 without any."""
    return lambda query, texts: [next((p for word, p in scores.items() if word in text), 0.0) for text in texts]


def rewriting(keywords: str) -> Callable[[Body], Answer]:
    return lambda body: completion(keywords if body["max_tokens"] == REWRITE_TOKENS else "In the Alps.")


# The action


@pytest.mark.parametrize(
    ("scores", "action"),
    [
        ([UPPER], "correct"),
        ([0.0, UPPER, 0.0], "correct"),
        ([UPPER - 1e-9], "ambiguous"),
        ([LOWER], "ambiguous"),
        ([0.0, LOWER], "ambiguous"),
        ([LOWER - 1e-9], "incorrect"),
        ([LOWER - 1e-9, 0.0], "incorrect"),
        ([], "incorrect"),
    ],
)
def test_any_score_from_upper_on_is_correct_all_under_lower_incorrect_and_the_rest_ambiguous(
    scores: list[float], action: str
) -> None:
    assert action_of(scores, UPPER, LOWER) == action


def test_where_both_thresholds_are_one_nothing_is_ambiguous() -> None:
    assert [action_of([p], 0.5, 0.5) for p in (0.5 - 1e-9, 0.5)] == ["incorrect", "correct"]


def test_upper_may_not_be_under_lower() -> None:
    with pytest.raises(ValidationError, match=r"upper \(0\.2\) must not be under lower \(0\.3\)"):
        settings(upper=0.2, lower=0.3)


@pytest.mark.parametrize(
    ("grader", "k", "calls"),
    [
        ("cross_encoder", 3, len(["keywords", "answer"])),
        ("llm", 3, 3 * len(["word", "JSON"]) + len(["keywords", "answer"])),
    ],
)
def test_the_bound_of_calls(grader: str, k: int, calls: int) -> None:
    assert settings(grader=grader, k=k).max_calls == calls


# Strips


@pytest.mark.parametrize(
    ("unit", "length", "strips"),
    [
        ("sentences", 1, ["One is.", "Two is.", "Three is.", "Four is."]),
        ("sentences", 2, ["One is. Two is.", "Three is. Four is."]),
        ("sentences", 3, ["One is. Two is.", "Three is. Four is."]),
        ("sentences", 4, ["One is. Two is. Three is. Four is."]),
        ("words", 3, ["One is.", "Two is. Three", "is. Four is."]),
        ("words", 50, ["One is. Two is. Three is. Four is."]),
    ],
)
def test_strips_are_as_few_as_their_length_allows_and_as_equal_as_can_be(unit: str, length: int, strips: list[str]) -> None:
    cut = split(Document("d", "Numbers", "One is. Two is. Three is. Four is."), unit, length)
    assert [strip.text for strip in cut] == strips
    assert [strip.position for strip in cut] == list(range(len(strips)))


def test_an_empty_document_has_no_strips() -> None:
    assert split(Document("d", "Nothing", ""), "sentences", 1) == split(Document("d", "", " "), "words", 50) == []


def strip(doc_id: str, position: int, p: float) -> Strip:
    return Strip(doc_id, doc_id.upper(), position, f"{doc_id}{position}.", p)


def test_the_best_strips_over_the_filter_are_recomposed_in_the_order_of_documents_and_positions() -> None:
    strips = [strip("b", 0, 0.3), strip("b", 1, 0.9), strip("b", 2, 0.8), strip("a", 0, 0.1), strip("a", 1, 0.95)]
    kept = best(strips, 0.3, 3)
    assert [(s.doc_id, s.position) for s in kept] == [("b", 1), ("b", 2), ("a", 1)], "0.95, 0.9 and 0.8, in the order given"
    assert recomposed(kept) == [Document("b", "B", "b1. b2."), Document("a", "A", "a1.")]


def test_a_strip_at_the_filter_is_kept_and_one_under_it_dropped() -> None:
    assert best([strip("a", 0, 0.2), strip("a", 1, 0.2 - 1e-9)], 0.2, 5) == [strip("a", 0, 0.2)]


def test_of_strips_with_equal_scores_the_first_are_kept() -> None:
    assert [s.position for s in best([strip("a", i, 0.5) for i in range(4)], 0.2, 2)] == [0, 1]


# The keywords


@pytest.mark.parametrize(
    ("reply", "query"),
    [
        ("Rhine, source", "Rhine source"),
        ('Key words:\n\n- "Rhine"\n* **source**', "Key words Rhine source"),
        ("", ""),
        (" \n", ""),
        ("?!", ""),
        ("cheese, milk", ""),
        ("Where does it go?", ""),
        ("Rhine " * REWRITE_TOKENS, " ".join(["Rhine"] * REWRITE_TOKENS)),
        ("Rhine " * (REWRITE_TOKENS + 1), ""),
        ("a" * 100_000, ""),
    ],
)
def test_keywords_are_the_words_of_the_reply_unless_they_are_too_many_or_name_nothing_of_the_question(
    reply: str, query: str
) -> None:
    assert keywords(reply, "Where is the Rhine?", REWRITE_TOKENS) == query


def test_a_number_counts_as_a_keyword() -> None:
    assert keywords("R2", "Who is R2?", REWRITE_TOKENS) == "R2"


# The graph


def test_correct_refines_what_was_retrieved_and_searches_nowhere_else(graphs: Answers) -> None:
    hits = [hit("d1", 0.9), hit("d2", 0.8)]
    state = graphs.one("corrective", settings(), hits, relevance=by_word({"Rhine": UPPER, "Danube": 0.2}))
    assert path(state) == ["retrieve", "grade", "grade", "refine", "generate"]
    assert (state["corrected"], state["retrieved"], state["used"]) == (False, ["d1", "d2"], ["d1", "d2"])
    assert len(graphs.stub.requests) == 1


def test_incorrect_discards_what_was_retrieved_and_refines_what_the_second_lane_finds(graphs: Answers, tiny: Retrievers) -> None:
    graphs.stub.behave = rewriting("Rhine, begin")
    lane = tiny.lane("sparse", 4)
    relevance = by_word({"Alps": 0.9, "Cheese": 0.2, "Danube": LOWER - 0.01})
    state = graphs.one("corrective", settings(), [hit("d3", 0.3), hit("d2", 0.2)], second_lane=lane, relevance=relevance)
    assert path(state) == ["retrieve", "grade", "grade", "rewrite", "search", "refine", "generate"]
    found = [h.doc_id for h in lane.search("Rhine begin", 2 * 2, frozenset({"d2", "d3"}))]
    assert "d1" in found
    assert state["retrieved"] == ["d3", "d2", *found]
    assert (state["corrected"], state["used"]) == (True, ["d1"]), "the others elsewhere score 0"
    assert len(graphs.stub.requests) == 2


def test_ambiguous_refines_both_what_was_retrieved_first(graphs: Answers, tiny: Retrievers) -> None:
    graphs.stub.behave = rewriting("Rhine")
    relevance = by_word({"Alps": 0.9, "Danube": LOWER, "Cheese": 0.1})
    lane = tiny.lane("sparse", 4)
    state = graphs.one("corrective", settings(), [hit("d3", 0.3), hit("d2", 0.2)], second_lane=lane, relevance=relevance)
    assert path(state) == ["retrieve", "grade", "grade", "rewrite", "search", "refine", "generate"]
    assert (state["corrected"], state["used"]) == (True, ["d2", "d1"])


def test_an_empty_retrieval_is_incorrect(graphs: Answers, tiny: Retrievers) -> None:
    graphs.stub.behave = rewriting("Rhine")
    state = graphs.one("corrective", settings(), [], second_lane=tiny.lane("sparse", 4), relevance=by_word({"Rhine": 0.9}))
    assert (state["trace"][2]["action"], state["used"]) == ("incorrect", ["d1"])


def test_keywords_that_cannot_be_used_give_way_to_the_question(graphs: Answers, tiny: Retrievers) -> None:
    graphs.stub.behave = rewriting("")
    lane = tiny.lane("sparse", 4)
    state = graphs.one("corrective", settings(), [], second_lane=lane, relevance=by_word({"Rhine": 0.9}))
    assert state["trace"][3] == {"node": "rewrite", "query": QUESTION, "readable": False}
    assert state["retrieved"] == [h.doc_id for h in lane.search(QUESTION, 4)]


def test_when_no_strip_survives_the_model_answers_closed_book(graphs: Answers, tiny: Retrievers) -> None:
    lane = tiny.lane("sparse", 4)
    state = graphs.one("corrective", settings(), [hit("d1", 0.9)], second_lane=lane, relevance=by_word({}))
    assert graphs.stub.prompts[-1] == Prompts("corrective").render("closed_book", question=QUESTION)
    assert (state["corrected"], state["used"]) == (True, [])


def test_the_prompt_holds_the_best_strips_alone_and_used_the_documents_they_come_from(graphs: Answers) -> None:
    long = Document("long", "Rhine", "It is cold. It begins in the Alps. It ends in the sea.")
    documents = {**DOCUMENTS, "long": long}
    relevance = by_word({"Alps. It": UPPER, "Alps": 0.6, "sea": 0.5, "cold": 0.1, "Danube": 0.4})
    hits = [hit("d2", 0.9), hit("long", 0.8)]
    state = graphs.one("corrective", settings(), hits, relevance=relevance, document=documents.__getitem__)
    expected = "Danube: The Danube begins in the Black Forest.\n\nRhine: It begins in the Alps. It ends in the sea."
    assert graphs.stub.prompts == [Prompts("corrective").render("answer", question=QUESTION, context=expected)]
    assert state["used"] == ["d2", "long"]
    assert state["documents"]["long"] == Document("long", "Rhine", "It begins in the Alps. It ends in the sea.")


def test_strips_are_capped_on_each_side_of_an_ambiguous_verdict(graphs: Answers, tiny: Retrievers) -> None:
    graphs.stub.behave = rewriting("begins")
    hits, relevance = [hit("d1", 0.9), hit("d2", 0.8)], by_word({"Alps": 0.5, "Danube": 0.4, "Elbe": 0.6, "Oder": 0.65})
    state = graphs.one("corrective", settings(max_strips=1), hits, second_lane=tiny.lane("dense", 4), relevance=relevance)
    assert state["used"] == ["d1", "d5"], "the best of each side"


def test_the_trace_holds_every_grade_the_action_and_every_strip(graphs: Answers) -> None:
    relevance = by_word({"Rhine": 0.9, "Danube": 0.1})
    trace = graphs.one("corrective", settings(), [hit("d1", 0.9), hit("d2", 0.8)], relevance=relevance)["trace"]
    assert trace[1:4] == [
        {
            "node": "grade",
            "decides": "keep",
            "grades": [
                {"doc_id": "d1", "p": 0.9, "kept": True, "source": "cross_encoder"},
                {"doc_id": "d2", "p": 0.1, "kept": True, "source": "cross_encoder"},
            ],
        },
        {"node": "grade", "decides": "enough", "verdict": True, "action": "correct", "upper": UPPER, "lower": LOWER},
        {
            "node": "refine",
            "strips": [
                {"doc_id": "d1", "position": 0, "p": 0.9, "kept": True, "text": "The Rhine begins in the Alps."},
                {"doc_id": "d2", "position": 0, "p": 0.1, "kept": False, "text": "The Danube begins in the Black Forest."},
            ],
        },
    ]


@pytest.mark.parametrize(("p", "verdict", "kept"), [(UPPER, True, True), (0.5, None, True), (0.1, False, False)])
def test_only_incorrect_throws_documents_away_and_ambiguous_is_no_verdict(
    graphs: Answers, tiny: Retrievers, p: float, verdict: bool | None, kept: bool
) -> None:
    tools = {"second_lane": tiny.lane("sparse", 4), "relevance": by_word({"Rhine": p})}
    trace = graphs.one("corrective", settings(), [hit("d1", 0.9)], **tools)["trace"]
    assert (trace[2]["verdict"], trace[1]["grades"][0]["kept"]) == (verdict, kept)


def test_a_model_that_evaluates_is_asked_once_per_document_and_its_strips_are_the_rerankers(graphs: Answers) -> None:
    graphs.stub.behave = lambda body: words("Yes", 0.75) if body["max_tokens"] == 1 else completion("In the Alps.")
    hits, relevance = [hit("d1", 0.9), hit("d2", 0.8)], by_word({"Alps": 0.9})
    state = graphs.one("corrective", settings(grader="llm"), hits, relevance=relevance)
    assert [body["max_tokens"] for body in graphs.stub.requests] == [1, 1, 16]
    assert {grade["source"] for grade in state["trace"][1]["grades"]} == {"logprobs"}
    assert (state["trace"][2]["action"], state["used"]) == ("correct", ["d1"])


# The web


@pytest.mark.parametrize(("elsewhere", "path_"), [("searxng", ""), ("wikipedia", "/w/api.php")])
def test_incorrect_may_search_the_web_and_refine_what_it_finds(
    graphs: Answers, tiny: Retrievers, ledger: Ledger, elsewhere: str, path_: str
) -> None:
    with serve(both) as engine:
        web = {"base_url": engine.url.removesuffix("/v1") + path_, "api_key_env": ""}
        graphs.stub.behave = rewriting("Rhine, source")
        state = graphs.one(
            "corrective",
            settings(k=1, elsewhere=elsewhere, web=web),
            [hit("d3", 0.3)],
            relevance=by_word({"Alps": 0.9, "milk": 0.1, "Bohemia": 0.5, "North Sea": 0.1}),
            embed=tiny.embed,
            web=WebSearch(ledger, graphs.llm().transport),
        )
    found = [f"web:{url}" for url, _, _ in PAGES[: 2 * 1]]
    assert state["retrieved"] == ["d3", *found]
    assert state["used"] == found
    expected = "Rhine: The Rhine begins in the Alps.\n\nElbe: The Elbe begins in Bohemia."
    assert graphs.stub.prompts[-1] == Prompts("corrective").render("answer", question=QUESTION, context=expected)
    step = state["trace"][4]
    assert (step["elsewhere"], step["query"]) == (elsewhere, "Rhine source")
    assert step["titles"] == dict(zip(found, ["Rhine", "Elbe"], strict=True))
    assert [h["score"] for h in step["hits"]] == [1 / 1, 1 / 2]
    text = f"{PAGES[0][1]}\n{PAGES[0][2]}"
    assert step["hits"][0]["cosine"] == round(float(tiny.embed(text) @ tiny.embed("Rhine source")), 6)


@pytest.mark.parametrize("elsewhere", ["searxng", "wikipedia"])
def test_a_search_of_the_web_needs_an_address(elsewhere: str) -> None:
    with pytest.raises(ValidationError, match=f"web.base_url must start with http:// or https:// when elsewhere is {elsewhere}"):
        settings(elsewhere=elsewhere)
