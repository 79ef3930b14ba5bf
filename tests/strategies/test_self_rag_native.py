"""self_rag, native: a server that speaks the completions format and says the reflection tokens of a Self-RAG checkpoint."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from rag_arena.errors import ArenaError, EndpointError
from rag_arena.metering import metered
from rag_arena.strategies.state import State
from tests.strategies.harness import DOCUMENTS, QUESTION, Answers, path, recorded
from tests.strategies.test_self_rag import HITS, critiques, self_rag
from tests.stub import Answer, Body, completion, raw_completion

START = f"### Instruction:\n{QUESTION}\n\n### Response:\n"
RELEVANT, IRRELEVANT = "[Relevant]", "[Irrelevant]"
FULLY, PARTIALLY, NOT = "[Fully supported]", "[Partially supported]", "[No support / Contradictory]"
Said = tuple[str, Mapping[str, float]]


def shown(doc_id: str) -> str:
    document = DOCUMENTS[doc_id]
    return f"[Retrieval]<paragraph>{document.title}\n{document.text}</paragraph>"


def spoken(text: str, p: float) -> list[Said]:
    return [(word, {word: p}) for word in text.replace(" ", "| ").split("|")]


def token(said: str, **others: float) -> Said:
    """A token said with probability `p` and its rivals by their short names."""
    names = {
        "p": said,
        "irrelevant": IRRELEVANT,
        "partially": PARTIALLY,
        "none": NOT,
        "three": "[Utility:3]",
        "one": "[Utility:1]",
    }
    return said, {names[name]: p for name, p in others.items()}


def replies(table: Mapping[str, Answer]) -> Any:
    def behave(body: Body) -> Answer:
        return table[body["prompt"]]

    return behave


def native(graphs: Answers, table: Mapping[str, Answer], queries: Sequence[str] = (), **changes: Any) -> State:
    graphs.stub.behave = replies(table)
    settings = self_rag(variant="native", **changes)
    retriever = recorded(dict.fromkeys([QUESTION, *queries], HITS))
    return graphs.all("self_rag", [QUESTION], settings=settings, retriever=retriever)[0]


ALPS = [
    token(RELEVANT, p=0.6, irrelevant=0.2),
    *spoken("the Alps", 0.25),
    token(FULLY, p=0.5, partially=0.2, none=0.1),
    token("[Utility:5]", p=0.6, three=0.2),
    ("</s>", {"</s>": 1.0}),
]
FOREST = [
    token(IRRELEVANT, p=0.9),
    *spoken("the Black Forest", 0.5),
    token(NOT, p=1.0),
    token("[Utility:1]", p=1.0),
    ("</s>", {"</s>": 1.0}),
]
SHORT = {START + shown("d1"): raw_completion(ALPS), START + shown("d2"): raw_completion(FOREST)}
ALPS_SCORE = 0.25 + 1.0 * 0.6 / 0.8 + 1.0 * (0.5 + 0.5 * 0.2) / 0.8 + 0.5 * (1 * 0.6 + 0 * 0.2) / 0.8
FOREST_SCORE = 0.5 + 1.0 * 0 + 1.0 * 0 + 0.5 * -1


def test_every_critique_is_read_at_its_own_token(graphs: Answers) -> None:
    state = native(graphs, SHORT)
    alps, forest = critiques(state)
    assert alps["score"] == pytest.approx(ALPS_SCORE, abs=1e-6)
    assert forest["score"] == pytest.approx(FOREST_SCORE, abs=1e-6)
    terms = [alps[name] for name in ("likelihood", "relevant", "supported", "useful")]
    assert terms == pytest.approx([0.25, 0.6 / 0.8, 0.6 / 0.8, 0.6 / 0.8], abs=1e-6)
    assert (state["answer"], state["used"]) == ("the Alps", ["d1"])
    assert path(state) == ["decide", "retrieve", "generate", "grade", "critique", "critique", "conclude"]


def test_grades_and_groundedness_come_from_the_tokens(graphs: Answers) -> None:
    state = native(graphs, SHORT)
    assert state["trace"][3]["grades"] == [
        {"doc_id": "d1", "p": 0.75, "kept": True, "source": "logprobs"},
        {"doc_id": "d2", "p": 0.0, "kept": False, "source": "logprobs"},
    ]
    assert (state["trace"][-1]["verdict"], state["trace"][-1]["p"]) == (True, 0.75)


def test_one_raw_completion_per_document_with_alternatives_and_special_tokens(graphs: Answers) -> None:
    native(graphs, SHORT)
    assert graphs.stub.paths == ["/v1/completions"] * 2
    for body in graphs.stub.requests:
        assert body.keys() == {"model", "prompt", "max_tokens", "temperature", "logprobs", "skip_special_tokens"}
        assert (body["max_tokens"], body["logprobs"], body["skip_special_tokens"]) == (16, 20, False)


def test_raw_completions_are_recorded_and_replayed(graphs: Answers) -> None:
    first = native(graphs, SHORT)
    with metered() as meter:
        assert native(graphs, SHORT)["trace"] == first["trace"]
    assert len(graphs.stub.requests) == 2
    assert [call.replayed for call in meter.calls] == [True, True]
    assert json.loads(meter.calls[0].reply)["object"] == "text_completion"


@pytest.mark.parametrize(
    ("yes", "no", "fetched"),
    [(0.3, 0.6, True), (0.1, 0.9, False), (0.2, 0.8, False)],  # 0.33, 0.1, and the threshold itself
)
def test_retrieval_is_decided_by_the_share_of_its_token(graphs: Answers, yes: float, no: float, fetched: bool) -> None:
    decided = raw_completion([("[No Retrieval]", {"[Retrieval]": yes, "[No Retrieval]": no})], "length")
    closed = raw_completion([*spoken("the Alps", 0.5), token("[Utility:5]", p=1.0)])
    state = native(graphs, {**SHORT, START: decided, START + "[No Retrieval]": closed}, retrieve="adaptive")
    assert state["trace"][0]["verdict"] is fetched
    assert state["trace"][0]["p"] == pytest.approx(yes / (yes + no), abs=1e-6)
    assert state["used"] == (["d1"] if fetched else [])
    if not fetched:
        assert critiques(state)[0]["score"] == pytest.approx(0.5 + 0.5 * 1)


def test_where_neither_retrieval_token_is_likely_the_odds_are_even(graphs: Answers) -> None:
    state = native(graphs, {**SHORT, START: raw_completion(spoken("Sure", 0.9), "length")}, retrieve="adaptive")
    step = state["trace"][0]
    assert (step["verdict"], step["p"], step["source"]) == (True, 0.5, "unreadable")


def test_a_reply_without_critiques_scores_by_its_likelihood_alone(graphs: Answers) -> None:
    plain = raw_completion(spoken("somewhere else", 0.75))
    state = native(graphs, {**SHORT, START + shown("d2"): plain})
    assert critiques(state)[1]["score"] == pytest.approx(0.75)
    assert state["trace"][3]["grades"][1] == {"doc_id": "d2", "p": 0.5, "kept": True, "source": "unreadable"}


def test_a_call_for_more_documents_ends_a_short_answer(graphs: Answers) -> None:
    more = [*ALPS[:4], ("[Retrieval]", {"[Retrieval]": 1.0}), ("<paragraph>", {"<paragraph>": 1.0}), *spoken("made up", 0.9)]
    state = native(graphs, {**SHORT, START + shown("d1"): raw_completion(more, "length")})
    assert state["answer"] == "the Alps"


# Long form

GOES_ON = ("[Continue to Use Evidence]", {"[Continue to Use Evidence]": 0.9, "[Retrieval]": 0.05, "[No Retrieval]": 0.05})
WRITTEN = "[Retrieval][Relevant]In the Alps.[Fully supported]"
SENTENCE = [token(RELEVANT, p=1.0), *spoken("In the Alps.", 0.5), token(FULLY, p=1.0)]
ENDING = [token(RELEVANT, p=1.0), *spoken("At a lake.", 0.25), token(PARTIALLY, p=1.0), token("[Utility:5]", p=1.0)]


def test_a_segment_ends_at_the_next_retrieval_token_and_the_next_prompt_holds_its_tokens_but_not_its_passage(
    graphs: Answers,
) -> None:
    table = {
        START: raw_completion([("[Retrieval]", {"[Retrieval]": 1.0})], "length"),
        START + shown("d1"): raw_completion([*SENTENCE, GOES_ON, *spoken("Never read.", 0.5)], "length"),
        START + WRITTEN: raw_completion([GOES_ON], "length"),
        START + WRITTEN + shown("d1"): raw_completion(ENDING),
    }
    state = native(graphs, table, form="long", retrieve="adaptive", k=1, segments=5)
    assert state["answer"] == "In the Alps. At a lake."
    assert [step["text"] for step in critiques(state)] == ["In the Alps.", "At a lake."]
    first = 0.5 + 1 + 1
    second = 0.25 + 1 + 0.5 + 0.5 * 1
    assert [step["score"] for step in critiques(state)] == pytest.approx([first, (first + second) / 2])
    decided = [step for step in state["trace"] if step["node"] == "decide"]
    assert [(step["verdict"], step["read_on"]) for step in decided] == [(True, False), (False, True)]
    assert [step["node"] for step in state["trace"]].count("retrieve") == 1
    assert state["trace"][-1]["verdict"] is False


def test_new_documents_are_fetched_where_the_model_wants_some(graphs: Answers) -> None:
    wanted = raw_completion([("[Retrieval]", {"[Retrieval]": 1.0})], "length")
    table = {
        START: wanted,
        START + shown("d1"): raw_completion([*SENTENCE, GOES_ON], "length"),
        START + WRITTEN: wanted,
        START + WRITTEN + shown("d1"): raw_completion(ENDING),
    }
    state = native(graphs, table, [f"{QUESTION} In the Alps."], form="long", retrieve="adaptive", k=1)
    assert [step["query"] for step in state["trace"] if step["node"] == "retrieve"] == [QUESTION, f"{QUESTION} In the Alps."]


# Servers that cannot


def test_a_server_without_log_probabilities_is_refused(graphs: Answers) -> None:
    answer = raw_completion(ALPS)
    reply = json.loads(answer.content)
    reply["choices"][0]["logprobs"] = None
    answer.content = json.dumps(reply).encode()
    with pytest.raises(EndpointError, match=r"gives no log-probabilities.*llm\.endpoint\.top_logprobs.*variant to prompted"):
        native(graphs, {**SHORT, START + shown("d1"): answer})


def test_an_empty_reply_fails_its_question_and_not_the_endpoint(graphs: Answers) -> None:
    with pytest.raises(ArenaError, match="an empty reply at generate") as caught:
        native(graphs, {**SHORT, START + shown("d1"): raw_completion([])})
    assert not isinstance(caught.value, EndpointError)


def test_a_chat_completion_is_no_raw_completion_and_is_not_recorded(graphs: Answers) -> None:
    with pytest.raises(Exception, match="200 without a completion: "):
        native(graphs, {**SHORT, START + shown("d1"): completion("the Alps")})
