import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from rag_arena.errors import ArenaError
from rag_arena.params import RagRouter
from rag_arena.sources import ragrouter
from rag_arena.sources.table import Loaded

CORPUS = [
    {"id": 0, "title": "Green", "context": "Green is a colour between blue and yellow."},
    {"id": 1, "title": "Green", "context": "Green is a village in the north."},
    {"id": 2, "title": "Lyon", "context": "Lyon lies where the Rhône meets the Saône."},
]
QUESTION = {
    "id": "q1",
    "question": "Which rivers meet in Lyon?",
    "answer": "Rhône and Saône",
    "supporting_facts": [{"doc_id": 2, "text": "Lyon lies where the Rhône meets the Saône."}],
    "type": "single_hop",
}


def load(folder: Path) -> Loaded:
    return ragrouter.load(RagRouter(kind="ragrouter", name="test", path=str(folder), licence="none"))


def lines(rows: list[Any]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def loaded(folder: Path, corpus: str | bytes = lines(CORPUS), questions: str | bytes = lines([QUESTION])) -> Loaded:
    for name, content in (("Corpus.json", corpus), ("Question.json", questions)):
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return load(folder)


def question(folder: Path, **changes: Any) -> dict[str, Any]:
    return loaded(folder, questions=lines([QUESTION | changes])).questions[0]


def gold(folder: Path, *facts: Any, corpus: list[Any] = CORPUS) -> tuple[list[str], list[str]]:
    found = loaded(folder, lines(corpus), lines([QUESTION | {"supporting_facts": list(facts)}]))
    return found.questions[0]["gold_ids"], found.unresolved


def refusal(folder: Path, corpus: str | bytes = lines(CORPUS), questions: str | bytes = lines([QUESTION])) -> str:
    with pytest.raises(ArenaError) as caught:
        loaded(folder, corpus, questions)
    assert "\n" not in str(caught.value)
    return str(caught.value).removeprefix(f"{folder}/")


def without(row: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key not in keys}


def test_json_lines_give_both_tables(tmp_path):
    found = loaded(tmp_path)
    assert found.corpus[2] == {"doc_id": "2", "title": "Lyon", "text": CORPUS[2]["context"]}
    assert found.questions == [
        {
            "question_id": "q1",
            "question": QUESTION["question"],
            "answer": QUESTION["answer"],
            "aliases": [],
            "question_type": "single_hop",
            "gold_ids": ["2"],
            "decomposition": [],
        }
    ]
    assert found.unresolved == []


@pytest.mark.parametrize("indent", [None, 2])
def test_a_json_array_gives_the_same_tables(tmp_path, indent):
    array = loaded(tmp_path, json.dumps(CORPUS, indent=indent), json.dumps([QUESTION], indent=indent))
    assert array == loaded(tmp_path)


@pytest.mark.parametrize(
    "write",
    [
        lambda text: b"\xef\xbb\xbf" + text.encode(),
        lambda text: text.replace("\n", "\r\n").encode(),
        lambda text: text.replace("\n", "\n\n \n").encode(),
        lambda text: text.rstrip("\n").encode(),
    ],
    ids=["byte order mark", "Windows line ends", "empty lines", "no last line end"],
)
def test_how_lines_are_written_does_not_matter(tmp_path, write):
    assert loaded(tmp_path, write(lines(CORPUS)), write(lines([QUESTION]))) == loaded(tmp_path)


def test_a_line_separator_inside_a_text_ends_no_line(tmp_path):
    corpus = [*CORPUS, {"id": 3, "title": "x", "context": "one\u2028two\x85three"}]
    assert loaded(tmp_path, lines(corpus)).corpus[3]["text"] == "one\u2028two\x85three"


def test_the_aliases_of_the_columns_are_read(tmp_path):
    corpus = [{"doc_id": row["id"], "title": row["title"], "text": row["context"]} for row in CORPUS]
    asked = {**without(QUESTION, "id", "type"), "question_id": "q1", "query_type": "single_hop"}
    assert loaded(tmp_path, lines(corpus), lines([asked])) == loaded(tmp_path)


@pytest.mark.parametrize("key", ["type", "query_type"])
@pytest.mark.parametrize(
    ("named", "meant"),
    [
        ("factual", "single_hop"),
        ("reasoning", "multi_hop"),
        ("summary", "summary"),
        ("single_hop", "single_hop"),
        ("multi_hop", "multi_hop"),
    ],
)
def test_question_types_are_read_under_both_sets_of_names(tmp_path, key, named, meant):
    asked = without(QUESTION, "type") | {key: named}
    assert loaded(tmp_path, questions=lines([asked])).questions[0]["question_type"] == meant


def test_the_id_zero_is_an_id(tmp_path):
    assert question(tmp_path, id=0, supporting_facts=[{"doc_id": 0}])["question_id"] == "0"
    assert gold(tmp_path, {"doc_id": 0}) == (["0"], [])


@pytest.mark.parametrize("row", [{"id": 3, "context": "x"}, {"id": 3, "title": None, "context": "x"}])
def test_a_document_may_lack_a_title(tmp_path, row):
    assert loaded(tmp_path, lines([*CORPUS, row])).corpus[3] == {"doc_id": "3", "title": "", "text": "x"}


def test_aliases_and_decomposition_are_kept_in_their_order(tmp_path):
    hops = [{"question": f"q{i}", "answer": f"a{i}", "doc_id": i} for i in (2, 1)]
    row = question(tmp_path, aliases=["z", "b"], decomposition=hops)
    assert row["aliases"] == ["z", "b"]
    assert row["decomposition"] == [{"question": f"q{i}", "answer": f"a{i}", "doc_id": str(i)} for i in (2, 1)]


@pytest.mark.parametrize("key", ["aliases", "decomposition"])
def test_aliases_and_decomposition_may_be_null(tmp_path, key):
    assert question(tmp_path, **{key: None})[key] == []


@pytest.mark.parametrize(
    "fact",
    [
        {"doc_id": 2, "text": "whatever"},
        {"doc_id": "2"},
        {"text": CORPUS[2]["context"]},
        {"doc_id": None, "text": CORPUS[2]["context"]},
        {"title": "Lyon", "text": CORPUS[2]["context"]},
        {"title": "Lyon", "paragraph_text": CORPUS[2]["context"]},
        {"title": "elsewhere", "text": CORPUS[2]["context"]},
        {"title": "Lyon", "text": "an excerpt that is no whole passage"},
        {"title": "Lyon"},
        {"title": "  LYON "},
        ["Lyon", 0],
        ["lyon"],
        "Lyon",
        CORPUS[2]["context"],
        CORPUS[2]["context"].upper(),
        CORPUS[2]["context"].replace(" ", "\n "),
        CORPUS[2]["context"].replace("ô", "o\u0302"),
    ],
    ids=str,
)
def test_a_supporting_fact_is_found_whatever_its_shape(tmp_path, fact):
    assert gold(tmp_path, fact) == (["2"], [])


def test_an_id_counts_before_the_text(tmp_path):
    assert gold(tmp_path, {"doc_id": 0, "text": CORPUS[2]["context"]}) == (["0"], [])


def test_a_text_counts_before_the_title(tmp_path):
    assert gold(tmp_path, {"title": "Lyon", "text": CORPUS[1]["context"]}) == (["1"], [])


def test_an_exact_text_counts_before_a_normalised_one(tmp_path):
    corpus = [*CORPUS, {"id": 3, "title": "x", "context": CORPUS[0]["context"].upper()}]
    assert gold(tmp_path, {"text": corpus[3]["context"]}, corpus=corpus) == (["3"], [])


def test_of_two_documents_with_one_text_the_first_in_the_file_is_gold(tmp_path):
    corpus = [*CORPUS, {"id": 3, "title": "Lyon", "context": CORPUS[2]["context"]}]
    assert gold(tmp_path, {"text": CORPUS[2]["context"]}, corpus=corpus) == (["2"], [])


def test_a_text_tells_documents_of_one_title_apart(tmp_path):
    assert gold(tmp_path, {"title": "Green", "text": CORPUS[1]["context"]}) == (["1"], [])


@pytest.mark.parametrize("fact", [{"title": "Green"}, ["Green", 0], "Green", {"title": "Green", "text": "of neither"}])
def test_a_title_that_two_documents_bear_resolves_nothing(tmp_path, fact):
    assert gold(tmp_path, fact) == ([], [f"q1: {json.dumps(fact)}"])


@pytest.mark.parametrize("fact", [{"title": "Nice"}, {}, [], None, 5, {"text": ""}, "nowhere"])
def test_what_stays_unresolved_is_listed_beside_what_is_found(tmp_path, fact):
    assert gold(tmp_path, {"doc_id": 2}, fact) == (["2"], [f"q1: {json.dumps(fact)}"])


def test_an_untitled_document_is_not_found_by_an_empty_title(tmp_path):
    corpus = [*CORPUS, {"id": 3, "context": "no title"}]
    assert gold(tmp_path, {"title": ""}, corpus=corpus)[0] == []


def test_gold_documents_keep_their_order_and_stand_once(tmp_path):
    assert gold(tmp_path, {"doc_id": 2}, {"doc_id": 0}, "Lyon", {"doc_id": 0}) == (["2", "0"], [])


@pytest.mark.parametrize("name", ["Corpus.json", "Question.json"])
def test_a_missing_file_is_refused(tmp_path, name):
    loaded(tmp_path)
    (tmp_path / name).unlink()
    with pytest.raises(ArenaError, match=f"{name}: missing; the folder must hold Corpus.json and Question.json"):
        load(tmp_path)


def test_a_file_in_place_of_the_folder_is_refused(tmp_path):
    loaded(tmp_path)
    with pytest.raises(ArenaError, match=r"the folder must hold Corpus\.json and Question\.json"):
        load(tmp_path / "Corpus.json")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be"])
def test_utf_16_is_refused(tmp_path, encoding):
    content = f"\ufeff{lines(CORPUS)}".encode(encoding)
    assert refusal(tmp_path, corpus=content) == "Corpus.json: is UTF-16; convert the file to UTF-8"


def test_a_packed_file_is_refused(tmp_path):
    assert refusal(tmp_path, corpus=gzip.compress(lines(CORPUS).encode())) == "Corpus.json: is packed by gzip; unpack it"


@pytest.mark.parametrize(("name", "key"), [("Corpus.json", "corpus"), ("Question.json", "questions")])
def test_text_that_is_not_utf_8_is_refused(tmp_path, name, key):
    content = b'{"id": 1, "context": "Rh' + "ô".encode("latin-1") + b'ne"}'
    assert refusal(tmp_path, **{key: content}) == f"{name}: byte {content.index(0xF4)} is not UTF-8; convert the file to UTF-8"


@pytest.mark.parametrize("content", ["", "\n \n", "[]", "\ufeff"])
def test_an_empty_corpus_is_refused(tmp_path, content):
    assert refusal(tmp_path, corpus=content) == "Corpus.json: no documents; the file is empty"


@pytest.mark.parametrize("content", ["", "\n \n", "[]", "\ufeff"])
def test_an_empty_list_of_questions_is_refused(tmp_path, content):
    assert refusal(tmp_path, questions=content) == "Question.json: no questions; the file is empty"


@pytest.mark.parametrize("broken", ['{"id": 1', "not json", '{"id": 1} {"id": 2}', "{'id': 1}"])
def test_a_line_that_is_not_json_is_refused_by_its_number(tmp_path, broken):
    assert refusal(tmp_path, corpus=lines(CORPUS) + "\n" + broken).startswith(f"Corpus.json:{len(CORPUS) + 2}: not JSON (")
    assert refusal(tmp_path, questions=lines([QUESTION]) + broken).startswith("Question.json:2: not JSON (")


def test_an_array_that_is_not_json_is_refused_by_its_line(tmp_path):
    assert refusal(tmp_path, corpus='[\n{"id": 1},\n{"id": 2\n').startswith("Corpus.json:3: not JSON (")


@pytest.mark.parametrize("entry", [5, "text", None, [1, 2]])
def test_an_entry_that_is_no_object_is_refused(tmp_path, entry):
    assert refusal(tmp_path, corpus=json.dumps([CORPUS[0], entry])) == "Corpus.json, entry 2: not a JSON object"


@pytest.mark.parametrize("entry", [5, "text", None])
def test_a_line_that_is_no_object_is_refused(tmp_path, entry):
    assert refusal(tmp_path, questions=lines([QUESTION, entry])) == "Question.json:2: not a JSON object"


@pytest.mark.parametrize(
    ("row", "keys"),
    [
        ({"title": "x", "context": "x"}, "id or doc_id"),
        ({"id": None, "context": "x"}, "id or doc_id"),
        ({"id": " ", "context": "x"}, "id or doc_id"),
        ({"id": 9, "title": "x"}, "context or text"),
        ({"id": 9, "context": ""}, "context or text"),
        ({"id": 9, "context": " \n"}, "context or text"),
    ],
)
def test_a_document_without_id_or_text_is_refused(tmp_path, row, keys):
    assert refusal(tmp_path, corpus=lines([*CORPUS, row])) == f"Corpus.json:{len(CORPUS) + 1}: {keys} is missing or empty"


@pytest.mark.parametrize(("value", "kind"), [(True, "bool"), (["x"], "list"), ({"x": 1}, "dict")])
@pytest.mark.parametrize(("key", "keys"), [("id", "id or question_id"), ("question", "question"), ("answer", "answer")])
def test_a_field_that_is_neither_text_nor_number_is_refused(tmp_path, key, keys, value, kind):
    told = f"Question.json:1: {keys} holds a {kind}, where a text should be"
    assert refusal(tmp_path, questions=lines([QUESTION | {key: value}])) == told


@pytest.mark.parametrize("value", [None, "", "  "])
@pytest.mark.parametrize(
    ("key", "keys"),
    [("id", "id or question_id"), ("question", "question"), ("answer", "answer"), ("type", "type or query_type")],
)
def test_a_question_without_a_field_is_refused(tmp_path, key, keys, value):
    assert refusal(tmp_path, questions=lines([QUESTION | {key: value}])) == f"Question.json:1: {keys} is missing or empty"
    assert refusal(tmp_path, questions=lines([without(QUESTION, key)])) == f"Question.json:1: {keys} is missing or empty"


def test_a_document_id_that_occurs_twice_is_refused(tmp_path):
    repeated = [*CORPUS, {"id": "2", "context": "x"}]
    assert refusal(tmp_path, corpus=lines(repeated)) == "Corpus.json:4: document id '2' occurs twice; ids must be unique"


def test_a_document_id_that_looks_like_that_of_a_chunk_is_refused(tmp_path):
    said = "document id 'a¶1' holds ¶, which marks chunks; write another character"
    assert refusal(tmp_path, corpus=lines([*CORPUS, {"id": "a¶1", "context": "x"}])) == f"Corpus.json:4: {said}"


def test_a_question_id_that_occurs_twice_is_refused(tmp_path):
    assert (
        refusal(tmp_path, questions=lines([QUESTION] * 2)) == "Question.json:2: question id 'q1' occurs twice; ids must be unique"
    )


@pytest.mark.parametrize("doc_id", [3, "3", -1, "", "Lyon"])
def test_a_gold_id_that_is_not_in_the_corpus_is_refused(tmp_path, doc_id):
    asked = QUESTION | {"supporting_facts": [{"doc_id": doc_id}]}
    assert refusal(tmp_path, questions=lines([asked])) == f"Question.json:1: gold document {str(doc_id)!r} is not in the corpus"


def test_an_unknown_question_type_is_refused_with_the_known_ones(tmp_path):
    known = "multi_hop, single_hop, summary, factual, reasoning"
    asked = QUESTION | {"type": "riddle"}
    assert refusal(tmp_path, questions=lines([asked])) == f"Question.json:1: unknown question type 'riddle'; known: {known}"


@pytest.mark.parametrize("row", [without(QUESTION, "supporting_facts"), QUESTION | {"supporting_facts": []}])
def test_a_question_without_supporting_facts_is_refused(tmp_path, row):
    message = "Question.json:1: question 'q1' has no supporting_facts; recall needs gold documents"
    assert refusal(tmp_path, questions=lines([row])) == message


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("supporting_facts", 5),
        ("supporting_facts", {"title": ["Lyon"], "sent_id": [0]}),
        ("supporting_facts", CORPUS[2]["context"]),
        ("aliases", "Lyon"),
        ("aliases", 5),
        ("decomposition", "q"),
        ("decomposition", ["q"]),
        ("decomposition", [{"question": "q", "answer": "a"}]),
    ],
    ids=str,
)
def test_a_field_of_the_wrong_shape_is_refused_by_its_line_and_name(tmp_path, key, value):
    message = refusal(tmp_path, questions=lines([QUESTION | {key: value}]))
    assert message.startswith("Question.json:1: ")
    assert key in message


def test_half_a_surrogate_pair_is_refused_by_its_line(tmp_path):
    broken = json.dumps({"id": 3, "title": "x", "context": "\ud83d"})
    assert refusal(tmp_path, corpus=lines(CORPUS) + broken).startswith(f"Corpus.json:{len(CORPUS) + 1}: ")
