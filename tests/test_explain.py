"""The path of a question as a tree, rendered as a terminal would show it."""

import io
from typing import Any

from rich.console import Console

from rag_arena import decisions
from rag_arena.explain import path
from rag_arena.metering import Call
from rag_arena.records import Document

DOCUMENTS = {
    "d1": Document("d1", "Rhine", "It begins in the Alps."),
    "d2": Document("d2", "Danube", "It begins in the Black Forest."),
    "d3": Document("d3", "Elbe", "It begins in Bohemia."),
    "[d4]": Document("[d4]", "[bold]Oder[/bold]", "It begins in Moravia."),
}


def hit(doc_id: str, score: float = 0.5, cosine: float = 0.25) -> dict[str, Any]:
    return {"doc_id": doc_id, "score": score, "cosine": cosine}


def call(node: str, tokens_in: int = 10, replayed: bool = False) -> Call:
    return Call(node, "key", "{}", "{}", "{}", tokens_in, 3, 0.5, replayed)


def shown(
    trace: list[dict[str, Any]], calls: list[Call] | None = None, gold: tuple[str, ...] = (), heading: str = "cell"
) -> list[str]:
    """The lines of the tree, without colours."""
    console = Console(width=160, record=True, file=io.StringIO(), emoji=False)
    console.print(path(heading, trace, calls or [], DOCUMENTS.__getitem__, gold))
    return [line.rstrip() for line in console.export_text().splitlines()]


RETRIEVE = {"node": "retrieve", "query": "Where?", "hits": [hit("d1"), hit("d2")]}
GENERATE = {"node": "generate", "used": ["d1", "d2"], "finish_reason": "stop"}


def test_the_whole_path_stands_as_a_tree() -> None:
    assert shown([RETRIEVE, GENERATE], [call("generate", replayed=True)], ("d2", "d3")) == [
        "cell",
        "├── retrieve  query Where?",
        "│   ├── d1  Rhine  score 0.500  cosine 0.250",
        "│   └── d2  Danube  score 0.500  cosine 0.250  gold",
        "├── generate  finish_reason stop",
        "│   ├── used: d1, d2 gold",
        "│   └── call: 10 tokens in, 3 out, 0.50 s, replayed",
        "└── gold documents never seen",
        "    └── d3  Elbe",
    ]


def test_gold_documents_are_marked_wherever_they_are_listed() -> None:
    grades = [{"doc_id": d, "p": p, "kept": p > 0.1, "source": "cosine"} for d, p in (("d1", 0.9), ("d2", 0.05))]
    keep = {"node": "keep", "floor": 0.1, "grades": grades}
    marked = [line for line in shown([RETRIEVE, keep, GENERATE], gold=("d1",)) if line.endswith("gold") or "gold," in line]
    assert [line.strip("│├└─ ") for line in marked] == [
        "d1  Rhine  score 0.500  cosine 0.250  gold",
        "kept d1  0.900 by cosine  gold",
        "used: d1 gold, d2",
    ]


def test_a_chunk_of_a_gold_document_is_marked_and_its_document_was_seen() -> None:
    step = {"node": "segment", "doc_id": "d1¶2", "used": ["d1¶2"]}
    assert [line.strip("│├└─ ") for line in shown([step], gold=("d1", "d3"))[1:4]] == [
        "segment  doc_id d1¶2 gold",
        "used: d1¶2 gold",
        "gold documents never seen",
    ]


def test_without_missed_gold_documents_none_are_told() -> None:
    assert "never seen" not in "\n".join(shown([RETRIEVE], gold=("d1", "d2")))


def test_a_gold_document_that_a_correction_brings_was_seen() -> None:
    correct = {"node": "correct", "correction": "widen", "hits": [hit("d3")]}
    assert "never seen" not in "\n".join(shown([RETRIEVE, correct], gold=("d3",)))


def test_a_decision_says_what_was_asked_the_verdict_and_how_surely() -> None:
    sure = decisions.verdict_step("route", decisions.RETRIEVE, True, p=0.8125, source="logprobs", choice="one")
    unsure = decisions.verdict_step("grade", decisions.ENOUGH, None, action="ambiguous", upper=0.75)
    found = [line.strip("└├─ ") for line in shown([sure, unsure])[1:]]
    assert found == [
        "route  retrieve? yes  p 0.812  by logprobs  choice one",
        "grade  enough? undecided  action ambiguous  upper 0.750",
    ]


def test_pieces_of_documents_show_their_fate_their_score_and_the_beginning_of_their_text() -> None:
    strip = {"doc_id": "d1", "position": 2, "p": 0.25, "kept": False, "text": "w" * 500}
    found = "\n".join(shown([{"node": "refine", "strips": [strip]}], gold=("d1",)))
    assert "dropped d1 strip 2  0.250" in found
    assert found.count("w") == 200
    assert found.count("gold") == 2, "the strip's, and its document's that was never found"


def test_a_segment_shows_its_document_its_scores_and_its_text() -> None:
    scores = {"supported": 0.5, "useful": None, "kept": True}
    step = {"node": "critique", "segment": 1, "doc_id": "d1", "text": "In the Alps.", **scores}
    found = [line.strip("└├─│ ") for line in shown([step], gold=("d1",))[1:3]]
    assert found == ["critique  segment 1  doc_id d1 gold  supported 0.500  useful -  kept yes", "text: In the Alps."]


def test_sub_queries_and_claims_stand_on_a_line_of_their_own() -> None:
    found = "\n".join(shown([{"node": "rewrite", "queries": ["Where is [it]?", "Who?"], "unsupported": []}]))
    assert "queries: Where is [it]? | Who?" in found
    assert "unsupported: none" in found


def test_calls_of_a_second_round_stand_under_the_second_round() -> None:
    trace = [{"node": "grade"}, {"node": "rewrite"}, {"node": "grade"}, {"node": "generate"}]
    calls = [call("grade", 1), call("grade", 2), call("rewrite", 4), call("grade", 8), call("generate", 16)]
    assert [line.split("call")[1] for line in shown(trace, calls) if "call" in line] == [
        "s: 3 tokens in, 6 out, 1.00 s",
        ": 4 tokens in, 3 out, 0.50 s",
        ": 8 tokens in, 3 out, 0.50 s",
        ": 16 tokens in, 3 out, 0.50 s",
    ]


def test_a_call_that_comes_after_its_step_goes_back_to_it() -> None:
    found = shown([{"node": "search"}, {"node": "generate"}], [call("generate", 1), call("search", 2)])
    assert [line.strip("└├─│ ").split(" token")[0] for line in found[1:]] == ["search", "call: 2", "generate", "call: 1"]


def test_a_call_whose_name_no_step_has_stands_under_the_next_step() -> None:
    found = shown([{"node": "generate"}], [call("other", 1), call("generate", 2, replayed=True)])
    assert found[-1].strip("└├─│ ") == "2 calls: 3 tokens in, 6 out, 1.00 s, 1 replayed"


def test_a_grade_says_what_became_of_its_document() -> None:
    grades = [{"doc_id": "d1", "p": 0.25, "kept": False, "source": "logprobs"}]
    assert shown([{"node": "grade", "grades": grades}])[-1].strip("└─ ") == "dropped d1  0.250 by logprobs"


def test_each_call_stands_under_the_step_that_made_it() -> None:
    correct = {"node": "correct", "correction": "rewrite", "query": "Which river?", "hits": []}
    found = shown([RETRIEVE, correct, GENERATE], [call("rewrite", tokens_in=11), call("generate", tokens_in=12)])
    places = [line.strip("│├└─ ").split()[0] for line in found if not line.strip("│├└─ ").startswith(("d1", "d2", "used"))]
    assert places == ["cell", "retrieve", "correct", "call:", "generate", "call:"]
    assert [line.split("call: ")[1].split()[0] for line in found if "call:" in line] == ["11", "12"]


def test_a_call_is_shown_once_when_its_step_occurs_twice() -> None:
    found = shown([GENERATE, GENERATE], [call("generate")])
    assert sum("call:" in line for line in found) == 1


def test_brackets_in_questions_ids_titles_and_queries_are_shown_as_they_are() -> None:
    trace = [
        {"node": "retrieve", "query": "[red]Where[/red]?", "hits": [hit("[d4]")]},
        {"node": "generate", "used": ["[d4]"], "thoughts": "[/b] hm"},
    ]
    found = "\n".join(shown(trace, heading="What is [x]?"))
    for text in ("What is [x]?", "query [red]Where[/red]?", "[d4]  [bold]Oder[/bold]  score", "used: [d4]", "thought: [/b] hm"):
        assert text in found


def test_brackets_in_a_missed_documents_id_are_shown_as_they_are() -> None:
    assert "[d4]  [bold]Oder[/bold]" in shown([RETRIEVE], gold=("[d4]",))[-1]


def test_thoughts_are_cut_after_200_characters() -> None:
    found = "\n".join(shown([{"node": "generate", "thoughts": "w" * 500}]))
    assert found.count("w") == 200


def test_a_page_of_the_web_has_the_title_that_its_step_keeps() -> None:
    page = "web:https://rivers.example/rhine"
    [_, _, line] = shown([{"node": "search", "hits": [hit(page)], "titles": {page: "Rhine"}}])
    assert page in line
    assert "Rhine  score 0.500" in line


def test_strips_are_shown_with_their_scores_under_the_step_that_cut_them() -> None:
    strips = [{"doc_id": "d1", "position": 1, "p": 0.25, "kept": kept, "text": "It [begins]."} for kept in (True, False)]
    assert [line[4:] for line in shown([{"node": "refine", "strips": strips}])[2:]] == [
        "├── kept d1 strip 1  0.250  It [begins].",
        "└── dropped d1 strip 1  0.250  It [begins].",
    ]
