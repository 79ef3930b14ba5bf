"""Adaptive-RAG: the router's arithmetic, and the three paths from end to end."""

import math
from typing import Any

import numpy as np
import pytest

from rag_arena.decisions import CHOICES
from rag_arena.retrieval.retriever import RecordedRetriever, Retrievers
from rag_arena.strategies.adaptive.graph import Settings
from rag_arena.strategies.adaptive.router import Router, cross_validated, fit, likeliest
from rag_arena.strategies.prompts import Prompts
from rag_arena.strategies.state import State
from tests.strategies.harness import QUESTION, Answers, hit, path
from tests.stub import Answer, Body, completion, one_token, words

STEP, READER = 9, 16
LOOP = {"k": 2, "max_tokens": READER, "max_steps": 2, "max_paragraphs": 4, "step_tokens": STEP}
FIRST = [hit("d1", 0.9), hit("d2", 0.8)]


def adaptive(router: Any) -> Settings:
    return Settings(router=router, **LOOP)


def always(choice: str) -> Router:
    """A router of two choices that is nearly sure of this one, whatever the question."""
    other = next(c for c in CHOICES if c != choice)
    return Router(choices=[choice, other], intercepts=[3.0, 0.0], coefficients=[[0.0, 0.0], [0.0, 0.0]])


def asked(graphs: Answers, router: Any, **tools: Any) -> State:
    retriever = RecordedRetriever({QUESTION: FIRST}, 2, lambda: pytest.fail("searched"))
    defaults = {"settings": adaptive(router), "retriever": retriever, "embed": lambda _: [0.0, 0.0]}
    return graphs.all("adaptive", [QUESTION], **{**defaults, **tools})[0]


# The paths


def test_none_answers_closed_book_without_a_search(graphs: Answers):
    state = asked(graphs, always("none"))
    assert path(state) == ["route", "generate"]
    assert graphs.stub.prompts == [Prompts("no_retrieval").render("closed_book", question=QUESTION)]
    assert (state["retrieved"], state["used"]) == ([], [])


def test_one_does_what_vanilla_does(graphs: Answers):
    state = asked(graphs, always("one"))
    assert path(state) == ["route", "retrieve", "generate"]
    asked_once = list(graphs.stub.prompts)
    graphs.one("vanilla", adaptive("prompted"), FIRST)
    assert graphs.stub.prompts == asked_once, "vanilla's call is the same one and is replayed"
    assert "corrected" not in state


def test_several_does_what_iterative_does(graphs: Answers, tiny: Retrievers):
    graphs.stub.behave = lambda body: completion("The Elbe begins in Bohemia.")
    tools = {"retriever": RecordedRetriever({QUESTION: FIRST}, 2, lambda: tiny.of("dense"))}
    state = asked(graphs, always("several"), **tools)
    assert path(state) == ["route", "retrieve", "reason", "collect", "reason", "generate"]
    sent = len(graphs.stub.prompts)
    [plain] = graphs.all("iterative", [QUESTION], settings=adaptive("prompted"), **tools)
    assert len(graphs.stub.prompts) == sent, "iterative's calls are the same ones and are replayed"
    assert plain["trace"] == state["trace"][1:]


# What the router decides


def test_a_trained_router_asks_no_model_and_leaves_its_probability_in_the_trace(graphs: Answers):
    state = asked(graphs, always("none"))
    sure = math.exp(3) / (math.exp(3) + math.exp(0))
    assert state["trace"][0] == {
        "node": "route",
        "decides": "retrieve",
        "verdict": False,
        "choice": "none",
        "p": round(1 - sure, 6),
        "source": "trained",
    }
    assert len(graphs.stub.requests) == 1


@pytest.mark.parametrize(
    ("tokens", "choice", "p"),
    [
        ({"one": 0.5, "none": 0.2, "several": 0.1}, "one", (0.5 + 0.1) / 0.8),
        ({" Several": 0.3, "sever": 0.2, "None": 0.3}, "several", (0.3 + 0.2) / 0.8),
        ({"None": 0.4, "ONE": 0.4}, "none", 0.4 / 0.8),
    ],
)
def test_a_prompted_router_reads_probabilities_and_takes_the_cheapest_of_equals(
    graphs: Answers, tokens: dict[str, float], choice: str, p: float
):
    def behave(body: Body) -> Answer:
        return one_token(tokens) if body.get("logprobs") else completion("In the Alps.")

    graphs.stub.behave = behave
    tools = {"retriever": RecordedRetriever({QUESTION: FIRST}, 2, lambda: Nothing())}
    step = asked(graphs, "prompted", **tools)["trace"][0]
    assert (step["choice"], step["p"], step["source"]) == (choice, round(p, 6), "logprobs")
    assert step["verdict"] is (choice != "none")


def test_a_prompted_router_that_cannot_be_read_takes_the_cheapest_and_says_so(graphs: Answers):
    graphs.stub.behave = lambda body: completion("I do not know.")
    step = asked(graphs, "prompted")["trace"][0]
    assert (step["choice"], step["p"], step["source"]) == ("none", round(2 / 3, 6), "unreadable")


class Nothing:
    def search(self, query: str, k: int, exclude: frozenset[str] = frozenset(), where: Any = ()) -> list[Any]:
        return []


@pytest.mark.parametrize("router", ["oracle", "", 3])
def test_no_other_router_is_accepted(router: Any):
    with pytest.raises(ValueError, match="must be trained or prompted"):
        adaptive(router)


# The classifier


def test_probabilities_are_the_softmax_of_each_choices_line():
    router = Router(choices=["none", "one", "several"], intercepts=[0.5, 0.0, -1.0], coefficients=[[1, 0], [0, 2], [3, 3]])
    lines = [0.5 + 1 * 0.2, 0.0 + 2 * 0.1, -1.0 + 3 * 0.2 + 3 * 0.1]
    total = sum(math.exp(line) for line in lines)
    found = router.probabilities(np.array([0.2, 0.1]))
    assert found == pytest.approx({choice: math.exp(line) / total for choice, line in zip(CHOICES, lines, strict=True)})


def test_a_learnt_router_tells_apart_what_its_labels_told_apart():
    vectors = np.array([[1, 0], [0.9, 0.1], [0, 1], [0.1, 0.9], [-1, 0], [-0.9, 0.1]], dtype=np.float32)
    labels = ["none", "none", "one", "one", "several", "several"]
    router = fit(vectors, labels, 100.0)
    assert router.choices == ["none", "one", "several"]
    assert [likeliest(router.probabilities(v)) for v in vectors] == labels


def test_two_classes_are_one_line_and_a_line_of_zeros_whose_softmax_is_the_logistic_function():
    vectors = np.array([[1, 0], [0, 1], [0.9, 0], [0, 0.9]], dtype=np.float32)
    router = fit(vectors, ["one", "several", "one", "several"], 1.0)
    assert (router.choices, router.intercepts[0], router.coefficients[0]) == (["one", "several"], 0.0, [0.0, 0.0])
    z = router.intercepts[1] + router.coefficients[1][0] * 0.3 + router.coefficients[1][1] * 0.7
    assert router.probabilities(np.array([0.3, 0.7]))["several"] == pytest.approx(1 / (1 + math.exp(-z)))


def test_labels_of_one_class_make_a_router_that_always_says_it():
    router = fit(np.array([[1, 0], [0, 1]], dtype=np.float32), ["one", "one"], 1.0)
    assert router.probabilities(np.array([5.0, 5.0])) == {"one": 1.0}


def test_the_same_labels_give_the_same_router_to_the_last_bit():
    draw = np.random.default_rng(0)
    vectors, labels = draw.normal(size=(30, 8)).astype(np.float32), draw.choice(CHOICES, 30).tolist()
    assert fit(vectors, labels, 1.0) == fit(vectors, labels, 1.0)
    assert cross_validated(vectors, labels, 1.0, 5, 7) == cross_validated(vectors, labels, 1.0, 5, 7)


def test_a_question_is_never_predicted_by_a_router_that_saw_it():
    """Each label stands at one place alone, so that a router which has not seen it must miss it."""
    vectors = np.array([[1, 0], [0, 1], [-1, 0]], dtype=np.float32)
    predicted = cross_validated(vectors, CHOICES, 1.0, 3, 7)
    assert all(said != label for said, label in zip(predicted, CHOICES, strict=True))


def test_a_single_question_is_not_cross_validated():
    assert cross_validated(np.array([[1, 0]], dtype=np.float32), ["one"], 1.0, 5, 7) == []


@pytest.mark.parametrize(("router", "bound"), [(always("several"), 2 + 1), ("prompted", 2 + 2 + 1)])
def test_the_bound_counts_the_prompted_routers_two_calls(graphs: Answers, tiny: Retrievers, router: Any, bound: int):
    assert adaptive(router).max_calls == bound
    thoughts = iter(["The Elbe is long.", "The Oder is long."])

    def behave(body: Body) -> Answer:
        if body.get("logprobs"):
            return words("hm", 1.0)
        if "response_format" in body:
            return completion('{"verdict": "several"}')
        return completion(next(thoughts) if body["max_tokens"] == STEP else "In the Alps.")

    graphs.stub.behave = behave
    asked(graphs, router, retriever=RecordedRetriever({QUESTION: FIRST}, 2, lambda: tiny.of("dense")))
    assert len(graphs.stub.requests) == bound
