"""What the user can get wrong, and what the world can: each ends the real command in one line that says what to mend."""

import os
import re
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import openai
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rag_arena import artifacts
from rag_arena.errors import EndpointError
from rag_arena.llm.refusals import explain
from rag_arena.params import Endpoint
from tests.disk import fill
from tests.project import DATASET, QUESTIONS, ROOT, Project, corpus_rows, lines, question_rows
from tests.stub import REFUSALS, Answer, Stub, completion, sensible, unused_url, with_json

FLOOR = ("run", "no_retrieval", "none")


def refused(project: Project, *arguments: str, **environment: Any) -> str:
    """The one line in which a command refuses; it wrote nothing."""
    before = project.listing()
    done = project.arena(*arguments, **environment)
    assert done.returncode == 1, done.stderr
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert done.stderr.startswith("arena: ")
    assert project.listing() == before
    return str(done.stderr).strip()


# Parameters


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"sample.evalution": 3}, "arena: params.yaml: unknown key sample.evalution; did you mean evaluation?"),
        ({"strategy.vanilla.kk": 3}, "arena: params.yaml: unknown key strategy.vanilla.kk; did you mean k?"),
        ({"sample.seed": "seven"}, "arena: params.yaml: sample.seed: Input should be a valid integer (got 'seven')"),
        ({"grid.strategies": ["vanila"]}, "arena: params.yaml: grid.strategies: 'vanila' has no settings; did you mean vanilla?"),
        ({"grid.modes": ["dens"]}, "arena: params.yaml: grid.modes: 'dens' has no settings; did you mean dense?"),
    ],
)
def test_a_wrong_parameter_is_named_with_its_mend(project: Project, changes: dict[str, Any], line: str) -> None:
    project.change(changes)
    assert refused(project, "sample") == line


def test_a_strategy_that_the_project_does_not_have_is_refused(project: Project) -> None:
    project.change({"strategy": {"vanila": {"k": 3, "max_tokens": 9}}, "grid.strategies": ["vanila"]})
    assert refused(project, "sample") == "arena: strategy 'vanila' does not exist; did you mean vanilla?"


@pytest.mark.parametrize("cell", [("vanila", "dense"), ("vanilla", "sparse"), ("no_retrieval", "dense")])
def test_a_cell_that_the_grid_does_not_have_is_refused_with_those_it_has(project: Project, cell: tuple[str, str]) -> None:
    line = refused(project, "run", *cell)
    assert line.startswith(f"arena: params.yaml: the grid has no cell {'-'.join(cell)}; it has no_retrieval-none, vanilla-dense,")


def test_an_experiment_that_does_not_exist_is_refused_with_those_that_do(project: Project) -> None:
    assert refused(project, "compose", "experiment=smok") == "arena: conf/experiment: no option 'smok'; did you mean smoke?"
    assert refused(project, "compose", "experiment=nonsense").startswith(
        "arena: conf/experiment: no option 'nonsense'; known: demo, "
    )


def test_a_project_without_parameters_is_told_how_to_make_them(project: Project) -> None:
    (project.folder / "params.yaml").unlink()
    assert refused(project, "sample") == "arena: params.yaml: missing; make it with `arena compose` in the project's folder"


@pytest.mark.parametrize(
    "arguments", [["runn"], ["run"], ["run", "vanilla"], ["leaderboard", "--wide"], ["ledger", "prune", "--days", "-1"]]
)
def test_a_command_that_is_wrongly_written_ends_with_status_2_and_its_usage(project: Project, arguments: list[str]) -> None:
    before = project.listing()
    done = project.arena(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("Usage: ")
    assert "Traceback" not in done.stderr
    assert project.listing() == before


# Data


def _first_changed(rows: list[dict[str, Any]], **changes: Any) -> str:
    return lines([{**rows[0], **changes}, *rows[1:]])


@pytest.mark.parametrize(
    ("file", "text", "line"),
    [
        ("Corpus.json", lines(corpus_rows()[:1]) + "{'id': 1}\n", r"Corpus\.json:2: not JSON \(.+\)"),
        ("Corpus.json", b'{"id": "caf\xe9"}\n', r"Corpus\.json: byte 11 is not UTF-8; convert the file to UTF-8"),
        ("Corpus.json", lines([*corpus_rows(), corpus_rows()[0]]), r"Corpus\.json:5: document id 'd1' occurs twice; .*unique"),
        ("Corpus.json", _first_changed(corpus_rows(), context=" "), r"Corpus\.json:1: context or text is missing or empty"),
        ("Corpus.json", "", r"Corpus\.json: no documents; the file is empty"),
        (
            "Question.json",
            _first_changed(question_rows(), supporting_facts=[{"doc_id": "d9"}]),
            r"Question\.json:1: gold document 'd9' is not in the corpus",
        ),
        (
            "Question.json",
            _first_changed(question_rows(), supporting_facts=[]),
            r"Question\.json:1: question 'q1' has no supporting_facts; recall needs gold documents",
        ),
    ],
)
def test_a_dataset_with_a_fault_is_refused_by_file_and_line(project: Project, file: str, text: str | bytes, line: str) -> None:
    (project.folder / DATASET / file).write_bytes(text if isinstance(text, bytes) else text.encode())
    assert re.fullmatch(f"arena: {DATASET}/{line}", refused(project, "download"))


def test_an_array_that_is_cut_is_refused_by_the_line_it_ends_in(project: Project) -> None:
    (project.folder / DATASET / "Corpus.json").write_text('[{"id": "d1", "context": "The Rhine"}\n\n')
    assert refused(project, "download").startswith(f"arena: {DATASET}/Corpus.json:1: not JSON (")


def test_a_folder_in_place_of_a_file_is_refused(project: Project) -> None:
    (project.folder / DATASET / "Question.json").unlink()
    (project.folder / DATASET / "Question.json").mkdir()
    expected = f"arena: {DATASET}/Question.json: a folder, where a file should be; put the file in its place"
    assert refused(project, "download") == expected


def test_a_dataset_that_is_not_there_is_refused(project: Project) -> None:
    project.change({"dataset.path": "data/nowhere"})
    assert refused(project, "download").startswith("arena: data/nowhere/Corpus.json: missing; the folder must hold")


def test_a_sample_larger_than_the_data_is_refused_with_how_many_there_are(project: Project) -> None:
    project.change({"sample.evaluation": 5})
    asked = "sample.evaluation asks for 5 questions, but 4 are in the dataset"
    mend = 'lower it (OVERRIDES="sample.evaluation=4" with `make run`)'
    assert refused(project, "sample") == f"arena: params.yaml: {asked}; {mend}"


# Artifacts


def test_a_missing_artifact_is_refused_with_the_way_to_make_it(project: Project) -> None:
    (project.folder / "data/questions.parquet").unlink()
    assert refused(project, *FLOOR).startswith(
        "arena: data/questions.parquet: missing; run the stage that makes it, or `snakemake"
    )


def test_half_an_artifact_is_refused(project: Project) -> None:
    path = project.folder / "data/questions.parquet"
    path.write_bytes(path.read_bytes()[:-100])
    line = refused(project, *FLOOR)
    assert re.fullmatch(r"arena: data/questions\.parquet: not a whole Parquet file \(.+\); delete it and run again", line)


def test_a_foreign_parquet_file_is_refused(project: Project) -> None:
    pq.write_table(pa.table({"question": ["Where?"]}), project.folder / "data/questions.parquet")
    expected = "arena: data/questions.parquet: holds a foreign table, not questions; delete it and run again"
    assert refused(project, *FLOOR) == expected


def test_an_index_by_another_embedder_is_refused(project: Project) -> None:
    project.change({"embedder.max_tokens": 8})
    line = refused(project, "retrieve", "dense")
    assert re.fullmatch(r"arena: data/index\.parquet: built by another embedder \(.+\); run `dvc repro index`", line)


# Endpoints that refuse every request alike: the cell stops at its first question


def test_nobody_listening_is_told_by_url(project: Project) -> None:
    url = unused_url()
    project.point_at(url)
    expected = rf"arena: {url}: nobody answers \(.+\); start the server or mend llm\.endpoint\.base_url"
    assert re.fullmatch(expected, refused(project, *FLOOR))


def test_a_missing_key_is_told_by_its_variable(project: Project, stub: Stub) -> None:
    project.point_at(stub.url)
    expected = f"arena: {stub.url}: needs a key; set OPENAI_API_KEY (any word for a server without keys)"
    assert refused(project, *FLOOR, OPENAI_API_KEY=None) == expected
    assert stub.requests == []


@pytest.mark.parametrize(("status", "mend"), REFUSALS)
def test_a_refusal_of_key_or_model_stops_the_cell_at_its_first_question(
    project: Project, stub: Stub, status: int, mend: str
) -> None:
    stub.behave = lambda body: with_json({"error": {"message": "stub-key is no good"}}, status)
    project.point_at(stub.url)
    project.change({"run.max_failed_share": 1.0})
    assert refused(project, *FLOOR) == f"arena: {stub.url}: {mend}"
    assert len(stub.requests) == 1


def openai_error(message: str, param: str = "", code: str | None = None) -> dict[str, Any]:
    return {"error": {"message": message, "type": "invalid_request_error", "param": param or None, "code": code}}


def extra_forbidden(field: str) -> dict[str, Any]:
    """What Mistral says of a field that it does not know."""
    detail = [{"type": "extra_forbidden", "loc": ["body", field], "msg": "Extra inputs are not permitted", "input": 7}]
    return {"object": "error", "message": {"detail": detail}, "type": "invalid_request_error", "param": None, "code": None}


SCHEMA_OR_NOT = "set judge.llm.endpoint.structured_output to json_object or none"
NEW_LIMIT = openai_error(
    "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
    "max_tokens",
    "unsupported_parameter",
)
ONE_TEMPERATURE = openai_error(
    "Unsupported value: 'temperature' does not support 0.0 with this model. Only the default (1) value is supported.",
    "temperature",
    "unsupported_value",
)
UNKNOWN_SEED = openai_error("Unrecognized request argument supplied: seed")
NO_SCHEMA = openai_error(
    "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model. "
    "Learn more about supported models at the Structured Outputs guide.",
)


@pytest.mark.parametrize(
    ("body", "changes", "mend"),
    [
        (NEW_LIMIT, {}, "set llm.endpoint.max_tokens_key to max_completion_tokens"),
        (ONE_TEMPERATURE, {}, "set llm.endpoint.temperature to null"),
        (UNKNOWN_SEED, {"llm.endpoint.seed": 7}, "set llm.endpoint.seed to null"),
    ],
    ids=["max_tokens", "temperature", "seed"],
)
def test_a_field_that_the_server_does_not_know_stops_the_cell_at_its_first_question(
    project: Project, stub: Stub, body: dict[str, Any], changes: dict[str, Any], mend: str
) -> None:
    stub.behave = lambda _: with_json(body, 400)
    project.point_at(stub.url)
    project.change({**changes, "run.max_failed_share": 1.0})
    assert refused(project, *FLOOR) == f"arena: {stub.url}: 400 {body['error']['message']}; {mend}"
    assert len(stub.requests) == 1


def test_a_judge_that_takes_no_schema_stops_at_its_first_answer(project: Project, stub: Stub) -> None:
    project.point_at(stub.url)
    project.ok(*FLOOR)
    asked = len(stub.requests)
    stub.behave = lambda _: with_json(NO_SCHEMA, 400)
    assert refused(project, "judge", "no_retrieval", "none").endswith(f"; {SCHEMA_OR_NOT}")
    assert all(QUESTIONS[0][1] in prompt or "q1" in prompt for prompt in stub.prompts[asked:])
    assert len(stub.requests) - asked <= 2  # AnswerAccuracy asks its two judges one after the other


FIELDS = {
    "OpenAI, max_tokens": (400, NEW_LIMIT, {}, "set judge.llm.endpoint.max_tokens_key to max_completion_tokens"),
    "OpenAI, temperature": (400, ONE_TEMPERATURE, {}, "set judge.llm.endpoint.temperature to null"),
    "OpenAI, seed": (400, UNKNOWN_SEED, {}, "set judge.llm.endpoint.seed to null"),
    "OpenAI, response_format": (400, NO_SCHEMA, {}, SCHEMA_OR_NOT),
    "OpenAI, its strictness about schemas": (
        400,
        openai_error("Invalid schema for response_format 'Rating': 'additionalProperties' is required to be supplied"),
        {},
        SCHEMA_OR_NOT,
    ),
    "Azure, an old version": (
        400,
        openai_error("response_format value as json_schema is enabled only for api versions 2024-08-01-preview and later"),
        {},
        SCHEMA_OR_NOT,
    ),
    "vLLM, old": (
        400,
        {
            "object": "error",
            "message": "[{'type': 'extra_forbidden', 'loc': ('body', 'max_completion_tokens'), "
            "'msg': 'Extra inputs are not permitted', 'input': 800}]",
            "type": "BadRequestError",
            "param": None,
            "code": 400,
        },
        {"max_tokens_key": "max_completion_tokens"},
        "set judge.llm.endpoint.max_tokens_key to max_tokens",
    ),
    "Mistral, max_completion_tokens": (
        422,
        extra_forbidden("max_completion_tokens"),
        {"max_tokens_key": "max_completion_tokens"},
        "set judge.llm.endpoint.max_tokens_key to max_tokens",
    ),
    "Mistral, seed": (422, extra_forbidden("seed"), {}, "set judge.llm.endpoint.seed to null"),
    "Gemini, a list": (
        400,
        [{"error": {"code": 400, "message": 'Invalid JSON payload received. Unknown name "seed": Cannot find field.'}}],
        {},
        "set judge.llm.endpoint.seed to null",
    ),
    "Groq": (400, openai_error("This model does not support response format `json_schema`."), {}, SCHEMA_OR_NOT),
    "DeepSeek": (400, openai_error("This response_format type is unavailable now"), {}, SCHEMA_OR_NOT),
    "llama.cpp, which calls it an error of its own": (
        500,
        {
            "error": {
                "code": 500,
                "message": 'response_format type must be one of "text" or "json_object", but got: json_schema',
                "type": "server_error",
            }
        },
        {},
        SCHEMA_OR_NOT,
    ),
    "LM Studio": (
        400,
        {"error": "'response_format.type' must be 'json_schema' or 'text'"},
        {"structured_output": "json_object"},
        "set judge.llm.endpoint.structured_output to json_schema or none",
    ),
}
OF_ONE_QUESTION = {
    "OpenAI, context": (
        400,
        openai_error(
            "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens (8904 in the messages, 96 in "
            "the completion). Please reduce the length of the messages or completion.",
            "messages",
            "context_length_exceeded",
        ),
    ),
    "OpenAI, the word invalid in its type alone": (400, openai_error("The prompt was flagged, whatever its temperature.")),
    "vLLM, context": (
        400,
        openai_error(
            "'max_tokens' or 'max_completion_tokens' is too large: 96. This model's maximum context length is 4096 tokens and "
            "your request has 4050 input tokens (96 > 4096 - 4050)."
        ),
    ),
    "vLLM, negative rest": (400, {"object": "error", "message": "max_tokens must be at least 1, got -186.", "code": 400}),
    "llama.cpp, context": (
        400,
        {"error": {"code": 400, "message": "the request exceeds the available context size, try increasing it"}},
    ),
    "overload": (503, {"error": {"message": "The model is overloaded, its seed is growing. Try again."}}),
    "rate limit": (429, openai_error("Rate limit reached; max_tokens is not supported at this tier")),
}


def explained(status: int, body: Any, **changes: Any) -> Exception:
    """The refusal as the client of a real server would raise it, explained."""
    endpoint = Endpoint(**{"kind": "openai", "model": "m", "base_url": "http://server/v1", "seed": 7, **changes})
    reply = httpx2.Response(status, json=body, request=httpx2.Request("POST", "http://server/v1"))
    raised = openai.OpenAI(api_key="none", base_url="http://server/v1")._make_status_error_from_response(reply)
    return explain(raised, endpoint, "judge.llm")


@pytest.mark.parametrize(("status", "body", "changes", "mend"), FIELDS.values(), ids=FIELDS)
def test_in_every_servers_words_a_refused_field_is_fatal_and_the_key_to_change_is_named(
    status: int, body: Any, changes: dict[str, Any], mend: str
) -> None:
    error = explained(status, body, **changes)
    assert isinstance(error, EndpointError)
    assert str(error).startswith(f"http://server/v1: {status} ")
    assert str(error).endswith(f"; {mend}")


@pytest.mark.parametrize(("status", "body"), OF_ONE_QUESTION.values(), ids=OF_ONE_QUESTION)
def test_a_refusal_of_one_question_is_not_taken_for_one_of_a_field(status: int, body: Any) -> None:
    assert not isinstance(explained(status, body), EndpointError)


# Replies that are none: every question fails, and the cell with them


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (Answer(content=b"not json", headers={"content-type": "application/json"}), "200 without a chat completion: not json"),
        (with_json({"error": {"message": "overloaded"}}), r'200 without a chat completion: {"error": {"message": "overloaded"}}'),
        (completion(""), r"stub: an empty reply at generate \(finish_reason stop\); the model had nothing to say"),
        (completion(None, "length"), r"stub: an empty reply at generate \(finish_reason length\); raise max_tokens"),
        (completion("<think>yes 42", "length"), r"stub: only reasoning at generate \(finish_reason length\); raise max_tokens"),
    ],
    ids=["not JSON", "200 with an error", "empty", "null", "only thoughts"],
)
def test_replies_without_an_answer_fail_the_cell_which_quotes_the_first(
    project: Project, stub: Stub, answer: Answer, why: str
) -> None:
    stub.behave = lambda _: answer
    project.point_at(stub.url)
    told = r"no_retrieval-none: 4 of 4 questions failed, over run\.max_failed_share 0\.5; the first, q1: "
    assert re.fullmatch(f"arena: {told}.*{why}", refused(project, *FLOOR))
    assert len(stub.requests) == 4


def test_a_reply_that_drips_past_the_deadline_fails(project: Project, stub: Stub) -> None:
    stub.behave = lambda _: Answer(content=completion("yes").content, drip_s=0.05)
    project.point_at(stub.url)
    project.change({"llm.transport.deadline_s": 0.3})
    mend = "no complete reply in time; raise llm.transport.deadline_s"
    assert refused(project, *FLOOR).endswith(f"; the first, q1: {stub.url}: {mend}")


# Disk and ledger


def test_a_full_disk_is_told_by_the_file_that_could_not_be_written(
    project: Project, stub: Stub, small_disk: Callable[[int], Path]
) -> None:
    project.point_at(stub.url)
    disk = small_disk(64)
    folder = project.folder / "data/runs"
    folder.symlink_to(disk, target_is_directory=True)
    (disk / "no_retrieval/none").mkdir(parents=True)
    fill(disk)
    told = r"cannot be written \(.*No space left on device\); free space or mend the rights"
    assert re.fullmatch(rf"arena: data/runs/no_retrieval/none/answers\.parquet: {told}", refused(project, *FLOOR))
    assert sorted(os.listdir(disk / "no_retrieval/none")) == []


def test_parameters_on_a_full_disk_stay_as_they_were(project: Project, small_disk: Callable[[int], Path]) -> None:
    disk = small_disk(256)
    moved = Project(disk)
    for name, place in (("conf", project.folder / "conf"), ("data", ROOT / "data")):
        (disk / name).symlink_to(place, target_is_directory=True)
    (disk / "params.yaml").write_bytes((project.folder / "params.yaml").read_bytes())
    fill(disk)
    before = moved.listing()
    done = moved.arena("compose", "experiment=smoke")
    assert (done.returncode, moved.listing()) == (1, before)
    assert done.stderr == "arena: params.yaml: cannot be written (No space left on device); free space or mend the rights\n"


def test_a_ledger_on_a_full_disk_is_told_before_anything_is_asked(
    project: Project, stub: Stub, small_disk: Callable[[int], Path]
) -> None:
    project.point_at(stub.url)
    disk = small_disk(64)
    fill(disk)
    line = refused(project, *FLOOR, ARENA_LEDGER=str(disk / "ledger.sqlite"))
    assert re.fullmatch(
        rf"arena: {disk}/ledger\.sqlite: the ledger cannot be used \(.+\); mend its folder's rights or space.*", line
    )
    assert stub.requests == []


def test_a_ledger_whose_disk_fills_up_stops_the_cell_and_pays_for_no_further_call(
    project: Project, stub: Stub, small_disk: Callable[[int], Path]
) -> None:
    stub.behave = lambda _: completion("long " * 100_000)
    project.point_at(stub.url)
    project.change({"llm.transport.max_retries": 5, "run.max_failed_share": 1.0})
    line = refused(project, *FLOOR, ARENA_LEDGER=str(small_disk(256) / "ledger.sqlite"))
    assert re.search(r"ledger\.sqlite: the ledger cannot be used \(.*full.*\); mend its folder's rights or space", line)
    assert len(stub.requests) == 1


def test_a_ledger_under_a_file_is_told_with_the_variable_to_set(project: Project, stub: Stub, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    project.point_at(stub.url)
    line = refused(project, *FLOOR, ARENA_LEDGER=str(tmp_path / "file/in/ledger.sqlite"))
    expected = f"arena: {tmp_path}/file/in/ledger.sqlite: the ledger's folder cannot be made (Not a directory); set ARENA_LEDGER"
    assert line == expected
    assert stub.requests == []


def test_results_that_cannot_be_written_are_told_by_their_path(project: Project, stub: Stub) -> None:
    (project.folder / "data/runs").write_text("a file where a folder should be")
    project.point_at(stub.url)
    line = refused(project, *FLOOR)
    assert re.fullmatch(r"arena: data/runs/no_retrieval/none/answers\.parquet: cannot be written \(.+\); free space or .+", line)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder_is_told_by_the_file_that_could_not_be_written(project: Project) -> None:
    (project.folder / "data").chmod(0o500)
    line = refused(project, "download")
    (project.folder / "data").chmod(0o700)
    assert "data/corpus.parquet: cannot be written (Permission denied)" in line


IMPATIENT = """
import sqlite3, tenacity
from rag_arena.llm import ledger
connect = sqlite3.connect
sqlite3.connect = lambda *places, **options: connect(*places, **{**options, "timeout": 0.2})
ledger._patiently.stop = tenacity.stop_after_delay(0.2)
from rag_arena.cli import main
main()
"""


def test_a_ledger_that_stays_locked_stops_the_cell_and_pays_for_no_further_call(
    project: Project, stub: Stub, tmp_path: Path
) -> None:
    project.point_at(stub.url)
    project.change({"llm.transport.max_retries": 5, "run.max_failed_share": 1.0})
    project.ok("ledger", "stats")
    holder = sqlite3.connect(tmp_path / "ledger.sqlite", isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    line = refused(project, *FLOOR, program=(sys.executable, "-c", IMPATIENT))
    holder.close()
    held = "another process has held it for a minute; end that process and run again"
    assert line == f"arena: {tmp_path}/ledger.sqlite: the ledger cannot be used (database is locked); {held}"
    assert len(stub.requests) == 1


def test_a_corrupt_ledger_is_told_before_anything_is_asked_and_left_as_it_was(
    project: Project, stub: Stub, tmp_path: Path
) -> None:
    junk = b"no database at all" * 100
    (tmp_path / "ledger.sqlite").write_bytes(junk)
    project.point_at(stub.url)
    line = refused(project, *FLOOR)
    assert line.startswith(f"arena: {tmp_path}/ledger.sqlite: the ledger is corrupt (file is not a database); move it away")
    assert stub.requests == []
    assert (tmp_path / "ledger.sqlite").read_bytes() == junk


# One question's failure is not the cell's


def test_a_question_that_is_longer_than_prompts_may_be_fails_alone_and_is_not_sent(project: Project, stub: Stub) -> None:
    project.point_at(stub.url)
    project.change({"llm.endpoint.max_prompt_characters": 16000})
    asked = project.read("data/questions.parquet", artifacts.QUESTIONS)
    project.write("data/questions.parquet", artifacts.QUESTIONS, [{**asked[0], "question": "Where? " * 2900}, *asked[1:]])
    project.ok(*FLOOR)
    rows = project.read("data/runs/no_retrieval/none/answers.parquet", artifacts.ANSWERS)
    assert [row["status"] for row in rows] == ["failed", "answered", "answered", "answered"]
    assert re.fullmatch(
        r"stub: a prompt of 20\d{3} characters, over max_prompt_characters \(16000\); shorten the question, .*", rows[0]["error"]
    )
    assert len(stub.requests) == len(rows) - 1


def test_a_question_that_the_server_finds_too_long_fails_alone(project: Project, stub: Stub) -> None:
    status, body = OF_ONE_QUESTION["vLLM, context"]
    stub.behave = lambda asked: with_json(body, status) if "cheese" in asked["messages"][-1]["content"] else sensible(asked)
    project.point_at(stub.url)
    project.ok(*FLOOR)
    rows = project.read("data/runs/no_retrieval/none/answers.parquet", artifacts.ANSWERS)
    assert [row["status"] for row in rows] == ["answered", "answered", "failed", "answered"]
