"""From a calibration split to a cell that its router routes, by the commands, on a small project."""

import json

from rag_arena import artifacts, layout
from tests.project import QUESTIONS, Project
from tests.stub import Answer, Body, Stub, completion
from tests.test_cli import refusal

ADAPTIVE = {"k": 1, "max_tokens": 16, "router": "trained", "max_steps": 1, "max_paragraphs": 2, "step_tokens": 9}


def with_adaptive(project: Project, stub: Stub) -> None:
    """Adaptive stands in the grid, and the calibration split holds all four questions, one of them a summary."""
    project.point_at(stub.url)
    rows = [{"question_id": q[0], "question_type": q[4], "stratum_size": 4, "stratum_weight": 1.0} for q in QUESTIONS]
    project.write(str(layout.CALIBRATION), artifacts.SAMPLE, rows)
    changes = {"grid.strategies": ["adaptive"], "strategy.adaptive": ADAPTIVE, "report.focus": ""}
    project.change({**changes, "silver.questions": 4, "silver.settings": ADAPTIVE})


def test_a_router_is_trained_resolved_and_followed(project: Project, stub: Stub) -> None:
    def behave(body: Body) -> Answer:
        prompt = body["messages"][-1]["content"]
        return completion(
            "In the Alps." if "Rhine begin?" in prompt else "By the Black Forest." if "Black Forest" in prompt else "?"
        )

    stub.behave = behave
    with_adaptive(project, stub)
    told = project.ok("train", "dense")
    assert "router of dense: n_questions 3, n_failed 0, n_none 1, n_one 1, n_several 1, n_inductive_bias 1" in told
    project.ok("resolve", "adaptive", "dense")
    project.ok("run", "adaptive", "dense")
    rows = project.read("data/runs/adaptive/dense/answers.parquet", artifacts.ANSWERS)
    routes = [json.loads(row["trace"])[0] for row in rows]
    assert [(route["node"], route["source"]) for route in routes] == [("route", "trained")] * 4


def test_a_trained_router_without_silver_questions_is_refused_by_resolve(project: Project, stub: Stub) -> None:
    with_adaptive(project, stub)
    project.change({"silver.questions": 0})
    assert project.ok("train", "dense") == ""
    assert "router cannot be trained in dense" in refusal(project, "resolve", "adaptive", "dense")
    assert stub.requests == []
