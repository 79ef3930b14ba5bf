"""The commands that calibrate, resolve, label, print and sweep, on a small project of four documents and questions."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from rag_arena import artifacts, layout
from rag_arena.calibration import verdict
from rag_arena.params import Sigmoid
from rag_arena.records import Cell
from rag_arena.sources import labels
from rag_arena.stages.calibrate import Calibrated
from tests.project import QUESTIONS, Project
from tests.stub import Stub
from tests.test_cli import refusal

GATE = Cell("self_corrective", "dense")


@pytest.fixture(scope="module")
def calibrated(small_project: Project, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """All four questions in the calibration split, calibrated in the dense mode, the threshold `auto`. Not to be changed."""
    made = Project(tmp_path_factory.mktemp("calibrated") / "project")
    shutil.copytree(small_project.folder, made.folder)
    rows = [{"question_id": q[0], "question_type": q[4], "stratum_size": 4, "stratum_weight": 1.0} for q in QUESTIONS]
    made.write(str(layout.CALIBRATION), artifacts.SAMPLE, rows)
    made.change({"strategy.self_corrective.threshold": "auto"})
    made.ok("calibrate", "dense", ARENA_DRIFT_CHECKED="1")
    made.ok("resolve", "self_corrective", "dense", ARENA_DRIFT_CHECKED="1")
    return made


@pytest.fixture
def own(calibrated: Project, tmp_path: Path) -> Project:
    """A copy to be changed."""
    shutil.copytree(calibrated.folder, tmp_path / "own")
    return Project(tmp_path / "own")


def threshold(project: Project) -> tuple[str, str]:
    rows = project.read(str(layout.resolved(GATE)), artifacts.RESOLVED)
    return next((row["value"], row["origin"]) for row in rows if row["key"] == "threshold")


def best(project: Project) -> list[float]:
    rows = project.read(str(layout.calibrated("dense", "retrievals")), artifacts.RETRIEVALS)
    return [row["best"] for row in rows if row["scorer"] == "cosine"]


def test_auto_with_good_retrievals_alone_is_the_lowest_score_seen(calibrated: Project) -> None:
    lowest = min(best(calibrated))
    value, origin = threshold(calibrated)
    assert origin == "auto"
    assert lowest - 1e-4 < float(value) <= lowest


def test_calibration_prints_labels_scores_candidates_and_what_is_in_force(calibrated: Project) -> None:
    shown = calibrated.ok("calibration", "dense")
    assert "dense: 4 calibration questions, by their top 3: 4 good, 0 acceptable, 0 bad, 0 unlabelled" in shown
    assert "no retrieval is labelled bad" in shown
    assert f"self_corrective.threshold {float(threshold(calibrated)[0]):.4g} (auto) corrects 0% of the questions" in shown
    assert max(map(len, shown.splitlines())) <= 120


def test_calibration_of_an_unknown_mode_is_refused_with_the_nearest(calibrated: Project) -> None:
    expected = "arena: params.yaml: retrieval mode 'dens' is not in the grid; did you mean dense?"
    assert refusal(calibrated, "calibration", "dens") == expected


def test_a_threshold_that_cannot_be_calibrated_is_refused_with_what_to_do(project: Project) -> None:
    project.change({"strategy.self_corrective.threshold": "auto"})
    assert refusal(project, "resolve", "self_corrective", "dense") == (
        "arena: params.yaml: strategy.self_corrective.threshold cannot be calibrated in dense: no retrieval of the calibration "
        "split is labelled; label some with `arena label dense`, raise sample.calibration, or type a number"
    )
    project.change({"strategy.self_corrective.threshold": 0.4})
    project.ok("resolve", "self_corrective", "dense")
    assert threshold(project) == ("0.4", "typed")


def test_label_writes_a_sheet_whose_answers_it_keeps_and_calibration_reads(own: Project) -> None:
    k = 3
    assert own.ok("label", "dense").startswith(f"data/labels.csv: {4 * k} rows added, 0 kept; {4 * k} with an empty label")
    sheet = labels.read(own.folder / layout.LABELS)
    assert [row.question_id for row in sheet] == [q[0] for q in QUESTIONS for _ in range(k)]
    assert {row.title for row in sheet} == {"Rhine", "Danube", "Cheese", "Elbe"}

    # the user finds that nothing found for q1 helps
    filled = [
        labels.Row(r.question_id, r.doc_id, r.question, r.title, r.score, "no" if r.question_id == "q1" else "") for r in sheet
    ]
    (own.folder / layout.LABELS).write_text(labels.text(filled))
    assert own.ok("label", "dense").startswith(f"data/labels.csv: 0 rows added, {4 * k} kept; {3 * k} with an empty label")
    assert labels.read(own.folder / layout.LABELS) == filled
    own.ok("calibrate", "dense")
    rows = own.read(str(layout.calibrated("dense", "retrievals")), artifacts.RETRIEVALS)
    assert {row["question_id"]: row["label"] for row in rows} == {"q1": "bad", "q2": "good", "q3": "good", "q4": "good"}


def test_label_makes_the_sheet_where_there_is_none(own: Project) -> None:
    (own.folder / layout.LABELS).unlink(missing_ok=True)
    assert "0 kept" in own.ok("label", "dense")
    assert labels.read(own.folder / layout.LABELS)


def test_a_sheet_that_cannot_be_read_is_refused_and_left_as_it_is(own: Project) -> None:
    path = own.folder / layout.LABELS
    path.write_text("my work\n")
    assert refusal(own, "label", "dense").startswith("arena: data/labels.csv: must begin with the line question_id,doc_id")
    assert path.read_text() == "my work\n"


def test_ask_fills_thresholds_in_from_the_calibration(own: Project, stub: Stub) -> None:
    own.point_at(stub.url)
    shown = own.ok("ask", QUESTIONS[0][1], "--strategy", "self_corrective", "--retrieval", "dense", COLUMNS="160")
    assert f"threshold {float(threshold(own)[0]):.3f}" in shown


def test_without_a_label_calibration_says_how_to_make_some(project: Project) -> None:
    assert "no retrieval is labelled: auto is refused; `arena label` writes the sheet" in project.ok("calibration", "dense")


# Verdicts


def tables(scores: list[float | None], rates: dict[float, float]) -> Calibrated:
    added = dict.fromkeys([name for name in artifacts.CANDIDATES.schema.names if "_widen" in name or "_lane" in name], 0.0)
    counts = {"n_questions": len(scores), "n_corrected": 0, "precision": None, "recall": None, **added}
    return Calibrated(
        artifacts.table(
            artifacts.RETRIEVALS,
            [{"scorer": "cosine", "question_id": f"q{i:02}", "best": best, "label": "good"} for i, best in enumerate(scores)],
        ),
        artifacts.table(artifacts.SIGMOIDS, []),
        artifacts.table(artifacts.THRESHOLDS, []),
        artifacts.table(
            artifacts.CANDIDATES, [{"scorer": "cosine", "threshold": t, "correction_rate": r, **counts} for t, r in rates.items()]
        ),
    )


BAD: Any = {"scorer": "cosine", "separates": "bad"}


def test_a_threshold_that_corrects_too_many_is_held_against_the_highest_that_does_not() -> None:
    # the reference experiment: of 30 queries 21 lie under 0.70 and 5 under 0.55
    found = tables([0.5] * 5 + [0.6] * 16 + [0.8] * 9, {0.45: 0.0, 0.55: 5 / 30, 0.65: 21 / 30})
    assert verdict(0.7, BAD, None, 0.25, found) == "corrects 70% of the questions, over 25%: too high; 0.55 corrects 17%"
    assert verdict(0.55, BAD, None, 0.25, found) == "corrects 17% of the questions"


def test_exactly_the_limit_is_not_too_high() -> None:
    assert verdict(0.5, BAD, None, 0.25, tables([0.4, 0.6, 0.6, 0.6], {})) == "corrects 25% of the questions"


def test_where_no_candidate_corrects_few_enough_that_is_said() -> None:
    found = tables([0.4, 0.4, None, 0.9], {0.45: 3 / 4})
    assert verdict(0.5, BAD, None, 0.25, found) == "corrects 75% of the questions, over 25%: too high, as is every candidate"


def test_a_threshold_for_good_retrievals_says_how_many_it_calls_good() -> None:
    good = {"scorer": "cosine", "separates": "good"}
    assert verdict(0.5, good, None, 0.25, tables([0.4, 0.6, 0.6, None], {})) == "calls 50% of the retrievals good"


def test_a_threshold_on_relevance_is_held_against_probabilities() -> None:
    # P(0.5) = 1/2 and P(0.9) = 1 / (1 + e^-4) = 0.98
    found = tables([0.5, 0.9], {})
    assert verdict(0.6, BAD, Sigmoid(tau=0.5, temperature=0.1), 0.5, found) == "corrects 50% of the questions"


def test_without_calibration_questions_there_is_no_verdict() -> None:
    assert verdict(0.5, BAD, None, 0.25, tables([], {})) == "meets no calibration question"


# Sweeps

KEY = "strategy.self_corrective.threshold"
ADDED = "strategy=[vanilla,self_corrective,no_retrieval] report.focus=self_corrective-hybrid_rerank"


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (
            ["strategy.self_corrective.treshold", "0.5"],
            "arena: conf: unknown key strategy.self_corrective.treshold; did you mean threshold?",
        ),
        (
            [KEY, "0.5", "5"],
            f"arena: conf with {ADDED} {KEY}=5: {KEY}: must be a number from 0 to 1, auto, or {{percentile: 0 to 100}} (got 5)",
        ),
        (
            [KEY, "0.5"],
            "arena: .git: DVC keeps experiments beside a git commit, and there is none; `git init`, add and commit first",
        ),
    ],
)
def test_a_sweep_that_cannot_run_is_refused_before_anything_is_queued(
    small_project: Project, arguments: list[str], line: str
) -> None:
    assert refusal(small_project, "sweep", *arguments) == line
