"""Each graph from end to end: real retrieval over a tiny index, and a model over real sockets."""

import random
from collections.abc import Iterator
from typing import Any

import pytest

from rag_arena import embedders, strategies
from rag_arena.errors import ArenaError
from rag_arena.llm.ledger import Ledger
from rag_arena.metering import metered
from rag_arena.params import Params
from rag_arena.records import Document
from rag_arena.retrieval.retriever import RecordedRetriever, Retriever, Retrievers
from rag_arena.strategies.no_retrieval.graph import Settings as NoRetrieval
from rag_arena.strategies.prompts import Prompts
from rag_arena.strategies.self_corrective.graph import Settings as SelfCorrective
from rag_arena.strategies.vanilla.graph import Settings as Vanilla
from tests.strategies.harness import DOCUMENTS, QUESTION, Answers, hit, index_of, nobody, path, recorded
from tests.stub import completion, serve

WORDS = ["river", "alps", "milk", "cheese", "forest", "north", "sea", "ships", "wine", "castle", "bridge", "city", "king", "war"]


def vanilla(k: int = 3) -> Vanilla:
    return Vanilla(k=k, max_tokens=16)


def corrective(correction: str = "widen", **changes: Any) -> SelfCorrective:
    defaults = {"k": 2, "max_tokens": 16, "threshold": 0.5, "keep_ratio": 0.5, "widen_factor": 2, "rewrite_tokens": 8}
    return SelfCorrective(**{**defaults, "correction": correction, **changes})


# vanilla


def test_vanilla_retrieves_and_generates(graphs: Answers) -> None:
    graphs.stub.behave = lambda body: completion("In the Alps.")
    state = graphs.one("vanilla", vanilla(k=2), [hit("d1", 0.9), hit("d2", 0.8), hit("d3", 0.1)])
    assert path(state) == ["retrieve", "generate"]
    assert state["answer"] == "In the Alps."
    assert state["retrieved"] == state["used"] == ["d1", "d2"]
    assert "corrected" not in state


def test_vanillas_prompt_holds_the_passages_in_order_with_their_titles_and_the_question(graphs: Answers) -> None:
    graphs.one("vanilla", vanilla(k=2), [hit("d2", 0.9), hit("d3", 0.8), hit("d1", 0.1)])
    expected = Prompts("vanilla").render(
        "answer",
        question=QUESTION,
        context="Danube: The Danube begins in the Black Forest.\n\nCheese is made of milk.",
    )
    assert graphs.stub.prompts == [expected]
    assert QUESTION in expected
    assert graphs.stub.requests[0]["max_tokens"] == vanilla().max_tokens


def test_vanilla_uses_even_what_looks_irrelevant(graphs: Answers) -> None:
    assert graphs.one("vanilla", vanilla(k=1), [hit("d3", -0.5)])["used"] == ["d3"]


def test_a_dollar_sign_in_question_and_passage_reaches_the_model_as_it_is(graphs: Answers) -> None:
    question = "Does it cost $5 or $question?"
    price = Document("p", "Price", "It costs ${context} $$7.")
    graphs.all(
        "vanilla",
        [question],
        settings=vanilla(1),
        retriever=recorded({question: [hit("p", 0.9)]}),
        document={"p": price}.__getitem__,
    )
    assert question in graphs.stub.prompts[0]
    assert price.text in graphs.stub.prompts[0]


# Without documents


def test_no_retrieval_asks_closed_book(graphs: Answers) -> None:
    [state] = graphs.all("no_retrieval", [QUESTION], settings=NoRetrieval(max_tokens=7))
    assert graphs.stub.prompts == [Prompts("no_retrieval").render("closed_book", question=QUESTION)]
    assert graphs.stub.requests[0]["max_tokens"] == 7
    assert (path(state), state["used"], state["retrieved"]) == (["generate"], [], [])
    assert "corrected" not in state


@pytest.mark.parametrize(("strategy", "settings"), [("vanilla", vanilla()), ("self_corrective", corrective())])
def test_retrieval_that_returns_nothing_falls_back_to_the_closed_book_prompt(
    graphs: Answers, strategy: str, settings: Any
) -> None:
    state = graphs.one(strategy, settings, [])
    assert graphs.stub.prompts == [Prompts(strategy).render("closed_book", question=QUESTION)]
    assert state["used"] == state["retrieved"] == []


def test_documents_that_are_all_dropped_fall_back_to_the_closed_book_prompt(graphs: Answers) -> None:
    state = graphs.one("self_corrective", corrective(keep_ratio=1.0), [hit("d1", 0.4), hit("d2", 0.3)])
    assert graphs.stub.prompts == [Prompts("self_corrective").render("closed_book", question=QUESTION)]
    assert state["used"] == []
    assert state["retrieved"] == ["d1", "d2"]


# When the correction fires


@pytest.mark.parametrize(
    ("best", "fires"),
    [(0.5 - 1e-9, True), (0.5, False), (0.5 + 1e-9, False), (-1.0, True), (1.0, False)],
)
def test_the_correction_fires_under_the_threshold_and_not_at_it(graphs: Answers, best: float, fires: bool) -> None:
    state = graphs.one("self_corrective", corrective(threshold=0.5, keep_ratio=0.0), [hit("d1", best)])
    assert state["corrected"] is fires
    assert path(state) == ["retrieve", "assess", *(["correct"] if fires else []), "keep", "generate"]


def test_the_best_cosine_decides_wherever_it_stands_in_the_ranking(graphs: Answers) -> None:
    hits = [hit("d1", 0.1, score=9.0), hit("d2", 0.6, score=8.0)]
    assert graphs.one("self_corrective", corrective(threshold=0.5), hits)["corrected"] is False


def test_only_the_first_k_are_looked_at_when_the_correction_is_decided(graphs: Answers) -> None:
    hits = [hit("d1", 0.1, score=9.0), hit("d2", 0.2, score=8.0), hit("d3", 0.9, score=7.0)]
    assert graphs.one("self_corrective", corrective(threshold=0.5, k=2), hits)["corrected"] is True


def test_an_empty_retrieval_is_corrected(graphs: Answers) -> None:
    assert graphs.one("self_corrective", corrective(), [])["corrected"] is True


def test_a_threshold_of_zero_never_fires_on_a_cosine_of_zero(graphs: Answers) -> None:
    assert graphs.one("self_corrective", corrective(threshold=0.0), [hit("d1", 0.0)])["corrected"] is False


# What is kept


def test_documents_under_keep_ratio_times_threshold_are_dropped_and_those_at_it_kept(graphs: Answers) -> None:
    settings = corrective(threshold=0.5, keep_ratio=0.5, k=3)
    floor = 0.5 * 0.5
    hits = [hit("d1", 0.6), hit("d2", floor), hit("d3", floor - 1e-9)]
    assert graphs.one("self_corrective", settings, hits)["used"] == ["d1", "d2"]


def test_a_keep_ratio_of_zero_drops_only_negative_cosines(graphs: Answers) -> None:
    hits = [hit("d1", 0.6), hit("d2", 0.0), hit("d3", -0.1)]
    assert graphs.one("self_corrective", corrective(keep_ratio=0.0, k=3), hits)["used"] == ["d1", "d2"]


def test_at_most_k_documents_are_kept_after_widening(graphs: Answers) -> None:
    hits = [hit("d1", 0.4), hit("d2", 0.35), hit("d3", 0.3), hit("d4", 0.28)]
    state = graphs.one("self_corrective", corrective(k=2, widen_factor=2), hits)
    assert state["used"] == ["d1", "d2"]
    assert state["retrieved"] == ["d1", "d2", "d3", "d4"]


def test_widening_keeps_the_rankings_order_and_so_may_bring_new_documents_where_it_is_not_the_cosines(graphs: Answers) -> None:
    by_another_score = [hit("d1", 0.1, 9.0), hit("d2", 0.4, 8.0), hit("d3", 0.3, 7.0), hit("d4", 0.45, 6.0)]
    state = graphs.one("self_corrective", corrective(k=2, widen_factor=2), by_another_score)
    assert state["used"] == ["d2", "d3"], "d1 is under the floor of 0.25; d3 moves up"


# Widening in dense mode finds nothing new


@pytest.fixture(scope="module")
def salad(params: Params) -> tuple[dict[str, Any], list[str]]:
    """A dense retriever over forty documents of random words, and two dozen questions."""
    draw = random.Random(0)
    documents = {f"r{i:02}": Document(f"r{i:02}", "", " ".join(draw.choices(WORDS, k=6))) for i in range(40)}
    questions = [" ".join(draw.choices(WORDS, k=draw.randint(1, 4))) + f" {i}?" for i in range(24)]
    index = index_of(list(documents.values()), params)
    dense = Retrievers(params, lambda: index, embedders.load(params.embedder)).of("dense")
    retriever = RecordedRetriever({question: dense.search(question, 10) for question in questions}, 10, nobody)
    return {"retriever": retriever, "document": documents.__getitem__}, questions


@pytest.fixture(scope="module")
def module_graphs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Answers]:
    ledger = Ledger(tmp_path_factory.mktemp("ledger") / "ledger.sqlite")
    with serve() as stub, pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", "stub-key")
        yield Answers(stub, ledger)
    ledger.close()


@pytest.mark.parametrize(
    ("threshold", "k", "widen_factor", "keep_ratio"),
    [(0.55, 3, 2, 0.6), (0.65, 3, 3, 0.8), (0.75, 1, 10, 0.9), (1.0, 5, 1, 0.0), (1.0, 4, 2, 0.5), (0.3, 4, 1, 0.8)],
)
def test_widening_in_dense_mode_only_ever_yields_a_subset_of_vanillas_documents(
    module_graphs: Answers,
    salad: tuple[dict[str, Any], list[str]],
    threshold: float,
    k: int,
    widen_factor: int,
    keep_ratio: float,
) -> None:
    tools, questions = salad
    plain = module_graphs.all("vanilla", questions, settings=vanilla(k), **tools)
    settings = corrective("widen", k=k, widen_factor=widen_factor, keep_ratio=keep_ratio, threshold=threshold)
    corrected = module_graphs.all("self_corrective", questions, settings=settings, **tools)
    for before, after in zip(plain, corrected, strict=True):
        assert after["used"] == before["used"][: len(after["used"])]


def test_among_those_questions_the_correction_both_fires_and_drops_documents(
    module_graphs: Answers, salad: tuple[dict[str, Any], list[str]]
) -> None:
    tools, questions = salad
    settings = corrective("widen", k=3, widen_factor=2, keep_ratio=0.9, threshold=0.75)
    states = module_graphs.all("self_corrective", questions, settings=settings, **tools)
    assert {state["corrected"] for state in states} == {True, False}
    assert any(len(state["used"]) < 3 for state in states)


# Corrections that can find something new


def test_rewriting_brings_what_the_new_query_finds_ordered_by_cosine_to_the_question(graphs: Answers, tiny: Retrievers) -> None:
    graphs.stub.behave = lambda body: completion("Rhine Alps") if body["max_tokens"] == 8 else completion("In the Alps.")
    live = tiny.of("dense")
    retriever = RecordedRetriever({QUESTION: [hit("d3", 0.1), hit("d2", 0.2)]}, 2, lambda: live)
    settings = corrective("rewrite", k=2, widen_factor=1, keep_ratio=0.0)
    [state] = graphs.all("self_corrective", [QUESTION], settings=settings, retriever=retriever, cosines=tiny.cosines)
    found = [h.doc_id for h in live.search("Rhine Alps", 2)]
    union = ["d3", "d2", *(d for d in found if d not in ("d3", "d2"))]
    by_cosine = sorted(union, key=lambda d: -tiny.cosines(QUESTION, [d])[0])
    assert "d1" in state["used"]
    assert state["used"] == by_cosine[:2]
    assert state["retrieved"][:2] == ["d3", "d2"]
    assert sorted(state["retrieved"]) == sorted(union)


def test_rewriting_asks_for_a_short_query_first_and_answers_the_question_itself(graphs: Answers, tiny: Retrievers) -> None:
    graphs.stub.behave = lambda body: completion("Rhine Alps")
    live = tiny.of("dense")
    retriever = RecordedRetriever({QUESTION: [hit("d3", 0.1)]}, 2, lambda: live)
    settings = corrective("rewrite", rewrite_tokens=8, max_tokens=16)
    with metered() as meter:
        [state] = graphs.all("self_corrective", [QUESTION], settings=settings, retriever=retriever, cosines=tiny.cosines)
    assert [call.node for call in meter.calls] == ["rewrite", "generate"]
    assert graphs.stub.prompts[0] == Prompts("self_corrective").render("rewrite", question=QUESTION)
    assert QUESTION in graphs.stub.prompts[1]
    assert [body["max_tokens"] for body in graphs.stub.requests] == [8, 16]
    assert state["trace"][2]["query"] == "Rhine Alps"


def test_without_a_low_verdict_nothing_is_rewritten(graphs: Answers) -> None:
    graphs.one("self_corrective", corrective("rewrite"), [hit("d1", 0.9)])
    assert len(graphs.stub.requests) == 1


def test_the_thoughts_of_the_rewriter_are_not_searched_for(graphs: Answers, tiny: Retrievers) -> None:
    graphs.stub.behave = lambda body: completion("<think>cheese, milk</think>Rhine")
    live = tiny.of("dense")
    retriever = RecordedRetriever({QUESTION: []}, 2, lambda: live)
    [state] = graphs.all("self_corrective", [QUESTION], settings=corrective("rewrite"), retriever=retriever, cosines=tiny.cosines)
    assert state["trace"][2]["query"] == "Rhine"


def test_the_other_lane_brings_new_documents_and_none_that_were_seen(graphs: Answers, tiny: Retrievers) -> None:
    seen = [hit("d3", 0.1), hit("d2", 0.2)]
    lane: Retriever = tiny.lane("sparse", 4)
    state = graphs.one("self_corrective", corrective("other_lane", keep_ratio=0.0), seen, second_lane=lane, cosines=tiny.cosines)
    new = [h.doc_id for h in lane.search(QUESTION, 4, frozenset({"d2", "d3"}))]
    assert "d1" in new
    assert not {"d2", "d3"} & set(new)
    assert state["used"][0] == "d1"
    assert sorted(state["retrieved"]) == sorted(["d3", "d2", *new])
    assert len(graphs.stub.requests) == 1


def test_documents_of_another_lane_carry_the_cosine_to_the_question(graphs: Answers, tiny: Retrievers) -> None:
    lane = tiny.lane("sparse", 4)
    state = graphs.one("self_corrective", corrective("other_lane"), [hit("d3", 0.1)], second_lane=lane, cosines=tiny.cosines)
    for found in state["trace"][2]["hits"]:
        assert found["cosine"] == round(tiny.cosines(QUESTION, [found["doc_id"]])[0], 6)


@pytest.mark.parametrize("correction", ["widen", "rewrite", "other_lane"])
def test_a_correction_that_finds_nothing_leaves_what_was_there(graphs: Answers, tiny: Retrievers, correction: str) -> None:
    graphs.stub.behave = lambda body: completion("nothing")
    everything = [hit(doc_id, cosine) for doc_id, cosine in zip(DOCUMENTS, tiny.cosines(QUESTION, list(DOCUMENTS)), strict=True)]
    everything.sort(key=lambda h: -h.cosine)
    retriever = recorded({QUESTION: everything, "nothing": []})
    settings = corrective(correction, k=5, widen_factor=1, threshold=1.0, keep_ratio=0.0)
    tools = {"retriever": retriever, "second_lane": tiny.lane("sparse", 4), "cosines": tiny.cosines}
    [state] = graphs.all("self_corrective", [QUESTION], settings=settings, **tools)
    assert (state["corrected"], state["used"]) == (True, [h.doc_id for h in everything if h.cosine >= 0])


# The trace


def test_vanillas_trace_holds_query_hits_and_what_was_used(graphs: Answers) -> None:
    state = graphs.one("vanilla", vanilla(k=1), [hit("d1", 1 / 3, score=2 / 3)])
    assert state["trace"] == [
        {"node": "retrieve", "query": QUESTION, "hits": [{"doc_id": "d1", "score": round(2 / 3, 6), "cosine": round(1 / 3, 6)}]},
        {"node": "generate", "used": ["d1"], "finish_reason": "stop"},
    ]


def test_self_correctives_trace_holds_every_verdict_and_score(graphs: Answers) -> None:
    state = graphs.one("self_corrective", corrective(k=1, widen_factor=2), [hit("d1", 0.4), hit("d2", 0.2)])
    first, second = ({"doc_id": d, "score": c, "cosine": c} for d, c in (("d1", 0.4), ("d2", 0.2)))
    assert state["trace"] == [
        {"node": "retrieve", "query": QUESTION, "hits": [first]},
        {"node": "assess", "decides": "enough", "verdict": False, "best_cosine": 0.4, "threshold": 0.5},
        {"node": "correct", "correction": "widen", "hits": [first, second]},
        {
            "node": "keep",
            "decides": "keep",
            "floor": 0.5 * 0.5,
            "grades": [
                {"doc_id": "d1", "p": 0.4, "kept": True, "source": "cosine"},
                {"doc_id": "d2", "p": 0.2, "kept": False, "source": "cosine"},
            ],
        },
        {"node": "generate", "used": ["d1"], "finish_reason": "stop"},
    ]


def test_the_trace_of_an_empty_retrieval_has_no_best_cosine(graphs: Answers) -> None:
    assert graphs.one("self_corrective", corrective(), [])["trace"][1]["best_cosine"] is None


def test_thoughts_stay_out_of_the_answer_and_in_the_trace(graphs: Answers) -> None:
    graphs.stub.behave = lambda body: completion("<think>it is a river</think>In the Alps.")
    state = graphs.one("vanilla", vanilla(1), [hit("d1", 0.9)])
    assert state["answer"] == "In the Alps."
    assert state["trace"][-1]["thoughts"] == "it is a river"


def test_an_answer_cut_by_the_token_limit_is_marked_in_the_trace(graphs: Answers) -> None:
    graphs.stub.behave = lambda body: completion("In the", "length")
    assert graphs.one("vanilla", vanilla(1), [hit("d1", 0.9)])["trace"][-1]["finish_reason"] == "length"


# Unknown names


@pytest.mark.parametrize("name", ["vanila", "shared", "nodes", "", "no.such"])
def test_an_unknown_strategy_cannot_be_built(name: str) -> None:
    with pytest.raises(ArenaError, match=rf"strategy '{name}' does not exist"):
        strategies.build(name)


def test_a_prompt_that_no_folder_holds_names_the_folders() -> None:
    with pytest.raises(FileNotFoundError, match=r"verify\.md in none of .*/vanilla, .*/shared"):
        Prompts("vanilla").render("verify")


def test_a_prompt_whose_name_is_not_filled_in_is_refused() -> None:
    with pytest.raises(KeyError, match="context"):
        Prompts("vanilla").render("answer", question="?")
