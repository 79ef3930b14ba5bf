"""The tools of the command line on hand-made artifacts, and reasoning models from the model's reply to the table."""

import csv
import json
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import typer.main

from rag_arena import artifacts
from rag_arena.cli import app
from rag_arena.errors import ArenaError
from rag_arena.records import Cell
from tests.project import CORPUS, QUESTIONS, ROOT, Project
from tests.stub import Answer, Stub, completion, sensible, serve
from tests.webstub import PAGES, always_searching, searxng

CELLS = [Cell("no_retrieval", "none"), Cell("vanilla", "dense"), Cell("self_corrective", "dense")]


def commands(group: Any, *above: str) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command of the command line with the words that call it."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, *above, name)
        else:
            yield (*above, name), command


COMMANDS = dict(commands(typer.main.get_command(app)))


def refusal(project: Project, *arguments: str, **environment: Any) -> str:
    """The one line in which a command refuses."""
    done = project.arena(*arguments, **environment)
    assert done.returncode == 1, done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr
    return str(done.stderr).strip()


# Help


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_the_help_of_every_command_shows_how_to_call_it(words: tuple[str, ...]) -> None:
    assert f"Example: arena {' '.join(words)}" in " ".join(str(COMMANDS[words].help).split())


def test_help_is_printed_with_status_0(small_project: Project) -> None:
    shown = " ".join(small_project.ok("ledger", "show", "--help", COLUMNS="200").split())
    assert "Example: arena ledger show 3fa9" in shown


def test_every_command_stands_in_the_help(small_project: Project) -> None:
    shown = small_project.ok("--help", COLUMNS="200")
    assert [words[0] for words in COMMANDS if words[0] not in shown] == []


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_command_answers_to_help(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        app([*words, "--help"], prog_name="arena")
    assert ended.value.code == 0
    assert "Example" in capsys.readouterr().out


@pytest.mark.parametrize(
    "words",
    [
        *(["download"], ["index"], ["sample"], ["retrieve", "dense"], ["run", "vanilla", "dense"], ["judge", "vanilla", "dense"]),
        *(["judge-truth"], ["aggregate"], ["compose"], ["compose", "--check"], ["leaderboard"], ["table"], ["table", "scores"]),
        *(["ask", "Where?"], ["trace", "q1"], ["failed"], ["loops"]),
    ],
    ids=" ".join,
)
def test_outside_the_project_every_command_that_needs_it_says_where_to_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ArenaError, match="the project's folder") as refused:
        app(words, standalone_mode=False)
    assert "\n" not in str(refused.value)
    assert list(tmp_path.iterdir()) == []


def test_brackets_in_a_help_text_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        app(["compose", "--help"], prog_name="arena")
    assert "'retrieval=[dense]'" in capsys.readouterr().out


# schema


def test_the_schema_is_the_one_that_editors_and_snakemake_read(small_project: Project) -> None:
    stored = (ROOT / "workflow/schemas/params.schema.json").read_text()
    assert small_project.ok("schema") == stored


# Reasoning models


THOUGHTS = {
    "paired": "<think>yes 42</think>Paris",
    "headless": "Hmm, yes 42...</think>Paris",
    "nested": "<think>yes <think>really</think> 42</think>\n\nParis",
}


@pytest.mark.parametrize("reply", THOUGHTS.values(), ids=THOUGHTS)
def test_thoughts_stand_in_the_trace_and_the_calls_and_never_in_the_answer(project: Project, stub: Stub, reply: str) -> None:
    stub.behave = lambda _: completion(reply)
    project.point_at(stub.url)
    project.ok("run", "no_retrieval", "none")
    for row in project.read("data/runs/no_retrieval/none/answers.parquet", artifacts.ANSWERS):
        assert row["answer"] == "Paris"
        assert "42" in json.loads(row["trace"])[-1]["thoughts"]
    for call in project.read("data/runs/no_retrieval/none/calls.parquet", artifacts.CALLS):
        assert json.loads(call["reply"])["choices"][0]["message"]["content"] == reply


def test_thoughts_that_the_server_itself_sets_apart_stand_in_the_trace(project: Project, stub: Stub) -> None:
    def behave(_: Any) -> Answer:
        answer = json.loads(completion("Paris").content)
        answer["choices"][0]["message"]["reasoning_content"] = "yes 42"
        return Answer(content=json.dumps(answer).encode())

    stub.behave = behave
    project.point_at(stub.url)
    project.ok("run", "no_retrieval", "none")
    rows = project.read("data/runs/no_retrieval/none/answers.parquet", artifacts.ANSWERS)
    assert {(row["answer"], json.loads(row["trace"])[-1]["thoughts"]) for row in rows} == {("Paris", "yes 42")}


def test_content_in_parts_is_parted_into_thoughts_and_answer(project: Project, stub: Stub) -> None:
    parts = [{"type": "thinking", "thinking": [{"type": "text", "text": "yes 42"}]}, {"type": "text", "text": "Paris"}]

    def behave(_: Any) -> Answer:
        answer = json.loads(completion("").content)
        answer["choices"][0]["message"]["content"] = parts
        return Answer(content=json.dumps(answer).encode())

    stub.behave = behave
    project.point_at(stub.url)
    project.ok("run", "no_retrieval", "none")
    rows = project.read("data/runs/no_retrieval/none/answers.parquet", artifacts.ANSWERS)
    assert {(row["answer"], json.loads(row["trace"])[-1]["thoughts"]) for row in rows} == {("Paris", "yes 42")}


@pytest.mark.parametrize("structured_output", ["json_schema", "json_object", "none"])
def test_a_judge_that_thinks_aloud_is_read_and_the_ledger_keeps_what_it_said(
    project: Project, stub: Stub, tmp_path: Path, structured_output: str
) -> None:
    project.point_at(stub.url)
    project.change({"judge.llm.endpoint.structured_output": structured_output})
    project.ok("run", "no_retrieval", "none")
    said = '<think>Rating {"rating": 0}? No, 42.</think>\n{"rating": 4}'
    stub.behave = lambda _: completion(said)
    project.ok("judge", "no_retrieval", "none")
    rows = project.read("data/judged/no_retrieval/none.parquet", artifacts.JUDGEMENTS)
    assert {(row["accuracy_first"], row["accuracy_second"], row["answer_accuracy"]) for row in rows} == {(4, 4, 1.0)}
    ledger = sqlite3.connect(tmp_path / "ledger.sqlite")
    replies = [json.loads(reply)["choices"][0]["message"]["content"] for (reply,) in ledger.execute("SELECT reply FROM calls")]
    ledger.close()
    assert replies.count(said) == 2 * len(rows)


def test_a_rewritten_query_holds_no_thoughts(project: Project, stub: Stub) -> None:
    stub.behave = lambda _: completion("<think>yes 42</think>Which river begins in the Alps?")
    project.point_at(stub.url)
    project.change({"strategy.self_corrective.correction": "rewrite", "strategy.self_corrective.threshold": 1.0})
    project.ok("resolve", "self_corrective", "dense")
    project.ok("run", "self_corrective", "dense")
    for row in project.read("data/runs/self_corrective/dense/answers.parquet", artifacts.ANSWERS):
        queries = [step["query"] for step in json.loads(row["trace"]) if step["node"] == "correct"]
        assert queries == ["Which river begins in the Alps?"]
    assert not any("42" in prompt for prompt in stub.prompts)


# graph


def test_graph_prints_a_strategys_nodes_and_edges_as_mermaid(small_project: Project) -> None:
    shown = small_project.ok("graph", "self_corrective").split("\n")
    assert shown[0] == "graph TD;"
    assert {"\t__start__ --> retrieve;", "\tassess -. enough: no .-> correct;", "\tgenerate --> __end__;"} <= set(shown)


def test_graph_of_an_unknown_strategy_is_refused_with_the_nearest(small_project: Project) -> None:
    line = "arena: strategy 'vanila' does not exist; did you mean vanilla?"
    assert refusal(small_project, "graph", "vanila") == line


# ask


def test_ask_prints_path_cost_and_answer(project: Project, stub: Stub) -> None:
    stub.behave = lambda _: completion("The Alps [north] :cat:")
    project.point_at(stub.url)
    shown = project.ok("ask", "Where does the [Rhine] begin?", "--retrieval", "dense", COLUMNS="160")
    lines = shown.splitlines()
    assert lines[0] == "Where does the [Rhine] begin?  (vanilla-dense)"
    assert "retrieve  query Where does the [Rhine] begin?" in lines[1]
    assert any("d1  Rhine  score" in line for line in lines)
    assert lines[-1] == "answer: The Alps [north] :cat:"
    assert lines[-2].startswith("1 call, 14 tokens, ")
    assert "gold" not in shown


def test_ask_shows_what_the_web_found_and_asks_it_once(project: Project, stub: Stub) -> None:
    stub.behave = lambda body: searxng("?", PAGES[:1]) if "path" in body else completion("The Alps")
    project.point_at(stub.url)
    project.change({"strategy.corrective": always_searching(stub)})
    question = ("ask", "Where does the Rhine begin?", "--strategy", "corrective", "--retrieval", "dense")
    shown = project.ok(*question, COLUMNS="200")
    assert "elsewhere searxng" in shown
    assert f"web:{PAGES[0][0]}  Rhine  score 1.000" in shown
    assert f"used: web:{PAGES[0][0]}" in shown
    asked = len(stub.requests)
    assert "replayed" in project.ok(*question, COLUMNS="200")
    assert len(stub.requests) == asked


def test_ask_of_a_strategy_without_retrieval_shows_no_documents(project: Project, stub: Stub) -> None:
    project.point_at(stub.url)
    shown = project.ok("ask", "Where?", "--strategy", "no_retrieval", "--retrieval", "none")
    assert "used: nothing" in shown
    assert "score" not in shown


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (["--strategy", "vanila"], "arena: strategy 'vanila' does not exist; did you mean vanilla?"),
        (["--retrieval", "dens"], "arena: retrieval mode 'dens' does not exist; did you mean dense?"),
        (["--retrieval", "none"], "arena: vanilla-none: vanilla retrieves; choose a retrieval mode"),
        (
            ["--strategy", "no_retrieval", "--retrieval", "dense"],
            "arena: no_retrieval-dense: no_retrieval never retrieves; choose none as its retrieval",
        ),
    ],
)
def test_ask_refuses_what_cannot_be_asked(project: Project, stub: Stub, options: list[str], line: str) -> None:
    project.point_at(stub.url)
    assert refusal(project, "ask", "Where?", *options) == line
    assert stub.requests == []


RIVER_AND_DAIRY = [{**row, "metadata": (("kind", "dairy" if row["doc_id"] == "d3" else "river"),)} for row in CORPUS]


def test_ask_can_be_held_to_documents_with_given_metadata(project: Project, stub: Stub) -> None:
    project.point_at(stub.url)
    project.write("data/corpus.parquet", artifacts.CORPUS, RIVER_AND_DAIRY)
    shown = project.ok("ask", "Where does the Rhine begin?", "--retrieval", "dense", "--where", "kind=dairy", COLUMNS="160")
    assert "d3  Cheese" in shown
    assert "Rhine  score" not in shown


@pytest.mark.parametrize(
    ("where", "line"),
    [
        ("kinds=dairy", "arena: data/corpus.parquet: no document has metadata 'kinds'; did you mean kind?"),
        ("kind=diary", "arena: data/corpus.parquet: kind is never 'diary'; did you mean dairy?"),
        ("kind", "arena: data/corpus.parquet: kind is never ''; known: dairy, river"),
    ],
)
def test_ask_refuses_metadata_that_no_document_has(project: Project, stub: Stub, where: str, line: str) -> None:
    project.point_at(stub.url)
    project.write("data/corpus.parquet", artifacts.CORPUS, RIVER_AND_DAIRY)
    assert refusal(project, "ask", "Where?", "--retrieval", "dense", "--where", where) == line
    assert stub.requests == []


@pytest.mark.parametrize("nothing", ["", " \n"])
def test_an_empty_question_is_not_asked(project: Project, stub: Stub, nothing: str) -> None:
    project.point_at(stub.url)
    assert refusal(project, "ask", nothing) == "arena: the question is empty; write it between quotes"
    assert stub.requests == []


# Finished results: trace, failed, leaderboard


@pytest.fixture(scope="module")
def finished(small_project: Project, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """All cells run, judged and aggregated; q3 failed in vanilla. Not to be changed."""
    folder = tmp_path_factory.mktemp("finished")
    shutil.copytree(small_project.folder, folder / "project")
    made = Project(folder / "project")

    made.change({"strategy.vanilla.max_tokens": 95, "judge.metrics.questions": 2, "sample.evaluation": 4})

    def behave(body: Any) -> Answer:
        of_vanilla = body["max_tokens"] == 95
        return Answer(503) if of_vanilla and "What is cheese" in body["messages"][-1]["content"] else sensible(body)

    with serve(behave) as server, pytest.MonkeyPatch.context() as patch:
        made.point_at(server.url)
        patch.chdir(made.folder)
        for name, value in (("LEDGER", str(folder / "ledger.sqlite")), ("DRIFT_CHECKED", "1")):
            patch.setenv(f"ARENA_{name}", value)
        patch.setenv("OPENAI_API_KEY", "stub-key")
        for stage in ("resolve", "run", "judge"):
            for cell in CELLS if stage != "resolve" else [cell for cell in CELLS if cell.retrieval != "none"]:
                app([stage, cell.strategy, cell.retrieval], standalone_mode=False)
        app(["judge-truth"], standalone_mode=False)
        app(["aggregate"], standalone_mode=False)
    return made


@pytest.fixture
def results(finished: Project, tmp_path: Path) -> Project:
    """A copy of the finished project, to be harmed."""
    shutil.copytree(finished.folder, tmp_path / "results")
    return Project(tmp_path / "results")


def test_trace_prints_a_questions_path_in_every_cell(finished: Project) -> None:
    shown = finished.ok("trace", "q1", COLUMNS="160")
    lines = shown.splitlines()
    assert lines[:2] == ["Where does the Rhine begin?  (single_hop)", "reference: the Alps | Alps"]
    assert [line for line in lines if line in map(str, CELLS)] == list(map(str, CELLS))
    assert sum(line.startswith("answer: answer ") for line in lines) == len(CELLS)
    assert sum("d1  Rhine" in line and line.endswith("gold") for line in lines) >= 2
    assert "never seen" in shown.split("vanilla-dense")[0]
    assert "recall 1.00" in shown.split("vanilla-dense")[1]


def test_trace_tells_why_a_question_failed(finished: Project) -> None:
    shown = finished.ok("trace", "q3", COLUMNS="160").split("vanilla-dense")[1].split("self_corrective-dense")[0]
    assert "failed: http://127.0.0.1:" in shown
    assert "503" in shown


def test_trace_refuses_a_question_that_was_not_asked_with_those_that_were(finished: Project) -> None:
    expected = "arena: data/sample/evaluation.parquet: question 'q9' was not asked; asked were q1, q2, q3, q4"
    assert refusal(finished, "trace", "q9") == expected


@pytest.mark.parametrize(
    ("path", "artifact"),
    [("data/runs/vanilla/dense/answers.parquet", artifacts.ANSWERS), ("results/scores.parquet", artifacts.SCORES)],
)
def test_trace_of_results_older_than_the_sample_says_to_run(results: Project, path: str, artifact: artifacts.Artifact) -> None:
    results.write(path, artifact, [row for row in results.read(path, artifact) if row["question_id"] != "q1"])
    line = refusal(results, "trace", "q1")
    assert line.startswith(f"arena: {path}: nothing of question 'q1' in ")
    assert line.endswith("; run `snakemake --cores 4`")


def test_trace_before_any_run_says_what_is_missing(small_project: Project) -> None:
    assert refusal(small_project, "trace", "q1").startswith("arena: results/scores.parquet: missing; run the stage that makes it")


def test_failed_prints_the_stage_of_every_cell_with_failed_questions(finished: Project) -> None:
    assert finished.ok("failed") == "run@vanilla-dense\n"


def test_failed_says_when_nothing_did(results: Project) -> None:
    path = "data/runs/vanilla/dense/answers.parquet"
    rows = results.read(path, artifacts.ANSWERS)
    results.write(path, artifacts.ANSWERS, [{**row, "status": "answered"} for row in rows])
    assert results.ok("failed") == ""


def test_failed_names_a_floor_by_its_own_stage(results: Project) -> None:
    path = "data/runs/no_retrieval/none/answers.parquet"
    rows = results.read(path, artifacts.ANSWERS)
    results.write(path, artifacts.ANSWERS, [{**row, "status": "failed"} for row in rows])
    assert results.ok("failed").splitlines() == ["run_floor@no_retrieval", "run@vanilla-dense"]


def test_failed_before_any_run_says_what_is_missing(small_project: Project) -> None:
    assert "data/runs/no_retrieval/none/answers.parquet: missing" in refusal(small_project, "failed")


def test_loops_prints_what_failed_and_how_it_ended_for_questions_that_were_tried_again(results: Project) -> None:
    path = "data/runs/vanilla/dense/answers.parquet"
    once, twice = ({"node": "rewrite", "failure": failure} for failure in ("no_context", "unsupported"))
    traces = {"q1": [once, {"node": "assess"}], "q2": [once, twice, {"node": "admit", "unconfirmed": True}]}
    rows = results.read(path, artifacts.ANSWERS)
    results.write(path, artifacts.ANSWERS, [{**r, "trace": json.dumps(traces.get(r["question_id"], []))} for r in rows])
    assert results.ok("loops").splitlines() == [
        "vanilla-dense  q1  no_context -> confirmed  Where does the Rhine begin?",
        "vanilla-dense  q2  no_context -> unsupported -> unconfirmed  Where does the Danube begin?",
    ]


@pytest.mark.parametrize("columns", ["40", "120", "250"])
def test_the_leaderboard_is_at_most_120_wide_and_cuts_no_row(finished: Project, columns: str) -> None:
    shown = finished.ok("leaderboard", COLUMNS=columns)
    table = shown.split("* by ")[0]
    assert max(map(len, table.splitlines())) <= 120
    rows = [line.split() for line in table.splitlines() if line.split()[:1] and line.split()[0] in {c.strategy for c in CELLS}]
    assert [(row[0], row[1], row[2]) for row in rows] == [
        ("no_retrieval", "none", "4"),
        ("self_corrective", "dense", "4"),
        ("vanilla", "dense", "3/4"),
    ]
    assert {len(row) for row in rows} == {14}


def test_the_leaderboard_says_who_judged_and_how_well(finished: Project) -> None:
    shown = " ".join(finished.ok("leaderboard").split())
    assert "folder, all: 4 questions, stub" in shown
    assert "* by stub on " in shown


@pytest.mark.parametrize(
    ("column", "counted", "note"),
    [
        ("n_with_gold", 0, "recall and precision are empty: these questions have no gold documents."),
        ("n_with_gold", 3, "recall and precision are of the 3 of 4 questions that have gold documents."),
        ("n_generated", 1, "1 of the 4 questions were generated, not written."),
    ],
)
def test_the_leaderboard_says_what_its_questions_lack(results: Project, column: str, counted: int, note: str) -> None:
    assert note not in results.ok("leaderboard").splitlines()
    path = results.folder / "results/leaderboard.csv"
    rows = list(csv.DictReader(path.open(newline="")))
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows({**row, column: counted} for row in rows)
    assert note in results.ok("leaderboard").splitlines()


def test_the_leaderboard_says_which_differences_are_beyond_chance(results: Project) -> None:
    compared = {"varies": "strategy", "retrieval": "dense", "against": "vanilla", "n_questions": 12, "n_clusters": 12}
    of = {"mean": 0.5, "mean_against": 0.25, "low": 0.1, "high": 0.4, "won": 6, "lost": 0, "tied": 6, "p": 0.01}
    rows = [
        {"metric": metric, "strategy": name, "difference": difference, "p_holm": p, "detectable": detectable, **compared, **of}
        for metric, name, difference, p, detectable in (
            ("recall", "corrective", 0.25, 0.049, 0.2),
            ("recall", "self_rag", -0.5, 0.05, 0.3),
            ("f1", "corrective", -0.125, 0.001, 0.1),
            ("answer_accuracy", "corrective", 0.5, 0.001, 0.1),
        )
    ]
    results.write("results/contrasts.parquet", artifacts.CONTRASTS, rows)
    shown = " ".join(results.ok("leaderboard").split())
    found = "recall of corrective-dense +0.25 against vanilla, f1 of corrective-dense -0.12 against vanilla"
    assert f"beyond chance is {found} (p < 0.05 by Holm; 2 comparisons with vanilla or dense in each of recall, f1)" in shown
    detectable = "would show a difference in recall of about 0.25."  # the median of 0.2 and 0.3
    assert f"One comparison that was meant beforehand {detectable}" in shown
    assert "beyond chance" not in results.ok("leaderboard", "--question-type", "multi_hop")

    results.write("results/contrasts.parquet", artifacts.CONTRASTS, [{**row, "p_holm": 0.05} for row in rows])
    assert "nothing is beyond chance (p < 0.05 by Holm;" in " ".join(results.ok("leaderboard").split())
    results.write("results/contrasts.parquet", artifacts.CONTRASTS, [])
    assert "beyond chance" not in results.ok("leaderboard")


def test_two_cells_are_compared_on_their_questions(finished: Project) -> None:
    shown = [line.split() for line in finished.ok("compare", "vanilla-dense", "no_retrieval-none").splitlines()]
    (recall,) = (words for words in shown if words[:1] == ["recall"])
    mean, against, difference = map(float, recall[2:5])
    assert (recall[1], against) == ("3", 0.0)  # of four: q3 failed in vanilla
    assert mean == difference > 0
    assert {"contains", "f1", "tokens_in", "cost_usd", "latency_p50_s"} <= {words[0] for words in shown if words}


def test_a_cell_without_results_cannot_be_compared(finished: Project) -> None:
    line = "arena: results: no cell 'vanila-dense'; did you mean vanilla-dense?"
    assert refusal(finished, "compare", "vanila-dense", "no_retrieval-none") == line


def test_the_leaderboard_of_one_question_type_counts_its_questions_alone(finished: Project) -> None:
    assert "single_hop: 2 questions" in finished.ok("leaderboard", "--question-type", "single_hop")


def test_the_leaderboard_is_a_markdown_table_on_request(finished: Project) -> None:
    table = [line for line in finished.ok("leaderboard", "--markdown").splitlines() if line.startswith("|")]
    assert len(table) == 2 + len(CELLS)
    assert set(table[1]) <= set("|-: ")
    assert len({line.count("|") for line in table}) == 1


def test_the_leaderboard_of_an_unknown_question_type_is_refused(finished: Project) -> None:
    expected = "no rows for question type 'hard'; try all, multi_hop, single_hop or summary"
    assert refusal(finished, "leaderboard", "--question-type", "hard") == f"arena: results/leaderboard.csv: {expected}"


def test_the_leaderboard_before_any_run_says_what_is_missing(small_project: Project) -> None:
    expected = "arena: results/leaderboard.csv: missing; run `snakemake --cores 4` in the project's folder"
    assert refusal(small_project, "leaderboard") == expected


def test_any_table_of_the_results_is_printed_by_name(finished: Project) -> None:
    names = finished.ok("table").split()
    assert {"scores", "retrieval_quality", "disagreement"} <= set(names)
    shown = finished.ok("table", "scores").split()
    assert {"strategy", "failure", *(cell.strategy for cell in CELLS)} <= set(shown)


def test_a_table_may_be_cut_to_the_rows_with_given_values(finished: Project) -> None:
    everything, vanilla = (finished.ok("table", "scores", *where) for where in ((), ("strategy=vanilla",)))
    assert "no_retrieval" in everything
    assert "no_retrieval" not in vanilla
    assert "vanilla" in vanilla
    where = ("question_type=multi_hop", "strategy=vanilla")
    assert len(finished.ok("table", "scores", *where).splitlines()) < len(vanilla.splitlines())


def test_a_column_that_a_table_does_not_have_is_refused_with_the_nearest(finished: Project) -> None:
    line = "arena: results/scores.parquet: no column 'strateg'; did you mean strategy?"
    assert refusal(finished, "table", "scores", "strateg=vanilla") == line


def test_tables_before_any_run_are_refused_as_missing(small_project: Project) -> None:
    assert refusal(small_project, "table") == "arena: results: no tables; run `snakemake --cores 4` in the project's folder"


def test_a_table_that_is_not_there_is_refused_with_the_nearest(finished: Project) -> None:
    assert refusal(finished, "table", "score") == "arena: results/score.parquet: missing; did you mean scores?"


# ledger


def call(key: str, url: str = "http://server/v1", tokens_in: int = 10) -> dict[str, Any]:
    return {
        "question_id": key,
        "position": 0,
        "node": "generate",
        "key": key,
        "endpoint": json.dumps({"base_url": url, "model": "m"}),
        "request": json.dumps({"messages": [{"role": "user", "content": f"Où est {key}?"}]}, ensure_ascii=False),
        "reply": json.dumps({"choices": [{"message": {"content": "là"}}]}, ensure_ascii=False),
        "tokens_in": tokens_in,
        "tokens_out": 5,
        "latency_s": 0.5,
        "replayed": False,
    }


CALLS = [call("aa11"), call("aa22", tokens_in=20), call("bb33", url="http://other/v1")]


@pytest.fixture
def loaded(project: Project) -> Project:
    """A ledger refilled from three recorded calls."""
    project.write("calls.parquet", artifacts.CALLS, CALLS)
    assert project.ok("ledger", "load", "calls.parquet") == "calls.parquet: 3 new of 3\n"
    return project


def test_loading_again_adds_nothing(loaded: Project) -> None:
    assert loaded.ok("ledger", "load", "calls.parquet", "calls.parquet") == "calls.parquet: 0 new of 3\n" * 2


def test_a_file_that_holds_no_calls_is_refused(project: Project) -> None:
    expected = "arena: data/corpus.parquet: holds corpus, not calls; delete it and run again"
    assert refusal(project, "ledger", "load", "data/corpus.parquet") == expected


def test_stats_add_up_per_endpoint(loaded: Project, tmp_path: Path) -> None:
    assert loaded.ok("ledger", "stats").splitlines() == [
        f"ledger: {tmp_path}/ledger.sqlite",
        "http://other/v1: 1 call, 10 tokens in, 5 out, 0.5 s",
        "http://server/v1: 2 calls, 30 tokens in, 10 out, 1.0 s",
    ]


def test_show_prints_request_and_reply_of_every_call_that_begins_so(loaded: Project) -> None:
    shown = loaded.ok("ledger", "show", "aa")
    assert [line for line in shown.splitlines() if line.startswith(("aa", "bb"))] == [
        "aa11: 10 tokens in, 5 out, 0.50 s",
        "aa22: 20 tokens in, 5 out, 0.50 s",
    ]
    for text in ('"content": "Où est aa22?"', '"content": "là"', '"base_url": "http://server/v1"'):
        assert text in shown


def test_show_of_an_unknown_key_is_refused(loaded: Project, tmp_path: Path) -> None:
    expected = f"arena: {tmp_path}/ledger.sqlite: no call has a key that begins with 'cc'"
    assert refusal(loaded, "ledger", "show", "cc") == expected


def test_prune_forgets_what_is_older_and_keeps_the_rest(loaded: Project, tmp_path: Path) -> None:
    ledger = sqlite3.connect(tmp_path / "ledger.sqlite")
    with ledger:
        ledger.execute("UPDATE calls SET created = datetime('now', '-3 days') WHERE key LIKE 'aa%'")
    ledger.close()
    assert loaded.ok("ledger", "prune", "--days", "4") == "0 calls forgotten\n"
    assert loaded.ok("ledger", "prune", "--days", "2.5") == "2 calls forgotten\n"
    assert "http://other/v1: 1 call" in loaded.ok("ledger", "stats")


def test_a_replay_from_a_refilled_ledger_asks_nothing(project: Project, stub: Stub, tmp_path: Path) -> None:
    project.point_at(stub.url)
    project.ok("run", "no_retrieval", "none")
    elsewhere = str(tmp_path / "elsewhere.sqlite")
    project.ok("ledger", "load", "data/runs/no_retrieval/none/calls.parquet", ARENA_LEDGER=elsewhere)
    project.ok("run", "no_retrieval", "none", ARENA_LEDGER=elsewhere)
    assert len(stub.requests) == len(QUESTIONS)


# Parameters that change, data that is not there


def test_composing_for_a_folder_that_is_not_there_is_refused_and_keeps_the_parameters(small_project: Project) -> None:
    before = (small_project.folder / "params.yaml").read_bytes()
    expected = "arena: /nowhere/Corpus.json: missing; the folder must hold Corpus.json and Question.json"
    assert refusal(small_project, "compose", "dataset=folder", "dataset.path=/nowhere") == expected
    assert (small_project.folder / "params.yaml").read_bytes() == before


def test_a_stage_whose_parameters_changed_meanwhile_writes_nothing(
    small_project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rag_arena.cli.common import params_in_force, save

    monkeypatch.chdir(small_project.folder)
    params_in_force()
    made = artifacts.table(artifacts.SAMPLE, [])
    save(tmp_path / "first.parquet", made)
    with Path("params.yaml").open("a") as file:
        file.write("# edited\n")
    with pytest.raises(ArenaError, match=r"^params\.yaml: changed while the stage was at work; nothing was written, run again$"):
        save(tmp_path / "second.parquet", made)
    assert [path.name for path in tmp_path.glob("*.parquet")] == ["first.parquet"]


def test_the_title_is_about_the_results_and_not_about_parameters_that_moved_on(finished: Project) -> None:
    text = (finished.folder / "params.yaml").read_text()
    try:
        (finished.folder / "params.yaml").write_text(text.replace("model: stub", "model: another"))
        assert "questions, stub" in finished.ok("leaderboard")
    finally:
        (finished.folder / "params.yaml").write_text(text)
