"""A dataset cut into chunks, from its files to the leaderboard and the path of one question."""

import shutil

import pytest

from rag_arena import artifacts
from tests.project import CORPUS, QUESTIONS, Project

CHARACTERS = 15
GOLD = {question[0]: set(question[5]) for question in QUESTIONS}


@pytest.fixture(scope="module")
def chunked(small_project: Project, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """The small project with its texts cut, every stage run."""
    folder = tmp_path_factory.mktemp("chunked") / "project"
    shutil.copytree(small_project.folder, folder)
    made = Project(folder)
    made.change(
        {"dataset.chunking": {"characters": CHARACTERS, "overlap": 0}, "sample.evaluation": 2, "sample.calibration": 2},
    )
    made.run_every_stage()
    return made


def documents(chunk_ids: list[str]) -> set[str]:
    return {chunk_id.split("¶")[0] for chunk_id in chunk_ids}


def test_documents_are_chunks_of_all_their_words(chunked: Project) -> None:
    rows = chunked.read("data/corpus.parquet", artifacts.CORPUS)
    assert all(len(row["text"]) <= CHARACTERS for row in rows)
    for document in CORPUS:
        of = [row["text"] for row in rows if row["doc_id"].startswith(f"{document['doc_id']}¶")]
        assert " ".join(of) == document["text"]
        assert len(of) > 1


def test_answers_are_scored_by_the_documents_of_the_chunks_in_the_prompt(chunked: Project) -> None:
    answers = chunked.read("data/runs/vanilla/dense/answers.parquet", artifacts.ANSWERS)
    scores = {
        row["question_id"]: row
        for row in chunked.read("results/scores.parquet", artifacts.SCORES)
        if row["strategy"] == "vanilla"
    }
    for row in answers:
        used, gold = documents(row["used_ids"]), GOLD[row["question_id"]]
        assert all("¶" in chunk_id for chunk_id in row["used_ids"])
        assert scores[row["question_id"]]["recall"] == len(used & gold) / len(gold)
        assert scores[row["question_id"]]["precision"] == len(used & gold) / len(used)
    assert any(len(documents(row["used_ids"])) < len(row["used_ids"]) for row in answers), "several chunks of one document"


def test_recall_at_k_counts_documents_not_chunks(chunked: Project) -> None:
    rows = chunked.read("results/retrieval_quality.parquet", artifacts.RETRIEVAL_QUALITY)
    [overall] = [row for row in rows if row["question_type"] == "all"]
    assert overall["n_questions"] == len(QUESTIONS)
    assert overall["recall_at_10"] == 1.0, "four documents, all of which are among the first ten"


def test_calibration_pairs_are_chunks_with_the_gold_of_their_documents(chunked: Project) -> None:
    asked = {row["question_id"] for row in chunked.read("data/sample/calibration.parquet", artifacts.SAMPLE)}
    chunks = [row["doc_id"] for row in chunked.read("data/corpus.parquet", artifacts.CORPUS)]
    relevant = sum(documents([chunk]) <= GOLD[question] for question in asked for chunk in chunks)
    [cosine] = [
        row for row in chunked.read("data/calibrated/dense/sigmoids.parquet", artifacts.SIGMOIDS) if row["scorer"] == "cosine"
    ]
    assert (cosine["n_relevant"], cosine["n_other"]) == (relevant, len(asked) * len(chunks) - relevant)


def test_a_path_marks_chunks_of_gold_documents(chunked: Project) -> None:
    asked = chunked.read("data/sample/evaluation.parquet", artifacts.SAMPLE)[0]["question_id"]
    [gold] = GOLD[asked]
    shown = chunked.ok("trace", asked, COLUMNS="160")
    marked = [line for line in shown.splitlines() if line.endswith("gold")]
    assert marked
    assert all(f"{gold}¶" in line for line in marked)
