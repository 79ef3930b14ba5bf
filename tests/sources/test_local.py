"""Two tables of a user's own, in every format, with every mistake told in one line."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rag_arena import sources
from rag_arena.errors import ArenaError
from rag_arena.params import Local, section
from rag_arena.sources.table import Loaded

DOCUMENTS = """doc_id,title,text,tenant,year
d1,Rhine,"The Rhine begins in the Alps.
It is long.",a,2020
d2,,The Danube begins in the Black Forest.,b,2021
"""
QUESTIONS = """question_id,question,answer,aliases,gold_ids,question_type,tenant
q1,Where does the Rhine begin?,the Alps,Alps| Swiss Alps,d1,factual,a
q2,Name two rivers.,"The Rhine, and the Danube.",,"[""d2""]",summary,b
"""


def read(
    folder: Path, documents: str | None = DOCUMENTS, questions: str | None = QUESTIONS, suffix: str = "csv", **settings: Any
) -> Loaded:
    """Load the tables, written as text under this suffix."""
    for name, content in (("documents", documents), ("questions", questions)):
        if content is not None:
            (folder / f"{name}.{suffix}").write_text(content, encoding="utf-8")
    files = {"documents": f"documents.{suffix}", "questions": f"questions.{suffix}"}
    return sources.load(dataset(folder, **files, **settings))


def dataset(folder: Path, **settings: Any) -> Local:
    values = {
        "name": "own",
        "kind": "local",
        "path": str(folder),
        "licence": "unknown",
        "columns": {},
        "metadata": [],
        "filter_by": [],
    }
    return section(Local, {**values, **settings}, "params.yaml", "dataset.")


def lines(rows: Sequence[Mapping[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def test_two_tables_of_csv_become_corpus_and_questions(tmp_path: Path) -> None:
    found = read(tmp_path)
    assert found.corpus == [
        {"doc_id": "d1", "title": "Rhine", "text": "The Rhine begins in the Alps.\nIt is long.", "metadata": {}},
        {"doc_id": "d2", "title": "", "text": "The Danube begins in the Black Forest.", "metadata": {}},
    ]
    common = {"decomposition": [], "where": {}}
    assert found.questions == [
        {
            "question_id": "q1",
            "question": "Where does the Rhine begin?",
            "answer": "the Alps",
            "aliases": ["Alps", "Swiss Alps"],
            "question_type": "single_hop",
            "gold_ids": ["d1"],
            **common,
        },
        {
            "question_id": "q2",
            "question": "Name two rivers.",
            "answer": "The Rhine, and the Danube.",
            "aliases": [],
            "question_type": "summary",
            "gold_ids": ["d2"],
            **common,
        },
    ]


ROWS = [
    [{"doc_id": 1, "text": "The Rhine begins in the Alps.", "tenant": "a"}, {"doc_id": 2, "text": "Cheese.", "tenant": None}],
    [{"question_id": "q1", "question": "Where?", "answer": "the Alps", "gold_ids": [1, 2], "aliases": "Alps|Swiss Alps"}],
]


def in_format(folder: Path, suffix: str) -> Loaded:
    """The same rows in any format."""
    if suffix == "parquet":
        for name, rows in zip(("documents", "questions"), ROWS, strict=True):
            pq.write_table(pa.Table.from_pylist(rows), folder / f"{name}.parquet")
        return read(folder, None, None, suffix, metadata=["tenant"])
    if suffix in ("csv", "tsv"):
        mark = "," if suffix == "csv" else "\t"
        documents = [["doc_id", "text", "tenant"], ["1", "The Rhine begins in the Alps.", "a"], ["2", "Cheese.", ""]]
        questions = [
            ["question_id", "question", "answer", "gold_ids", "aliases"],
            ["q1", "Where?", "the Alps", "1|2", "Alps|Swiss Alps"],
        ]
        texts = ["".join(mark.join(line) + "\n" for line in table) for table in (documents, questions)]
    else:
        texts = [json.dumps(rows) if suffix == "json" else lines(rows) for rows in ROWS]
    return read(folder, texts[0], texts[1], suffix, metadata=["tenant"])


@pytest.mark.parametrize("suffix", ["csv", "tsv", "json", "jsonl", "ndjson", "parquet"])
def test_every_format_gives_the_same_rows(tmp_path: Path, suffix: str) -> None:
    found = in_format(tmp_path, suffix)
    assert found.corpus == [
        {"doc_id": "1", "title": "", "text": "The Rhine begins in the Alps.", "metadata": {"tenant": "a"}},
        {"doc_id": "2", "title": "", "text": "Cheese.", "metadata": {}},
    ]
    [question] = found.questions
    assert (question["gold_ids"], question["aliases"]) == (["1", "2"], ["Alps", "Swiss Alps"])
    assert question["question_type"] == "single_hop"


def test_columns_go_by_the_names_that_are_configured(tmp_path: Path) -> None:
    columns = {
        "doc_id": "Nr",
        "text": "Body",
        "question": "Frage",
        "answer": "Antwort",
        "question_id": "Nr",
        "gold_ids": "Quelle",
    }
    found = read(tmp_path, "Nr,Body\n7,Cheese.\n", "Nr,Frage,Antwort,Quelle\n1,What?,milk,7\n", columns=columns)
    assert found.corpus[0]["doc_id"] == "7"
    assert found.questions[0]["gold_ids"] == ["7"]


def test_without_ids_documents_and_questions_are_numbered_from_1(tmp_path: Path) -> None:
    found = read(tmp_path, "text\nCheese.\nMilk.\n", "question,answer,gold_ids\nWhat?,milk,2\n")
    assert [row["doc_id"] for row in found.corpus] == ["1", "2"]
    assert (found.questions[0]["question_id"], found.questions[0]["gold_ids"]) == ("1", ["2"])


def test_questions_may_have_neither_gold_documents_nor_types(tmp_path: Path) -> None:
    found = read(tmp_path, questions="question,answer\nWhat?,milk\n", question_type="summary")
    assert (found.questions[0]["gold_ids"], found.questions[0]["question_type"]) == ([], "summary")


def test_a_question_whose_type_is_empty_has_the_one_that_is_configured(tmp_path: Path) -> None:
    found = read(tmp_path, questions="question,answer,question_type\nWhat?,milk,\nWhy?,so,summary\n", question_type="multi_hop")
    assert [row["question_type"] for row in found.questions] == ["multi_hop", "summary"]


def test_delimiter_and_separator_are_configured(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        "doc_id;text\nd1;a, b\n",
        "question;answer;aliases\nWhat?;milk;cow's milk/goat's milk\n",
        delimiter=";",
        list_separator="/",
    )
    assert found.corpus[0]["text"] == "a, b"
    assert found.questions[0]["aliases"] == ["cow's milk", "goat's milk"]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (3, "3"),
        (3.0, "3"),
        (2.5, "2.5"),
        (True, "true"),
        ("x ", "x"),
        ("007", "007"),
        (None, None),
        ("", None),
        (float("nan"), None),
    ],
)
def test_values_are_kept_as_texts_and_whole_numbers_without_a_point(tmp_path: Path, value: Any, shown: str | None) -> None:
    found = read(
        tmp_path,
        lines([{"text": "Cheese.", "year": value}]),
        lines([{"question": "?", "answer": "!"}]),
        "jsonl",
        metadata=["year"],
    )
    assert found.corpus[0]["metadata"] == ({} if shown is None else {"year": shown})


def test_spaces_around_the_names_of_columns_do_not_count(tmp_path: Path) -> None:
    assert read(tmp_path, "doc_id, text\nd1, Cheese.\n", "question,answer\n?,!\n").corpus[0]["text"] == " Cheese."


def test_a_long_document_is_read_whole(tmp_path: Path) -> None:
    long = "cheese " * 200_000
    assert read(tmp_path, f'text\n"{long}"\n', "question,answer\n?,!\n").corpus[0]["text"] == long


@pytest.mark.parametrize("suffix", ["csv", "tsv"])
def test_ids_that_a_spreadsheet_wrote_as_decimal_numbers_are_whole_ones_and_nothing_else_is(tmp_path: Path, suffix: str) -> None:
    documents = "doc_id,title,text\n1.0,3.0,5.0\nv1.0,,x\n1.5,,x\n"
    questions = "question_id,question,answer,aliases,gold_ids\n2.0,4.0,6.0,7.0|8.0,1|v1.0|1.5\n3,x,x,,1.0\n"
    mark = "," if suffix == "csv" else "\t"
    found = read(tmp_path, documents.replace(",", mark), questions.replace(",", mark), suffix)
    assert [row["doc_id"] for row in found.corpus] == ["1", "v1.0", "1.5"]
    assert (found.corpus[0]["title"], found.corpus[0]["text"]) == ("3.0", "5.0")
    first, second = found.questions
    assert (first["question_id"], first["question"], first["answer"], first["aliases"]) == ("2", "4.0", "6.0", ["7.0", "8.0"])
    assert (first["gold_ids"], second["gold_ids"]) == (["1", "v1.0", "1.5"], ["1"])


def test_an_id_that_is_a_text_in_json_stays_as_it_is(tmp_path: Path) -> None:
    asked = lines([{"question": "?", "answer": "!", "gold_ids": ["1.0"]}])
    found = read(tmp_path, lines([{"doc_id": "1.0", "text": "x"}]), asked, "jsonl")
    assert (found.corpus[0]["doc_id"], found.questions[0]["gold_ids"]) == ("1.0", ["1.0"])


STRAY = 'd1,A,"Alpha is red.\nd2,B,Beta is blue.\nd3,C,Gamma is green."\n'
HOLDS = "a cell between quotes holds"


@pytest.mark.parametrize(
    ("records", "told"),
    [
        (STRAY, f"2: {HOLDS} 2 lines with as many cells as a record; is a quote stray or missing?"),
        (
            f"d0,,x\n{STRAY}",
            f"3: {HOLDS} 2 lines with as many cells as a record; is a quote stray or missing?",
        ),
        ('d1,,"x\nd2,,y\n"\n', f"2: {HOLDS} 1 line with as many cells as a record; is a quote stray or missing?"),
        (
            f'{STRAY}d4,,"Delta.\nd5,,Eta."\n',
            f"2: {HOLDS} 2 lines with as many cells as a record; is a quote stray or missing? (2 such records in all)",
        ),
    ],
)
def test_lines_that_a_stray_quote_swallowed_are_noted(tmp_path: Path, records: str, told: str) -> None:
    found = read(tmp_path, f"doc_id,title,text\n{records}", "question,answer\n?,!\n")
    assert found.notes == [f"{tmp_path}/documents.csv:{told}"]


@pytest.mark.parametrize(
    "content",
    [
        'doc_id,title,text\nd1,,"Of three rivers\nthe Rhine, the Elbe, the Oder\nflow north, as we know."\n',
        'doc_id,text\nd1,"A river.\nA long one, they say."\n',
        'doc_id,text\nd1,"A river,\r\nand a long one,\r\nthey say."\n',
        'text\n"A river.\nA long one."\n',
    ],
)
def test_a_cell_of_several_lines_of_prose_is_not_noted(tmp_path: Path, content: str) -> None:
    assert read(tmp_path, content, "question,answer\n?,!\n").notes == []


def test_lines_that_a_stray_quote_swallowed_are_noted_of_questions_as_well(tmp_path: Path) -> None:
    [note] = read(tmp_path, questions='question,answer\n?,"!\nWhy?,so"\n').notes
    assert note.startswith(f"{tmp_path}/questions.csv:2: {HOLDS} 1 line ")


# Metadata


def test_metadata_and_filters_are_kept_in_the_order_of_their_names(tmp_path: Path) -> None:
    found = read(tmp_path, metadata=["year"], filter_by=["tenant"])
    assert [list(row["metadata"].items()) for row in found.corpus] == [
        [("tenant", "a"), ("year", "2020")],
        [("tenant", "b"), ("year", "2021")],
    ]
    assert [row["where"] for row in found.questions] == [{"tenant": "a"}, {"tenant": "b"}]


# Refusals


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"documents": "doc_id;text\nd1;x\n"}, "documents.csv: has one column, 'doc_id;text'; set dataset.delimiter=\"';'\""),
        ({"delimiter": ";"}, "documents.csv: has one column, 'doc_id,.+'; set dataset.delimiter=\"','\""),
        ({"documents": "doc_id,body\nd1,x\n"}, "documents.csv: no column 'text'; known: doc_id, body; set dataset.columns.text"),
        (
            {"documents": "doc_id,texts\nd1,x\n"},
            r"documents.csv: no column 'text'; did you mean texts\?; set dataset.columns.text",
        ),
        ({"columns": {"gold_ids": "evidence"}}, "questions.csv: no column 'evidence'; known: .+; set dataset.columns.gold_ids"),
        ({"metadata": ["years"]}, r"documents.csv: no column 'years'; did you mean year\?; set dataset.metadata"),
        ({"filter_by": ["year"]}, "questions.csv: no column 'year'; known: .+; set dataset.filter_by"),
        ({"filter_by": ["language"]}, "documents.csv: no column 'language'; known: .+; set dataset.filter_by"),
        ({"documents": "text\nx\n \n"}, "documents.csv:3: column 'text' is empty"),
        ({"documents": "doc_id,text\nd1,x\n,y\n"}, "documents.csv:3: column 'doc_id' is empty"),
        ({"documents": "doc_id,text\nd1,x\nd1,y\n"}, "documents.csv:3: document id 'd1' occurs twice; ids must be unique"),
        ({"documents": "doc_id,text\nd1,x\nd2,y,z\n"}, "documents.csv:3: has 3 cells instead of 2; quote cells that hold ','"),
        (
            {"documents": "doc_id,title,text\nd1,x\n"},
            "documents.csv:2: has 2 cells instead of 3; an empty cell has its delimiter too",
        ),
        ({"documents": 'doc_id,text\nd1,"x\ny"z\n'}, "documents.csv:2: not CSV (.+)"),
        ({"documents": "text,text\nx,y\n"}, "documents.csv:1: column 'text' occurs twice; rename one"),
        ({"documents": ""}, "documents.csv: empty; its first line must name the columns"),
        (
            {"questions": 'question,answer,aliases\n?,!,"[""\\ud83d""]"\n'},
            r"questions.csv:2: column 'aliases' begins with \[ and is no JSON list \(half a surrogate pair\)",
        ),
        ({"documents": "text\n"}, "documents.csv: no documents; the file is empty"),
        ({"questions": "question,answer\n"}, "questions.csv: no questions; the file is empty"),
        ({"questions": "question,answer\nWhat?,\n"}, "questions.csv:2: column 'answer' is empty"),
        ({"questions": "question,answer,gold_ids\n?,!,d9\n"}, "questions.csv:2: gold document 'd9' is not among the documents"),
        (
            {"questions": "question,answer,gold_ids\n?,!,d1; d2\n"},
            "questions.csv:2: gold document 'd1; d2' is not among the documents; it is several with ';' between them",
        ),
        (
            {"questions": "question,answer,gold_ids\n?,!,d1;d9\n"},
            "questions.csv:2: gold document 'd1;d9' is not among the documents$",
        ),
        (
            {"questions": "question,answer,gold_ids\n?,!,[d1\n"},
            r"questions.csv:2: column 'gold_ids' begins with \[ and is no JSON list",
        ),
        (
            {"questions": "question,answer,question_type\n?,!,riddle\n"},
            "questions.csv:2: unknown question type 'riddle'; known: multi_hop",
        ),
        (
            {"questions": "question,answer,tenant\n?,!,c\n", "filter_by": ["tenant"]},
            "questions.csv:2: column 'tenant' is 'c', which no document has",
        ),
        (
            {"questions": "question,answer,tenant\n?,!,\n", "filter_by": ["tenant"]},
            "questions.csv:2: column 'tenant' is empty, so that the question would find nothing",
        ),
        (
            {"questions": "question,answer,gold_ids,tenant\n?,!,d2,a\n", "filter_by": ["tenant"]},
            "questions.csv:2: gold document 'd2' does not agree in 'tenant'; dataset.filter_by would hide it",
        ),
    ],
)
def test_a_mistake_is_told_with_file_line_and_column(tmp_path: Path, changes: dict[str, Any], told: str) -> None:
    with pytest.raises(ArenaError, match=f"^{tmp_path}/{told}") as refused:
        read(tmp_path, **changes)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ({"text": ["x"]}, "documents.jsonl:1: column 'text' holds a list, where a text should be"),
        ({"text": {"x": 1}}, "documents.jsonl:1: column 'text' holds a dict, where a text should be"),
        ({"text": None}, "documents.jsonl:1: column 'text' is empty"),
        ({"doc_id": True, "text": "x"}, "documents.jsonl:1: column 'doc_id' holds true or false, where an id should be"),
    ],
)
def test_a_cell_that_is_no_text_is_refused(tmp_path: Path, row: dict[str, Any], told: str) -> None:
    with pytest.raises(ArenaError, match=f"^{tmp_path}/{told}$"):
        read(tmp_path, lines([row]), lines([{"question": "?", "answer": "!"}]), "jsonl")


def test_a_row_of_parquet_is_told_by_its_number(tmp_path: Path) -> None:
    pq.write_table(pa.table({"text": ["x", None]}), tmp_path / "documents.parquet")
    pq.write_table(pa.table({"question": ["?"], "answer": ["!"]}), tmp_path / "questions.parquet")
    with pytest.raises(ArenaError, match=r"documents\.parquet row 2: column 'text' is empty$"):
        read(tmp_path, None, None, "parquet")


def test_columns_of_parquet_that_nobody_asked_for_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({"text": ["x"], "vector": [[0.5] * 1024], "year": [2020]})
    pq.write_table(table, tmp_path / "documents.parquet")
    pq.write_table(pa.table({"question": ["?"], "answer": ["!"]}), tmp_path / "questions.parquet")
    read_columns: list[str] = []
    whole = pq.ParquetFile.read
    monkeypatch.setattr(pq.ParquetFile, "read", lambda file, columns: read_columns.extend(columns) or whole(file, columns))
    assert read(tmp_path, None, None, "parquet", metadata=["year"]).corpus[0]["metadata"] == {"year": "2020"}
    assert read_columns == ["text", "year", "question", "answer"]


def test_half_a_parquet_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "documents.parquet").write_bytes(b"PAR1")
    (tmp_path / "questions.parquet").write_bytes(b"PAR1")
    with pytest.raises(ArenaError, match=r"documents\.parquet: not a whole Parquet file \(.+\)$"):
        read(tmp_path, None, None, "parquet")


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda folder: None, "documents.csv: missing; dataset.path and dataset.documents name it"),
        (lambda folder: (folder / "documents.csv").mkdir(), "documents.csv: a folder, where a file should be"),
    ],
)
def test_a_file_that_is_not_there_is_refused_by_the_key_that_names_it(tmp_path: Path, make: Any, told: str) -> None:
    make(tmp_path)
    with pytest.raises(ArenaError, match=f"^{tmp_path}/{told}"):
        read(tmp_path, documents=None)


def test_a_format_that_nobody_knows_is_refused_with_those_that_are_known(tmp_path: Path) -> None:
    known = r"known: \.csv, \.tsv, \.json, \.jsonl, \.ndjson, \.parquet"
    with pytest.raises(ArenaError, match=rf"^{tmp_path}/documents\.xlsx: nobody knows how to read \.xlsx; {known}$"):
        read(tmp_path, suffix="xlsx")


@pytest.mark.parametrize("name", ["../documents.csv", "more/../../documents.csv", "/tmp/documents.csv"])
def test_a_file_outside_the_folder_that_is_tracked_is_refused(tmp_path: Path, name: str) -> None:
    told = rf"^params\.yaml: dataset\.documents: must lie in dataset\.path, which is what both runners track \(got '{name}'\)$"
    with pytest.raises(ArenaError, match=told):
        dataset(tmp_path, documents=name, questions="questions.csv")


def test_a_column_with_a_quotation_mark_cannot_be_a_filter(tmp_path: Path) -> None:
    with pytest.raises(ArenaError, match=r"^params\.yaml: dataset\.filter_by\.0: "):
        read(tmp_path, filter_by=['ten"ant'])
