"""self_rag, prompted, from end to end: a model over real sockets that answers every prompt as written down."""

from collections.abc import Mapping
from typing import Any

import pytest

from rag_arena.errors import ArenaError
from rag_arena.metering import metered
from rag_arena.params import Sigmoid
from rag_arena.retrieval.retriever import Retrievers
from rag_arena.strategies.prompts import Prompts
from rag_arena.strategies.self_rag.graph import CritiqueWeights, Settings
from rag_arena.strategies.state import State
from rag_arena.strategies.steps import passage
from tests.strategies.harness import DOCUMENTS, QUESTION, Answers, hit, path, recorded
from tests.stub import Answer, Body, completion, one_token, words

PAPER = CritiqueWeights(relevant=1.0, supported=1.0, useful=0.5)
DEFAULTS = {
    "variant": "prompted",
    "k": 2,
    "max_tokens": 16,
    "retrieve": "always",
    "threshold": 0.2,
    "form": "short",
    "segments": 2,
    "segment_tokens": 8,
    "beam_width": 2,
    "weights": PAPER,
    "grader": "llm",
    "relevance": Sigmoid(tau=0.5, temperature=0.1),
}
HITS = [hit("d1", 0.9), hit("d2", 0.8)]


def self_rag(**changes: Any) -> Settings:
    return Settings(**{**DEFAULTS, **changes})


def prompt(name: str, doc_id: str | None = None, **values: str) -> str:
    context = passage(DOCUMENTS[doc_id]) if doc_id else ""
    return Prompts("self_rag").render(name, question=QUESTION, context=context, passage=context, **values)


def yes(p: float) -> Answer:
    return one_token({"Yes": p * 0.8, "No": (1 - p) * 0.8, "The": 0.2})


def support(fully: float, partially: float) -> Answer:
    return one_token({k: v for k, v in (("Fully", fully), ("Part", partially), (" no", 1 - fully - partially)) if v > 0})


def use(**digits: float) -> Answer:
    return one_token({name.removeprefix("u"): p for name, p in digits.items()})


def answers_by(table: Mapping[str, Answer]) -> Any:
    def behave(body: Body) -> Answer:
        return table[body["messages"][-1]["content"]]

    return behave


SHORT = {
    prompt("relevant", "d1"): yes(0.9),
    prompt("relevant", "d2"): yes(0.25),
    prompt("answer", "d1"): words("the Alps", 0.5),
    prompt("answer", "d2"): words("the Black Forest", 0.75),
    prompt("supported", "d1", segment="the Alps"): support(0.75, 0.25),
    prompt("supported", "d2", segment="the Black Forest"): support(0.0, 0.5),
    prompt("useful", answer="the Alps"): use(u5=0.5, u3=0.5),
    prompt("useful", answer="the Black Forest"): use(u2=1.0),
}
ALPS = 0.5 + 1.0 * 0.9 + 1.0 * (0.75 + 0.5 * 0.25) + 0.5 * (0.5 * 1 + 0.5 * 0)
FOREST = 0.75 + 1.0 * 0.25 + 1.0 * (0.0 + 0.5 * 0.5) + 0.5 * -0.5


def critiques(state: State) -> list[dict[str, Any]]:
    return [step for step in state["trace"] if step["node"] == "critique"]


# Short form


def test_short_form_writes_one_answer_per_document_and_the_best_wins(graphs: Answers) -> None:
    graphs.stub.behave = answers_by(SHORT)
    state = graphs.one("self_rag", self_rag(), HITS)
    assert [step["score"] for step in critiques(state)] == pytest.approx([ALPS, FOREST])
    assert state["answer"] == "the Alps"
    assert state["used"] == ["d1"]
    assert state["retrieved"] == ["d1", "d2"]
    assert "corrected" not in state
    assert sorted(graphs.stub.prompts) == sorted(SHORT)


def test_weights_decide_who_wins(graphs: Answers) -> None:
    graphs.stub.behave = answers_by(SHORT)
    state = graphs.one("self_rag", self_rag(weights=CritiqueWeights(relevant=0.0, supported=0.0, useful=0.0)), HITS)
    assert [step["score"] for step in critiques(state)] == pytest.approx([0.5, 0.75])
    assert (state["answer"], state["used"]) == ("the Black Forest", ["d2"])


def test_the_trace_of_the_short_form_holds_every_decision_and_term(graphs: Answers) -> None:
    table = {**SHORT, prompt("retrieve"): yes(0.3)}
    graphs.stub.behave = answers_by(table)
    state = graphs.one("self_rag", self_rag(retrieve="adaptive"), HITS)
    assert path(state) == ["decide", "retrieve", "generate", "grade", "critique", "critique", "conclude"]
    decide, _, generate, grade, alps, forest, conclude = state["trace"]
    assert decide == {
        "node": "decide",
        "decides": "retrieve",
        "verdict": True,
        "answer": "",
        "read_on": False,
        "p": 0.3,
        "threshold": 0.2,
        "source": "logprobs",
        "outside": 0.2,
    }
    assert generate == {"node": "generate", "continuations": 2}
    assert grade == {
        "node": "grade",
        "decides": "keep",
        "floor": 0.5,
        "grades": [
            {"doc_id": "d1", "p": 0.9, "kept": True, "source": "logprobs", "outside": 0.2},
            {"doc_id": "d2", "p": 0.25, "kept": False, "source": "logprobs", "outside": 0.2},
        ],
    }
    assert alps == {
        "node": "critique",
        "segment": 1,
        "doc_id": "d1",
        "text": "the Alps",
        "finish_reason": "stop",
        "likelihood": 0.5,
        "relevant": 0.9,
        "supported": 0.875,
        "useful": 0.5,
        "sources": ["logprobs", "logprobs"],
        "outside": [0.0, 0.0],
        "score": round(ALPS, 6),
        "kept": True,
    }
    assert (forest["relevant"], forest["supported"], forest["useful"]) == (0.25, 0.25, -0.5)
    assert conclude == {
        "node": "conclude",
        "decides": "grounded",
        "verdict": True,
        "p": 0.875,
        "source": "logprobs",
        "used": ["d1"],
    }


def test_the_answer_is_asked_for_with_log_probabilities_and_vanillas_limit(graphs: Answers) -> None:
    graphs.stub.behave = answers_by(SHORT)
    graphs.one("self_rag", self_rag(), HITS)
    [body] = [b for b in graphs.stub.requests if b["messages"][-1]["content"] == prompt("answer", "d1")]
    assert (body["max_tokens"], body["logprobs"], body["top_logprobs"]) == (16, True, 1)


def test_without_log_probabilities_the_likelihood_is_left_out_and_verdicts_come_in_words(graphs: Answers) -> None:
    says = {
        prompt("relevant", "d1"): "Yes",
        prompt("relevant", "d2"): "No",
        prompt("answer", "d1"): "the Alps",
        prompt("answer", "d2"): "the Black Forest",
        prompt("supported", "d1", segment="the Alps"): "Partially",
        prompt("supported", "d2", segment="the Black Forest"): "Fully",
        prompt("useful", answer="the Alps"): "4",
        prompt("useful", answer="the Black Forest"): "1",
    }
    graphs.stub.behave = answers_by({asked: completion(said) for asked, said in says.items()})
    state = graphs.one("self_rag", self_rag(), HITS)
    assert [step["likelihood"] for step in critiques(state)] == [None, None]
    assert [step["score"] for step in critiques(state)] == pytest.approx([1 + 0.5 + 0.5 * 0.5, 0 + 1 + 0.5 * -1])
    assert critiques(state)[0]["sources"] == ["schema", "schema"]


def test_support_that_cannot_be_read_grounds_nothing(graphs: Answers) -> None:
    table = {**SHORT, prompt("supported", "d1", segment="the Alps"): completion("I cannot say", "length")}
    graphs.stub.behave = answers_by(table)
    state = graphs.one("self_rag", self_rag(k=1), HITS)
    assert state["trace"][-1] == {
        "node": "conclude",
        "decides": "grounded",
        "verdict": False,
        "p": 0.5,
        "source": "unreadable",
        "used": ["d1"],
    }


@pytest.mark.parametrize(
    ("fully", "partially", "grounded"), [(0.0, 1.0, False), (0.02, 0.98, True), (0.5, 0.0, False), (0.51, 0.0, True)]
)
def test_an_answer_is_grounded_when_more_than_partly_supported(
    graphs: Answers, fully: float, partially: float, grounded: bool
) -> None:
    graphs.stub.behave = answers_by({**SHORT, prompt("supported", "d1", segment="the Alps"): support(fully, partially)})
    assert graphs.one("self_rag", self_rag(k=1), HITS)["trace"][-1]["verdict"] is grounded


def test_the_cross_encoder_grades_without_a_call(graphs: Answers, tiny: Retrievers) -> None:
    graphs.stub.behave = answers_by({asked: said for asked, said in SHORT.items() if "Does the passage above help" not in asked})
    graded = {"The Rhine begins in the Alps.": 0.2, "The Danube begins in the Black Forest.": 0.7}

    def relevance(question: str, texts: list[str]) -> list[float]:
        assert question == QUESTION
        return [next(p for part, p in graded.items() if part in text) for text in texts]

    state = graphs.one("self_rag", self_rag(grader="cross_encoder"), HITS, relevance=relevance)
    assert [step["relevant"] for step in critiques(state)] == [0.2, 0.7]
    assert len(graphs.stub.requests) == 2 * 3


# Whether to retrieve


@pytest.mark.parametrize(("p", "fetched"), [(0.19, False), (0.21, True), (0.9, True)])
def test_documents_are_fetched_over_the_threshold(graphs: Answers, p: float, fetched: bool) -> None:
    closed = {prompt("closed_book"): words("the Alps", 0.5), prompt("useful", answer="the Alps"): use(u5=1.0)}
    graphs.stub.behave = answers_by({**SHORT, **closed, prompt("retrieve"): yes(p)})
    state = graphs.one("self_rag", self_rag(retrieve="adaptive"), HITS)
    assert state["trace"][0]["verdict"] is fetched
    assert state.get("retrieved", []) == (["d1", "d2"] if fetched else [])


def test_the_threshold_itself_fetches_nothing(graphs: Answers) -> None:
    closed = {prompt("closed_book"): words("the Alps", 0.5)}
    graphs.stub.behave = answers_by({**SHORT, **closed, prompt("retrieve"): one_token({"Yes": 0.5, "No": 0.5})})
    assert graphs.one("self_rag", self_rag(retrieve="adaptive", threshold=0.5), HITS)["used"] == []


def test_never_answers_from_the_model_alone_and_grounds_nothing(graphs: Answers) -> None:
    table = {prompt("closed_book"): words("the Alps", 0.5), prompt("useful", answer="the Alps"): use(u5=1.0)}
    graphs.stub.behave = answers_by(table)
    state = graphs.one("self_rag", self_rag(retrieve="never"), HITS)
    assert path(state) == ["decide", "generate", "critique", "conclude"]
    assert (state["answer"], state["used"]) == ("the Alps", [])
    assert critiques(state)[0]["score"] == pytest.approx(0.5 + 0.5 * 1)
    assert not any(step.get("decides") for step in state["trace"])


def test_a_search_that_finds_nothing_leaves_the_model_alone(graphs: Answers) -> None:
    table = {prompt("closed_book"): words("the Alps", 0.5), prompt("useful", answer="the Alps"): use(u5=1.0)}
    graphs.stub.behave = answers_by(table)
    state = graphs.one("self_rag", self_rag(), [])
    assert (state["answer"], state["used"], state["retrieved"]) == ("the Alps", [], [])


# Long form: two segments from two documents

MORE = "Never read."
LONG = {
    prompt("relevant", "d1"): yes(0.9),
    prompt("relevant", "d2"): yes(0.6),
    prompt("answer", "d1"): words(f"One. {MORE}", 0.5),
    prompt("supported", "d1", segment="One."): support(0.8, 0.2),
    prompt("useful", answer="One."): use(u5=0.5, u3=0.5),
    prompt("answer", "d2"): words(f"Two. {MORE}", 0.5),
    prompt("supported", "d2", segment="Two."): support(0.5, 0.5),
    prompt("useful", answer="Two."): use(u5=1.0),
    prompt("continue", "d1", answer="One."): words(f"Three. {MORE}", 0.25),
    prompt("supported", "d1", segment="Three."): support(0.0, 0.0),
    prompt("useful", answer="One. Three."): use(u1=1.0),
    prompt("continue", "d2", answer="One."): words(f"Four. {MORE}", 0.25),
    prompt("supported", "d2", segment="Four."): support(0.0, 0.0),
    prompt("useful", answer="One. Four."): use(u1=1.0),
    prompt("continue", "d1", answer="Two."): words(f"Five. {MORE}", 0.5),
    prompt("supported", "d1", segment="Five."): support(1.0, 0.0),
    prompt("useful", answer="Two. Five."): use(u5=1.0),
    prompt("continue", "d2", answer="Two."): words(f"Six. {MORE}", 0.5),
    prompt("supported", "d2", segment="Six."): support(0.0, 0.0),
    prompt("useful", answer="Two. Six."): use(u3=1.0),
}
ONE = 0.5 + 0.9 + (0.8 + 0.5 * 0.2) + 0.5 * (0.5 * 1 + 0.5 * 0)  # 2.55
TWO = 0.5 + 0.6 + (0.5 + 0.5 * 0.5) + 0.5 * 1  # 2.35
THREE = 0.25 + 0.9 + 0.0 + 0.5 * -1  # 0.65
FOUR = 0.25 + 0.6 + 0.0 + 0.5 * -1  # 0.35
FIVE = 0.5 + 0.9 + 1.0 + 0.5 * 1  # 2.9
SIX = 0.5 + 0.6 + 0.0 + 0.5 * 0  # 1.1


def beam(graphs: Answers, **changes: Any) -> State:
    graphs.stub.behave = answers_by(LONG)
    queries = {QUESTION: HITS, f"{QUESTION} One.": HITS, f"{QUESTION} Two.": HITS}
    settings = self_rag(form="long", **changes)
    return graphs.all("self_rag", [QUESTION], settings=settings, retriever=recorded(queries))[0]


def test_the_beam_follows_a_path_that_was_second_at_first(graphs: Answers) -> None:
    state = beam(graphs)
    assert ONE > TWO
    expected = [ONE, TWO, (ONE + THREE) / 2, (ONE + FOUR) / 2, (TWO + FIVE) / 2, (TWO + SIX) / 2]
    assert [step["score"] for step in critiques(state)] == pytest.approx(expected)
    assert [step["kept"] for step in critiques(state)] == [True, True, False, False, True, True]
    assert state["answer"] == "Two. Five."
    assert state["used"] == ["d2", "d1"]
    assert sorted(graphs.stub.prompts) == sorted(LONG)


def test_a_beam_of_one_is_greedy(graphs: Answers) -> None:
    state = beam(graphs, beam_width=1)
    assert [step["score"] for step in critiques(state)] == pytest.approx([ONE, TWO, (ONE + THREE) / 2, (ONE + FOUR) / 2])
    assert (state["answer"], state["used"]) == ("One. Three.", ["d1"])


def test_relevance_is_graded_once_a_document_and_search_is_by_the_last_segment(graphs: Answers) -> None:
    state = beam(graphs)
    assert [step["node"] for step in state["trace"] if step.get("decides") == "keep"] == ["grade"]
    queries = [step["query"] for step in state["trace"] if step["node"] == "retrieve"]
    assert queries == [QUESTION, f"{QUESTION} One.", f"{QUESTION} Two."]


def test_the_least_supported_segment_decides_whether_the_answer_is_grounded(graphs: Answers) -> None:
    state = beam(graphs, beam_width=1)
    assert (state["trace"][-1]["verdict"], state["trace"][-1]["p"]) == (False, 0.0)


def test_only_the_first_sentence_of_a_reply_is_a_segment_and_only_its_tokens_count(graphs: Answers) -> None:
    sure, unsure = ("One.", {"One.": 0.5}), (" More.", {" More.": 0.01})
    reply = completion("One. More.", tokens=[sure, unsure])
    graphs.stub.behave = answers_by({**LONG, prompt("answer", "d1"): reply})
    state = graphs.one("self_rag", self_rag(form="long", segments=1), HITS)
    assert (critiques(state)[0]["text"], critiques(state)[0]["likelihood"]) == ("One.", 0.5)


def test_a_path_whose_model_stops_after_one_sentence_has_ended(graphs: Answers) -> None:
    graphs.stub.behave = answers_by({**LONG, prompt("answer", "d1"): words("One.", 0.5)})
    state = graphs.one("self_rag", self_rag(form="long", k=1), HITS)
    assert state["answer"] == "One."


def test_a_continuation_that_begins_with_what_was_said_counts_from_its_first_new_sentence(graphs: Answers) -> None:
    again = completion(
        "One. Three. More.", tokens=[("One.", {"One.": 0.9}), (" Three.", {" Three.": 0.25}), (" More.", {" More.": 0.9})]
    )
    graphs.stub.behave = answers_by({**LONG, prompt("continue", "d1", answer="One."): again})
    queries = {QUESTION: HITS, f"{QUESTION} One.": HITS}
    [state] = graphs.all("self_rag", [QUESTION], settings=self_rag(form="long", k=1), retriever=recorded(queries))
    assert state["answer"] == "One. Three."
    assert critiques(state)[1]["likelihood"] == pytest.approx(0.25)


@pytest.mark.parametrize("reply", ["", "One."])
def test_a_continuation_that_adds_nothing_ends_the_path(graphs: Answers, reply: str) -> None:
    graphs.stub.behave = answers_by({**LONG, prompt("continue", "d1", answer="One."): completion(reply)})
    queries = {QUESTION: HITS, f"{QUESTION} One.": HITS}
    settings = self_rag(form="long", k=1, segments=5)
    [state] = graphs.all("self_rag", [QUESTION], settings=settings, retriever=recorded(queries))
    assert state["answer"] == "One."
    assert len([p for p in graphs.stub.prompts if p.startswith("Question") and "How useful" in p]) == 1


def test_every_path_decides_anew_whether_its_next_segment_needs_documents(graphs: Answers) -> None:
    table = {
        **LONG,
        prompt("retrieve"): yes(0.9),
        prompt("retrieve_more", answer="One."): yes(0.1),
        prompt("retrieve_more", answer="Two."): yes(0.9),
        prompt("continue_closed_book", answer="One."): words(f"Seven. {MORE}", 0.5),
        prompt("useful", answer="One. Seven."): use(u5=1.0),
    }
    graphs.stub.behave = answers_by(table)
    queries = {QUESTION: HITS, f"{QUESTION} Two.": HITS}
    settings = self_rag(form="long", retrieve="adaptive")
    [state] = graphs.all("self_rag", [QUESTION], settings=settings, retriever=recorded(queries))
    seven = 0.5 + 0.5 * 1
    expected = [ONE, TWO, (ONE + seven) / 2, (TWO + FIVE) / 2, (TWO + SIX) / 2]
    assert [step["score"] for step in critiques(state)] == pytest.approx(expected)
    decided = [step for step in state["trace"] if step["node"] == "decide"]
    assert [(step["decides"], step["answer"], step["verdict"]) for step in decided] == [
        ("retrieve", "", True),
        ("retrieve", "One.", False),
        ("retrieve", "Two.", True),
    ]


# The worst a model can say (tests/strategies/test_worst_model.py has more)


@pytest.mark.parametrize("mode", ["adaptive", "always", "never"])
def test_a_model_that_never_stops_ends_within_the_bound(graphs: Answers, tiny: Retrievers, mode: str) -> None:
    graphs.stub.behave = lambda body: completion(f"{len(body['messages'][-1]['content'])} is it. More.")
    settings = self_rag(retrieve=mode, form="long", segments=3)
    with metered() as meter:
        [state] = graphs.all("self_rag", [QUESTION], settings=settings, retriever=tiny.of("hybrid"))
    assert max(step["segment"] for step in critiques(state)) == 3
    assert len(meter.calls) <= settings.max_calls


def test_empty_replies_alone_are_an_error_within_the_bound(graphs: Answers) -> None:
    graphs.stub.behave = lambda body: completion("")
    with metered() as meter, pytest.raises(ArenaError, match=r"^m: nothing but empty replies at generate; raise max_tokens"):
        graphs.one("self_rag", self_rag(), HITS)
    assert len(meter.calls) <= self_rag().max_calls


def test_an_empty_reply_beside_an_answer_is_left_out(graphs: Answers) -> None:
    graphs.stub.behave = answers_by({**SHORT, prompt("answer", "d1"): completion("")})
    state = graphs.one("self_rag", self_rag(), HITS)
    assert (state["answer"], len(critiques(state))) == ("the Black Forest", 1)


@pytest.mark.parametrize(
    ("changes", "calls"),
    [
        ({"k": 3, "retrieve": "adaptive"}, 2 + 3 * (1 + 3 * 2)),
        ({"k": 3, "retrieve": "always"}, 3 * (1 + 3 * 2)),
        ({"k": 3, "retrieve": "always", "grader": "cross_encoder"}, 3 * (1 + 2 * 2)),
        ({"k": 3, "retrieve": "never"}, 1 + 2),
        ({"k": 3, "retrieve": "adaptive", "form": "long"}, (2 + 3 * (1 + 3 * 2)) * (1 + 2 * (2 - 1))),
        ({"k": 3, "retrieve": "adaptive", "variant": "native"}, 1 + 3),
    ],
)
def test_the_bound_counts_every_verdict_twice(changes: dict[str, Any], calls: int) -> None:
    assert self_rag(**changes).max_calls == calls
