"""adaptive_self_rag: the loop against scripted models, with every rule that binds it."""

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from rag_arena import strategies
from rag_arena.decisions import UNCONFIRMED, claimed
from rag_arena.llm.client import ChatModel
from rag_arena.metering import metered
from rag_arena.params import Endpoint
from rag_arena.records import Document, Hit
from rag_arena.retrieval.retriever import Retrievers
from rag_arena.strategies.adaptive_self_rag.bounds import MOST_RETRIES
from rag_arena.strategies.adaptive_self_rag.edges import may_retry
from rag_arena.strategies.adaptive_self_rag.graph import Settings
from tests.strategies.harness import DOCUMENTS, QUESTION, Answers, nobody, path
from tests.stub import Answer, Body, completion, one_token

FOLDER = Path(strategies.__file__).parent
YES, NO = one_token({"Yes": 0.9, "No": 0.1}), one_token({"No": 0.9, "Yes": 0.1})
RIGHT = {"route": NO, "answer": completion("In the Alps."), "grounded": YES, "useful": YES}  # all is well at the first attempt
UNSUPPORTED = {
    **RIGHT,
    "grounded": NO,
    "unsupported": completion("In the Alps."),
    "rewrite_unsupported": completion("Rhine Alps"),
}
RISING = {doc_id: 0.8 + i / 100 for i, doc_id in enumerate(DOCUMENTS)}  # what comes later is more relevant
BESIDE = {**RIGHT, "useful": NO, "rewrite_not_useful": completion("Rhine source")}


def settings(**changes: Any) -> Settings:
    defaults = {
        "k": 1,
        "max_tokens": 16,
        "route_threshold": 0.65,
        "grader": "cross_encoder",
        "relevance": {"tau": 0.5, "temperature": 0.1},
        "keep_threshold": 0.7,
        "context_tokens": 1000,
        "grounded_threshold": 0.5,
        "useful_threshold": 0.5,
        "max_retries": 2,
        "rewrite_tokens": 8,
        "sub_queries": 2,
        "claims": 2,
        "claims_tokens": 8,
        "reuse_threshold": None,
    }
    return Settings.model_validate({**defaults, **changes})


def prompt_of(name: str) -> re.Pattern[str]:
    """What a prompt looks like whatever stands in it."""
    [file] = [f for f in (FOLDER / "adaptive_self_rag" / f"{name}.md", FOLDER / "shared" / f"{name}.md") if f.is_file()]
    return re.compile(re.sub(r"\\\$\w+", "(?s:.*)", re.escape(file.read_text().strip())))


PROMPTS = {
    name: prompt_of(name)
    for name in (
        *("route", "relevant", "answer", "closed_book", "grounded", "unsupported", "useful"),
        *("rewrite_no_context", "rewrite_unsupported", "rewrite_not_useful"),
    )
}


def kind(body: Body) -> str:
    """Which prompt a request holds."""
    [name] = [name for name, pattern in PROMPTS.items() if pattern.fullmatch(body["messages"][-1]["content"])]
    return name


def scripted(replies: Mapping[str, Answer | Callable[[Body], Answer]]) -> Callable[[Body], Answer]:
    """A reply per prompt; a prompt that is not expected is a KeyError, and so no reply."""

    def behave(body: Body) -> Answer:
        reply = replies[kind(body)]
        return reply if isinstance(reply, Answer) else reply(body)

    return behave


@dataclass
class Deck:
    """A retriever over a fixed ranking, which notes what it was asked."""

    documents: Sequence[Document]
    asked: list[tuple[str, frozenset[str]]] = field(default_factory=list)

    def search(self, query: str, k: int, exclude: frozenset[str] = frozenset()) -> list[Hit]:
        self.asked.append((query, exclude))
        return [Hit(d.doc_id, 1.0, 0.5) for d in self.documents if d.doc_id not in exclude][:k]


def play(
    graphs: Answers,
    replies: Mapping[str, Answer | Callable[[Body], Answer]],
    relevance: Mapping[str, float],
    documents: Mapping[str, Document] = DOCUMENTS,
    question: str = QUESTION,
    **changes: Any,
) -> tuple[Any, Deck]:
    """One question through the loop; documents are retrieved in the order of `relevance`, which maps their ids to grades."""
    graphs.stub.behave = scripted(replies)
    deck = Deck([documents[doc_id] for doc_id in relevance])
    grade = {documents[doc_id].full_text: p for doc_id, p in relevance.items()}
    tools = {"retriever": deck, "document": documents.__getitem__, "relevance": lambda _, texts: [grade[text] for text in texts]}
    return graphs.all("adaptive_self_rag", [question], settings=settings(**changes), **tools)[0], deck


def steps(state: Any, node: str) -> list[dict[str, Any]]:
    return [step for step in state["trace"] if step["node"] == node]


def asked(graphs: Answers, name: str) -> list[str]:
    """The prompts of one kind, in order."""
    return [body["messages"][-1]["content"] for body in graphs.stub.requests if kind(body) == name]


def contexts(graphs: Answers) -> list[str]:
    """What stood above the question in each request for an answer."""
    return [prompt.split(f"\n\nQuestion: {QUESTION}")[0] for prompt in asked(graphs, "answer")]


# The straight path


def test_what_is_routed_kept_grounded_and_useful_is_confirmed_at_the_first_attempt(graphs: Answers) -> None:
    state, deck = play(graphs, RIGHT, {"d1": 0.9})
    assert path(state) == ["route", "retrieve", "grade", "generate", "verify", "assess"]
    assert (state["answer"], state["used"], state["confirmed"], state["corrected"]) == ("In the Alps.", ["d1"], True, False)
    assert deck.asked == [(QUESTION, frozenset())]


def test_the_trace_holds_each_decision_with_its_probability_and_source(graphs: Answers) -> None:
    state, _ = play(graphs, RIGHT, {"d1": 0.9, "d2": 0.2}, k=2)
    certainty = {"p": 0.9, "source": "logprobs"}
    assert [step for step in state["trace"] if step["node"] not in ("retrieve", "generate")] == [
        {"node": "route", "decides": "retrieve", "verdict": True, **certainty},
        {
            "node": "grade",
            "decides": "keep",
            "floor": 0.7,
            "context": ["d1"],
            "grades": [
                {"doc_id": "d1", "p": 0.9, "kept": True, "source": "cross_encoder"},
                {"doc_id": "d2", "p": 0.2, "kept": False, "source": "cross_encoder"},
            ],
        },
        {"node": "verify", "decides": "grounded", "verdict": True, **certainty},
        {"node": "assess", "useful": True, **certainty},
    ]


# Routing


@pytest.mark.parametrize(("no", "needed"), [(0.66, True), (0.64, False), (0.01, False)])
def test_documents_are_fetched_from_a_confidence_of_0_65_that_they_are_needed(graphs: Answers, no: float, needed: bool) -> None:
    replies = {**RIGHT, "route": one_token({"No": no, "Yes": 1 - no}), "closed_book": completion("In Tyrol.")}
    state, deck = play(graphs, replies, {"d1": 0.9})
    assert bool(deck.asked) is needed
    assert state["trace"][0]["verdict"] is needed


def test_a_confidence_equal_to_the_threshold_is_enough(graphs: Answers) -> None:
    state, _ = play(graphs, {**RIGHT, "route": one_token({"Yes": 0.5, "No": 0.5})}, {"d1": 0.9}, route_threshold=0.5)
    assert state["trace"][0]["verdict"] is True


def test_a_direct_answer_is_closed_book_and_goes_through_no_check(graphs: Answers) -> None:
    state, deck = play(graphs, {"route": YES, "closed_book": completion("In Tyrol.")}, {"d1": 0.9})
    assert path(state) == ["route", "generate"]
    assert (state["answer"], state["used"], state["retrieved"], state["corrected"]) == ("In Tyrol.", [], [], False)
    assert "confirmed" not in state
    assert deck.asked == []


def test_a_router_that_says_nothing_readable_retrieves(graphs: Answers) -> None:
    state, _ = play(graphs, {**RIGHT, "route": completion("perhaps")}, {"d1": 0.9})
    assert state["trace"][0] == {"node": "route", "decides": "retrieve", "verdict": True, "p": 0.5, "source": "unreadable"}


# Grading


def test_documents_are_kept_from_the_threshold_on(graphs: Answers) -> None:
    state, _ = play(graphs, RIGHT, {"d1": 0.7, "d2": 0.7 - 1e-9, "d3": 0.8}, k=3)
    assert state["used"] == ["d3", "d1"]


def test_the_llm_grader_is_the_small_model(graphs: Answers) -> None:
    replies = {**RIGHT, "relevant": lambda body: YES if "Alps" in body["messages"][-1]["content"] else NO}
    state, _ = play(graphs, replies, {"d1": 0.0, "d2": 0.0}, grader="llm", k=2)
    assert state["used"] == ["d1"]
    assert [grade["source"] for grade in steps(state, "grade")[0]["grades"]] == ["logprobs", "logprobs"]


# Retries


@pytest.mark.parametrize(
    ("replies", "relevance"),
    [
        ({**RIGHT, "rewrite_no_context": completion("Rhine"), "closed_book": completion("In Tyrol.")}, 0.0),
        (UNSUPPORTED, 0.9),
        (BESIDE, 0.9),
        ({**RIGHT, "grounded": completion("{{{"), "unsupported": completion(""), "rewrite_unsupported": completion("")}, 0.9),
        ({**RIGHT, "useful": completion("and so on " * 1000), "rewrite_not_useful": completion("and so on " * 1000)}, 0.9),
    ],
    ids=["nothing relevant", "never grounded", "never useful", "malformed", "long-winded"],
)
def test_there_are_at_most_two_retries_whatever_the_model_says(
    graphs: Answers, replies: dict[str, Answer], relevance: float
) -> None:
    state, _ = play(graphs, replies, {doc_id: relevance + i / 100 for i, doc_id in enumerate(DOCUMENTS)})
    assert [len(steps(state, node)) for node in ("retrieve", "rewrite", "admit")] == [1 + 2, 2, 1]
    assert state["retries"] == MOST_RETRIES == 2
    assert state["corrected"] is True


@pytest.mark.parametrize("retries", [0, 1, 2])
def test_fewer_retries_may_be_configured(graphs: Answers, retries: int) -> None:
    state, _ = play(graphs, UNSUPPORTED, RISING, max_retries=retries)
    assert len(steps(state, "rewrite")) == retries


def test_more_than_two_retries_are_refused_by_the_settings_and_by_the_edge() -> None:
    with pytest.raises(ValidationError, match="max_retries"):
        settings(max_retries=3)
    unchecked = settings().model_copy(update={"max_retries": 99})
    runtime: Any = type("Runtime", (), {"context": type("Toolbox", (), {"settings": unchecked})})
    assert [may_retry({"retries": n}, runtime) for n in range(4)] == [True, True, False, False]


@pytest.mark.parametrize("mode", ["dense", "sparse", "hybrid", "hybrid_rerank"])
def test_documents_seen_before_never_come_back_in_any_mode(graphs: Answers, tiny: Retrievers, mode: str) -> None:
    rewritten = completion("Where does the river begin?")
    graphs.stub.behave = scripted({**UNSUPPORTED, "rewrite_unsupported": rewritten, "rewrite_no_context": rewritten})
    tools = {"retriever": tiny.of(mode), "relevance": lambda _, texts: [0.9] * len(texts)}
    [state] = graphs.all("adaptive_self_rag", [QUESTION], settings=settings(), **tools)
    fetched = [hit["doc_id"] for step in steps(state, "retrieve") for hit in step["hits"]]
    assert len(fetched) == len(set(fetched)) >= 2
    assert [step["excluded"] for step in steps(state, "retrieve")] == [0, 1, len(fetched[:2])]


def test_sub_queries_do_not_bring_the_same_document_twice(graphs: Answers) -> None:
    replies = {**UNSUPPORTED, "rewrite_unsupported": completion("Rhine\nAlps")}
    state, deck = play(graphs, replies, dict.fromkeys(DOCUMENTS, 0.9), max_retries=1)
    assert deck.asked == [(QUESTION, frozenset()), ("Rhine", frozenset({"d1"})), ("Alps", frozenset({"d1", "d2"}))]
    assert state["retrieved"] == ["d1", "d2", "d3"]


# The context


def test_a_retry_replaces_documents_and_the_best_of_all_attempts_stay(graphs: Answers) -> None:
    state, _ = play(graphs, UNSUPPORTED, {"d2": 0.8, "d3": 0.9, "d4": 0.75})
    assert [step["context"] for step in steps(state, "grade")] == [["d2"], ["d3"], ["d3"]]
    assert [step["used"] for step in steps(state, "generate")] == [["d2"], ["d3"]], "the third attempt has nothing new to say"
    assert state["used"] == ["d3"]


@pytest.mark.parametrize("seed", range(12))
def test_the_context_of_no_retry_is_longer_than_that_of_the_first_attempt(graphs: Answers, seed: int) -> None:
    draw = random.Random(seed)
    documents = {f"r{i}": Document(f"r{i}", f"Title {i}", "word " * draw.randint(1, 60) + "end") for i in range(12)}
    relevance = {doc_id: draw.uniform(0.5, 1.0) for doc_id in documents}
    replies = {**UNSUPPORTED, "rewrite_no_context": completion("Rhine"), "closed_book": completion("In Tyrol.")}
    play(graphs, replies, relevance, documents, k=draw.randint(1, 3), sub_queries=1)
    lengths = [len(context) for context in contexts(graphs)]
    assert all(length <= lengths[0] for length in lengths)


def test_the_first_context_stays_within_the_budget_of_tokens(graphs: Answers) -> None:
    documents = {f"r{i}": Document(f"r{i}", "", f"{i}" * 100) for i in range(5)}
    play(graphs, RIGHT, dict.fromkeys(documents, 0.9), documents, k=5, context_tokens=52)
    assert contexts(graphs) == ["0" * 100 + "\n\n" + "1" * 100], "52 tokens of 4 characters: 100 + 2 + 100 = 202 of 208"


def test_a_document_longer_than_the_budget_is_cut_at_a_word_and_judged_as_it_was_shown(graphs: Answers) -> None:
    long = Document("long", "Rhine", "It begins high up in the Alps.")
    state, _ = play(graphs, RIGHT, {"long": 0.9}, {"long": long}, context_tokens=5)
    assert contexts(graphs) == ["Rhine: It begins"], "5 tokens of 4 characters are 20, and half a word is no word"
    assert state["documents"]["long"].text == "It begins"
    assert state["used"] == ["long"]


# What the rewriter is told


def test_the_rewriter_is_told_that_no_relevant_context_was_found(graphs: Answers) -> None:
    replies = {**RIGHT, "rewrite_no_context": completion("Rhine Alps")}
    state, _ = play(graphs, replies, {"d3": 0.1, "d1": 0.9})
    assert path(state) == ["route", "retrieve", "grade", "rewrite", "retrieve", "grade", "generate", "verify", "assess"]
    [prompt] = asked(graphs, "rewrite_no_context")
    assert QUESTION in prompt
    assert (state["used"], state["confirmed"], state["corrected"]) == (["d1"], True, True)


def test_the_rewriter_is_told_which_claims_good_context_does_not_support(graphs: Answers) -> None:
    replies = {
        **UNSUPPORTED,
        "answer": completion("The Rhine begins in Tyrol. Cheese comes from milk."),
        "unsupported": completion("- The Rhine begins in Tyrol.\n* None\nI am a helpful robot"),
    }
    state, _ = play(graphs, replies, dict.fromkeys(DOCUMENTS, 0.9), max_retries=1)
    [prompt] = asked(graphs, "rewrite_unsupported")
    assert "- The Rhine begins in Tyrol." in prompt
    assert "robot" not in prompt
    assert state["unsupported"] == ["The Rhine begins in Tyrol."]
    assert steps(state, "verify")[0]["unsupported"] == ["The Rhine begins in Tyrol."]


def test_rubbish_in_place_of_a_list_is_no_claim(graphs: Answers) -> None:
    state, _ = play(graphs, {**UNSUPPORTED, "unsupported": completion('{"claims": [')}, {"d1": 0.9}, max_retries=0)
    assert steps(state, "verify")[0]["unsupported"] == []


def test_the_rewriter_is_told_that_a_grounded_answer_is_beside_the_question(graphs: Answers) -> None:
    state, _ = play(graphs, BESIDE, dict.fromkeys(DOCUMENTS, 0.9), max_retries=1)
    [prompt] = asked(graphs, "rewrite_not_useful")
    assert "In the Alps." in prompt
    assert steps(state, "rewrite")[0]["failure"] == "not_useful"


def test_after_an_unsupported_answer_a_search_that_finds_nothing_is_the_failure_of_the_next_rewrite(graphs: Answers) -> None:
    replies = {**UNSUPPORTED, "rewrite_no_context": completion("Rhine")}
    state, _ = play(graphs, replies, {"d1": 0.9, "d2": 0.1, "d3": 0.1})
    assert [step["failure"] for step in steps(state, "rewrite")] == ["unsupported", "no_context"]
    assert len(asked(graphs, "answer")) == 1


def test_a_verdict_that_cannot_be_read_confirms_nothing(graphs: Answers) -> None:
    replies = {**RIGHT, "grounded": completion("perhaps"), "unsupported": completion("none")}
    state, _ = play(graphs, replies, {"d1": 0.9}, max_retries=0)
    assert steps(state, "verify")[0]["verdict"] is False
    assert state["confirmed"] is False


# What a rewrite may not lose


def test_codes_paths_names_and_numbers_survive_a_rewrite_that_drops_them(graphs: Answers) -> None:
    question = "How do I fix error 504 on endpoint /api/v1/auth of Rhine?"
    replies = {**RIGHT, "rewrite_no_context": completion("General gateway troubleshooting")}
    state, deck = play(graphs, replies, {"d3": 0.1, "d1": 0.9}, question=question)
    assert deck.asked[1][0] == "General gateway troubleshooting 504 /api/v1/auth Rhine"
    assert steps(state, "rewrite")[0]["restored"] == ["504", "/api/v1/auth", "Rhine"]


def test_terms_that_a_rewrite_kept_are_not_added_again(graphs: Answers) -> None:
    _, deck = play(graphs, {**RIGHT, "rewrite_no_context": completion("source of the Rhine")}, {"d3": 0.1, "d1": 0.9})
    assert deck.asked[1][0] == "source of the Rhine"


def test_a_question_may_be_split_into_sub_queries_up_to_the_bound_and_each_is_searched(graphs: Answers) -> None:
    reply = completion("1. Where is the Rhine?\n2. What is a source?\n3. What is a river?")
    state, deck = play(graphs, {**RIGHT, "rewrite_no_context": reply}, {"d3": 0.1, "d1": 0.9, "d2": 0.8})
    assert [query for query, _ in deck.asked] == [QUESTION, "Where is the Rhine?", "What is a source?"]
    assert state["retrieved"] == ["d3", "d1", "d2"]


@pytest.mark.parametrize("reply", ["", "\n\n", "...", '"""', "- \n* "])
def test_a_rewrite_without_a_usable_query_searches_the_question_further_down(graphs: Answers, reply: str) -> None:
    _, deck = play(graphs, {**RIGHT, "rewrite_no_context": completion(reply)}, {"d3": 0.1, "d1": 0.9})
    assert deck.asked == [(QUESTION, frozenset()), (QUESTION, frozenset({"d3"}))]


# When retries run out


def test_an_answer_that_was_never_confirmed_says_so_and_carries_what_was_found(graphs: Answers) -> None:
    state, _ = play(graphs, UNSUPPORTED, RISING)
    assert state["answer"] == f"{UNCONFIRMED}In the Alps."
    assert claimed(state["answer"]) == "In the Alps."
    assert state["confirmed"] is False
    assert state["trace"][-1] == {"node": "admit", "unconfirmed": True, "failure": "unsupported"}
    assert state["used"] == ["d3"]


def test_without_any_relevant_document_the_answer_is_closed_book_and_unconfirmed(graphs: Answers) -> None:
    replies = {**RIGHT, "rewrite_no_context": completion("Rhine"), "closed_book": completion("In Tyrol.")}
    state, _ = play(graphs, replies, dict.fromkeys(DOCUMENTS, 0.1))
    assert path(state)[-2:] == ["generate", "admit"]
    assert (state["answer"], state["used"]) == (f"{UNCONFIRMED}In Tyrol.", [])
    assert state["retrieved"] == ["d1", "d2", "d3"]


def test_an_answer_without_the_note_is_taken_as_it_is() -> None:
    assert claimed("In the Alps.") == "In the Alps."


# Cost


@pytest.mark.parametrize(("grader", "bound"), [("cross_encoder", 2 + 3 * (1 + 2 + 2) + 2), ("llm", 19 + 2 * 3 * (1 + 2 * 2))])
def test_the_bound_on_calls_is_exact(graphs: Answers, grader: str, bound: int) -> None:
    chosen = settings(grader=grader, k=3)
    assert chosen.max_calls == bound
    yes, no = completion('{"verdict": "Yes"}'), completion('{"verdict": "No"}')
    replies = {
        **dict.fromkeys(("relevant", "grounded"), lambda body: yes if "response_format" in body else completion("hm")),
        **dict.fromkeys(("route", "useful"), lambda body: no if "response_format" in body else completion("hm")),
        "answer": completion("In the Alps."),
        "rewrite_not_useful": completion("Rhine\nAlps"),
    }
    documents = {f"r{i:02}": Document(f"r{i:02}", "", f"text {i:02}") for i in reversed(range(15))}  # later ones win ties by id
    with metered() as meter:
        play(graphs, replies, {d: 0.8 + i / 100 for i, d in enumerate(documents)}, documents, grader=grader, k=3)
    assert len(meter.calls) == bound


def test_only_answers_are_asked_of_the_large_model(graphs: Answers) -> None:
    graphs.stub.behave = scripted({**UNSUPPORTED, "rewrite_no_context": completion("Rhine")})
    llm = graphs.llm()

    class Named(ChatModel):
        async def ask(self, node: str, prompt: str, max_tokens: int, **more: Any) -> Any:
            who.append((self.endpoint.model, node))
            return await super().ask(node, prompt, max_tokens, **more)

    who: list[tuple[str, str]] = []
    client = graphs.connect(llm)
    large, small = (Named(client, Endpoint(kind="openai", model=name, base_url=graphs.stub.url)) for name in ("large", "small"))
    tools = {"retriever": Deck(list(DOCUMENTS.values())), "relevance": lambda _, texts: [0.9] * len(texts)}
    graphs.all("adaptive_self_rag", [QUESTION], settings=settings(), model=large, small_model=small, **tools)
    assert {model for model, node in who if node == "generate"} == {"large"}
    assert {node for model, node in who if model == "small"} == {"route", "verify", "rewrite"}


# Reuse of earlier answers


def reuse(graphs: Answers, replies: Mapping[str, Any], questions: Sequence[str], threshold: float | None) -> list[Any]:
    """Questions asked one after another; a question's vector is the first two numbers in it."""
    graphs.stub.behave = scripted(replies)

    def embed(text: str) -> Any:
        return np.array([float(number) for number in re.findall(r"[\d.]+", text)[:2]], dtype=np.float32)

    tools = {"retriever": Deck(list(DOCUMENTS.values())), "relevance": lambda _, texts: [0.9] * len(texts), "earlier": []}
    chosen = settings(reuse_threshold=threshold)
    return graphs.all("adaptive_self_rag", questions, settings=chosen, embed=embed if threshold else nobody, **tools)


def test_a_question_close_to_an_earlier_one_reuses_its_validated_answer_and_says_whose(graphs: Answers) -> None:
    first, second = reuse(graphs, RIGHT, ["Is it 1 0 ?", "Is it 0.96 0.28 ?"], 0.95)
    calls = len(graphs.stub.requests)
    assert calls == len(["route", "answer", "grounded", "useful"])
    assert second["trace"] == [{"node": "recall", "reused": True, "earlier": "Is it 1 0 ?", "cosine": 0.96}]
    assert (second["answer"], second["used"], second["retrieved"]) == (first["answer"], ["d1"], ["d1"])
    assert second["corrected"] is False


def test_a_question_at_the_threshold_or_under_it_is_asked_anew(graphs: Answers) -> None:
    _, second = reuse(graphs, RIGHT, ["Is it 1 0 ?", "Is it 0.5 0.5 ?"], 0.5)
    assert path(second)[:2] == ["recall", "route"]
    assert second["trace"][0] == {"node": "recall", "reused": False, "earlier": "Is it 1 0 ?", "cosine": 0.5}


def test_an_unconfirmed_or_direct_answer_is_never_reused(graphs: Answers) -> None:
    same = ["Is it 1 0 ?"] * 2
    unconfirmed = reuse(graphs, {**UNSUPPORTED, "rewrite_no_context": completion("it")}, same, 0.95)
    direct = reuse(graphs, {"route": YES, "closed_book": completion("It is.")}, same, 0.95)
    assert [path(state)[0] for state in (*unconfirmed, *direct)] == ["route"] * 4


def test_without_a_threshold_nothing_is_remembered_or_embedded(graphs: Answers) -> None:
    states = reuse(graphs, RIGHT, ["Is it 1 0 ?"] * 2, None)
    assert [path(state)[0] for state in states] == ["route", "route"]
    assert settings().one_by_one is False
    assert settings(reuse_threshold=0.95).one_by_one is True
