"""IRCoT: its stop rules, its query making, and the loop from end to end over real retrieval."""

from typing import Any

import pytest

from rag_arena.retrieval.retriever import RecordedRetriever, Retrievers
from rag_arena.strategies.iterative.graph import Settings
from rag_arena.strategies.nodes.reason import concludes, query_of
from rag_arena.strategies.prompts import Prompts
from rag_arena.strategies.state import State
from tests.strategies.harness import DOCUMENTS, QUESTION, Answers, hit, path, recorded
from tests.stub import Answer, Body, completion

THOUGHT, READER = 9, 16  # longest replies, by which the stub tells the two prompts apart


def iterative(**changes: Any) -> Settings:
    defaults = {"k": 2, "max_tokens": READER, "max_steps": 3, "max_paragraphs": 4, "step_tokens": THOUGHT}
    return Settings(**{**defaults, **changes})


def thinking(*thoughts: str) -> Any:
    """A model that thinks these thoughts in turn and answers "In the Alps."."""
    rest = list(thoughts)

    def behave(body: Body) -> Answer:
        return completion("In the Alps." if body["max_tokens"] == READER else rest.pop(0))

    return behave


def live(tiny: Retrievers, first: list[Any]) -> RecordedRetriever:
    """First-pass hits for the question, real retrieval for thoughts."""
    return RecordedRetriever({QUESTION: first}, 10, lambda: tiny.of("dense"))


def reasoned(state: State) -> list[dict[str, Any]]:
    return [step for step in state["trace"] if step["node"] == "reason"]


# Stop rules


@pytest.mark.parametrize(
    "sentence", ["So the answer is: the Alps.", "The answer is: 1841", "ANSWER IS: x", "Therefore, the final answer is:"]
)
def test_a_thought_that_says_answer_is_with_a_colon_concludes(sentence: str):
    assert concludes(sentence)


@pytest.mark.parametrize("sentence", ["The answer is not in the passages.", "Danswer is: x", "The answer lies in the Alps.", ""])
def test_a_thought_that_only_speaks_of_the_answer_does_not(sentence: str):
    assert not concludes(sentence)


def test_a_conclusion_ends_the_loop_without_another_search(graphs: Answers):
    graphs.stub.behave = thinking("So the answer is: the Alps.")
    state = graphs.one("iterative", iterative(), [hit("d1", 0.9), hit("d2", 0.8)])
    assert path(state) == ["retrieve", "reason", "generate"]
    assert reasoned(state)[0] == {"node": "reason", "sentence": "So the answer is: the Alps.", "query": "", "done": True}
    assert state["answer"] == "In the Alps."


def test_an_empty_thought_ends_the_loop(graphs: Answers):
    graphs.stub.behave = thinking("")
    assert path(graphs.one("iterative", iterative(), [hit("d1", 0.9)])) == ["retrieve", "reason", "generate"]


def test_a_thought_that_was_thought_before_ends_the_loop(graphs: Answers, tiny: Retrievers):
    graphs.stub.behave = thinking("The Elbe is long.", "The Oder is short.", "The Elbe is long.")
    tools = {"settings": iterative(max_steps=9), "retriever": live(tiny, [hit("d1", 0.9)])}
    [state] = graphs.all("iterative", [QUESTION], **tools)
    assert [step["done"] for step in reasoned(state)] == [False, False, True]


def test_the_first_thought_is_not_offered_to_conclude_and_later_ones_are(graphs: Answers, tiny: Retrievers):
    graphs.stub.behave = thinking("The Elbe is long.", "")
    graphs.all("iterative", [QUESTION], settings=iterative(), retriever=live(tiny, [hit("d1", 0.9)]))
    assert [concludes(prompt) for prompt in graphs.stub.prompts] == [False, True, False]


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_the_step_limit_ends_the_loop_after_the_last_thoughts_retrieval(graphs: Answers, tiny: Retrievers, limit: int):
    graphs.stub.behave = thinking("The Elbe is long.", "It is wet.", "It is cold.", "It is deep.")
    tools = {"settings": iterative(max_steps=limit), "retriever": live(tiny, [hit("d1", 0.9)])}
    [state] = graphs.all("iterative", [QUESTION], **tools)
    assert path(state) == ["retrieve", *(["reason", "collect"] * limit), "generate"]
    assert len(graphs.stub.requests) == limit + 1 == tools["settings"].max_calls


def test_only_the_first_sentence_counts_so_a_conclusion_after_it_does_not_stop(graphs: Answers, tiny: Retrievers):
    graphs.stub.behave = thinking("The Elbe begins in Bohemia. So the answer is: Bohemia.", "")
    [state] = graphs.all("iterative", [QUESTION], settings=iterative(), retriever=live(tiny, [hit("d1", 0.9)]))
    assert [step["sentence"] for step in reasoned(state)] == ["The Elbe begins in Bohemia.", ""]


def test_what_a_model_thinks_to_itself_reaches_no_stop_rule_no_query_and_no_later_prompt(graphs: Answers, tiny: Retrievers):
    graphs.stub.behave = thinking("<think>Cheese. The answer is: milk.</think>The Elbe is long.", "")
    [state] = graphs.all("iterative", [QUESTION], settings=iterative(), retriever=live(tiny, [hit("d1", 0.9)]))
    first = reasoned(state)[0]
    assert (first["query"], first["done"]) == ("The Elbe is long.", False)
    assert first["thoughts"] == "Cheese. The answer is: milk."
    assert "milk" not in graphs.stub.prompts[1].replace(DOCUMENTS["d3"].text, "")


# Query making


@pytest.mark.parametrize(
    ("sentence", "query"),
    [
        ("The Rhine begins in the Alps.", "The Rhine begins in the Alps."),
        ("We must find who designed the dome, and when.", "We must find designed the dome, and"),
        ("What is the source? The Alps", "is the source? The Alps"),
        ("Where?", ""),
        ("So the river is the Rhine.", ""),
        ("Therefore, it is in Chile.", ""),
        ("Thus it is in Chile.", ""),
        ("Some rivers begin in Soria.", "Some rivers begin in Soria."),
        ("That is, it began in 1841.", ""),
        ("He lived 1841 - 1809 = 32 years.", ""),
        ("He lived from 1809-1841.", "He lived from 1809-1841."),
        ("", ""),
    ],
)
def test_a_query_is_the_thought_without_wh_words_and_nothing_when_it_only_deduces(sentence: str, query: str):
    assert query_of(sentence) == query


def test_a_deduction_is_kept_in_the_chain_but_not_searched_for(graphs: Answers):
    graphs.stub.behave = thinking("So it is a river.", "")
    state = graphs.one("iterative", iterative(), [hit("d1", 0.9)])  # this retriever knows the question alone
    assert path(state) == ["retrieve", "reason", "collect", "reason", "generate"]
    assert state["trace"][2] == {"node": "collect", "query": "", "held": 1, "done": False, "hits": []}
    assert "So it is a river." in graphs.stub.prompts[1]


# What is collected


def test_a_thoughts_documents_join_those_at_hand_and_the_reader_sees_all_in_the_order_found(graphs: Answers, tiny: Retrievers):
    graphs.stub.behave = thinking("The Elbe begins in Bohemia.", "")
    [state] = graphs.all("iterative", [QUESTION], settings=iterative(), retriever=live(tiny, [hit("d3", 0.9), hit("d1", 0.8)]))
    found = [h.doc_id for h in tiny.of("dense").search("The Elbe begins in Bohemia.", 2)]
    assert found[0] == "d4"
    assert state["used"] == ["d3", "d1", *(d for d in found if d not in ("d3", "d1"))]
    assert state["retrieved"] == state["used"]
    context = "\n\n".join(f"{d.title}: {d.text}" if d.title else d.text for d in (DOCUMENTS[doc_id] for doc_id in state["used"]))
    assert graphs.stub.prompts[-1] == Prompts("iterative").render("answer", question=QUESTION, context=context)


def test_no_more_than_max_paragraphs_are_held_and_every_fetched_document_is_recorded(graphs: Answers):
    graphs.stub.behave = thinking("More.", "")
    retriever = recorded({QUESTION: [hit("d1", 0.9), hit("d2", 0.8)], "More.": [hit("d2", 0.9), hit("d3", 0.8), hit("d4", 0.7)]})
    [state] = graphs.all("iterative", [QUESTION], settings=iterative(k=3, max_paragraphs=3), retriever=retriever)
    assert state["used"] == ["d1", "d2", "d3"]
    assert state["retrieved"] == ["d1", "d2", "d3", "d4"]


def test_the_chain_grows_by_one_sentence_a_step_in_the_prompt(graphs: Answers, tiny: Retrievers):
    graphs.stub.behave = thinking("The Elbe is long. And wet.", "It begins in Bohemia.", "")
    graphs.all("iterative", [QUESTION], settings=iterative(), retriever=live(tiny, [hit("d1", 0.9)]))
    told = [prompt.split("Known so far: ")[1].split("\n")[0] for prompt in graphs.stub.prompts[1:3]]
    assert told == ["The Elbe is long.", "The Elbe is long. It begins in Bohemia."]


def test_the_chain_itself_does_not_reach_the_reader(graphs: Answers):
    graphs.stub.behave = thinking("So the answer is: nowhere at all.")
    graphs.one("iterative", iterative(), [hit("d1", 0.9)])
    assert "nowhere" not in graphs.stub.prompts[-1]


def test_fewer_paragraphs_than_one_retrieval_brings_are_refused():
    with pytest.raises(ValueError, match="max_paragraphs must not be under k"):
        iterative(k=5, max_paragraphs=4)
