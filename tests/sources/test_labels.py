from pathlib import Path

import pytest

from rag_arena.errors import ArenaError
from rag_arena.sources.labels import Row, merged, read, text

HEADER = "question_id,doc_id,question,title,score,label\n"


def sheet(tmp_path: Path, content: str) -> Path:
    path = tmp_path / "labels.csv"
    path.write_text(content, encoding="utf-8")
    return path


def test_a_sheet_is_read_as_it_was_written(tmp_path: Path):
    rows = [Row("q1", "d1", 'Who said "no, never"?', "A, B", "0.5000", "yes"), Row("q1", "d2", "Où?", "", "0.4000")]
    assert read(sheet(tmp_path, text(rows))) == rows


@pytest.mark.parametrize(("label", "verdict"), [("yes", True), (" Yes", True), ("NO ", False), ("", None)])
def test_a_label_is_yes_no_or_empty(tmp_path: Path, label: str, verdict: bool | None):
    [row] = read(sheet(tmp_path, f"{HEADER}q1,d1,Where?,Rhine,0.5,{label}\n"))
    assert row.verdict is verdict


def test_the_mark_that_spreadsheets_put_before_utf_8_is_no_part_of_the_header(tmp_path: Path):
    assert read(sheet(tmp_path, f"\ufeff{HEADER}\n")) == []


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("", "must begin with the line question_id,doc_id,question,title,score,label"),
        ("question_id;doc_id;label\n", "must begin with the line question_id,doc_id,question,title,score,label"),
        (f"{HEADER}q1,d1,Where?,Rhine,0.5,good\n", " row 2: label 'good' must be yes, no or empty"),
        (f"{HEADER}q1,d1,Where?,Rhine,0.5\n", " row 2: has 5 columns instead of 6"),
        (f"{HEADER}q1,d1,,,,\nq1,d1,,,,yes\n", " row 3: question q1 and document d1 stand there twice"),
        (f'{HEADER}q1,d1,"Where?,,,\n', "not CSV in UTF-8 (unexpected end of data); save it as such"),
    ],
)
def test_a_faulty_sheet_is_refused_by_its_row(tmp_path: Path, content: str, told: str):
    with pytest.raises(ArenaError) as caught:
        read(sheet(tmp_path, content))
    assert str(caught.value).endswith(told)
    assert str(caught.value).startswith(str(tmp_path / "labels.csv"))


def test_a_missing_sheet_is_refused_with_the_line_that_makes_one(tmp_path: Path):
    with pytest.raises(ArenaError, match=r"labels\.csv: missing; make it with the line question_id,doc_id"):
        read(tmp_path / "labels.csv")


def test_merging_keeps_every_row_that_is_there_and_adds_only_new_pairs():
    old = [Row("q1", "d1", "Where?", "Rhine", "0.5000", "yes"), Row("q1", "d2", "Where?", "Elbe", "0.4000")]
    new = [Row("q1", "d1", "Where?", "Rhine", "0.6000"), Row("q1", "d3", "Where?", "Oder", "0.3000")]
    assert merged(old, new) == [*old, new[1]]
