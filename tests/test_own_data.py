"""A table of the user's own without gold documents, each question held to one tenant's, from the files to the leaderboard."""

import shutil
from pathlib import Path

import pytest

from rag_arena import artifacts
from tests.project import CORPUS, QUESTIONS, Project

TENANTS = {"d1": "a", "d2": "b", "d3": "a", "d4": "b"}
OF = {tenant: {doc_id for doc_id, of in TENANTS.items() if of == tenant} for tenant in "ab"}
ASKED = {question[0]: TENANTS[f"d{number}"] for number, question in enumerate(QUESTIONS, 1)}


def write_tables(folder: Path) -> None:
    """Documents and questions as CSV, under names of the user's own."""
    documents = [f"{row['doc_id']},{row['title']},{row['text']},{TENANTS[row['doc_id']]}\n" for row in CORPUS]
    questions = [f"{question[0]},{question[1]},{question[2]},{ASKED[question[0]]}\n" for question in QUESTIONS]
    (folder / "pages.csv").write_text("nr,title,text,tenant\n" + "".join(documents))
    (folder / "asked.csv").write_text("nr,question,answer,tenant\n" + "".join(questions))


@pytest.fixture(scope="module")
def own(small_project: Project, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project on these tables, of which nothing is made yet."""
    folder = tmp_path_factory.mktemp("own") / "project"
    shutil.copytree(small_project.folder, folder)
    made = Project(folder)
    write_tables(folder / "data/rivers")
    columns = {"doc_id": "nr", "title": "title", "text": "text", "question_id": "nr", "question": "question", "answer": "answer"}
    made.change(
        {
            "dataset": {
                "name": "own",
                "kind": "local",
                "path": "data/rivers",
                "licence": "unknown",
                "documents": "pages.csv",
                "questions": "asked.csv",
                "columns": columns,
                "metadata": [],
                "filter_by": ["tenant"],
            },
            "sample.evaluation": 2,
            "sample.calibration": 2,
            "strategy.self_corrective.correction": "other_lane",
        }
    )
    return made


@pytest.fixture(scope="module")
def finished(own: Project, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Every stage run."""
    folder = tmp_path_factory.mktemp("finished") / "project"
    shutil.copytree(own.folder, folder)
    made = Project(folder)
    made.run_every_stage()
    return made


def test_download_says_that_recall_will_stay_empty(own: Project) -> None:
    assert own.ok("download").splitlines() == [
        "4 documents, 4 questions, 0 supporting facts unresolved",
        "note: 4 questions without gold documents, for which recall and precision stay empty",
    ]


def test_the_leaderboard_shows_answers_and_says_why_recall_is_empty(finished: Project) -> None:
    shown = finished.ok("leaderboard")
    [vanilla] = [line.split() for line in shown.splitlines() if line.split()[:1] == ["vanilla"]]
    assert vanilla[2:5] == ["2", "-", "-"]
    assert vanilla[5] != "-"
    assert "recall and precision are empty: these questions have no gold documents." in shown.splitlines()


def test_no_cell_has_seen_a_document_of_another_tenant(finished: Project) -> None:
    for strategy in ("vanilla", "self_corrective"):
        rows = finished.read(f"data/runs/{strategy}/dense/answers.parquet", artifacts.ANSWERS)
        assert {row["question_id"] for row in rows} <= set(ASKED)
        assert all(set(row["retrieved_ids"]) == OF[ASKED[row["question_id"]]] for row in rows)


def test_one_questions_path_can_be_shown(finished: Project) -> None:
    asked = finished.read("data/sample/evaluation.parquet", artifacts.SAMPLE)[0]["question_id"]
    shown = finished.ok("trace", asked, COLUMNS="160")
    assert f"only from: tenant {ASKED[asked]}" in shown.splitlines()
    assert "gold" not in shown
    assert "recall" not in shown


def test_calibration_says_that_nothing_is_labelled(finished: Project) -> None:
    shown = finished.ok("calibration", "dense")
    assert "no retrieval is labelled: auto is refused; `arena label` writes the sheet to fill in" in shown


def test_labels_stand_in_for_gold_documents(finished: Project, tmp_path: Path) -> None:
    shutil.copytree(finished.folder, tmp_path / "labelled")
    labelled = Project(tmp_path / "labelled")
    labelled.ok("label", "dense")
    sheet = labelled.folder / "data/labels.csv"
    header, *rows = sheet.read_text().splitlines()
    sheet.write_text("\n".join([header, *(f"{row}{('yes', 'no')[number % 2]}" for number, row in enumerate(rows))]) + "\n")
    labelled.change({"strategy.self_corrective.threshold": "auto"})
    labelled.ok("calibrate", "dense")
    labelled.ok("resolve", "self_corrective", "dense")
    rows = labelled.read("data/resolved/self_corrective/dense.parquet", artifacts.RESOLVED)
    assert {row["origin"] for row in rows if row["key"] == "threshold"} == {"auto"}


@pytest.mark.parametrize("command", ["download", "doctor"])
def test_what_cannot_be_calibrated_is_refused_before_anything_is_spent(own: Project, tmp_path: Path, command: str) -> None:
    shutil.copytree(own.folder, tmp_path / "auto")
    auto = Project(tmp_path / "auto")
    auto.change({"strategy.self_corrective.threshold": "auto"})
    before = auto.listing()
    told = "params.yaml: strategy.self_corrective.threshold is auto, and there is nothing to calibrate it on: "
    done = auto.arena(command)
    assert done.returncode == 1
    assert told in done.stdout + done.stderr
    assert auto.listing() == before
