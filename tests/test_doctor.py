"""Every finding of `arena doctor`, well and ill."""

import importlib.metadata
import importlib.util
import math
import os
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from rag_arena import doctor, layout
from rag_arena.doctor import Finding, examine
from rag_arena.retrieval import server
from rag_arena.sources import labels
from tests.disk import fill, protect
from tests.project import DATASET, QUESTIONS, ROOT, Project, lines, question_rows
from tests.qdrantstub import VERSION, serve_qdrant
from tests.servedstub import DIMENSIONS, served, served_embedder, served_reranker, tei
from tests.stub import REFUSALS, VERDICTS, Answer, Stub, raw_completion, sensible, unused_url, with_json
from tests.webstub import always_searching, searxng
from tests.wire import GROQ
from tests.wire import OPENAI as OPENAI_SERVER

MODELS = ("llm", "small_llm", "judge.llm")
OPENAI = importlib.metadata.version("openai")


@pytest.fixture
def placed(project: Project, stub: Stub, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project that lacks nothing, in which this process stands."""
    project.point_at(stub.url)
    project.change({"sample.evaluation": len(QUESTIONS), "sample.calibration": 0})
    project.change({f"{llm}.endpoint.top_logprobs": len(VERDICTS) for llm in ("llm", "small_llm", "judge.llm")})
    (project.folder / "requirements.lock").write_text(f"openai=={OPENAI} \\\n    --hash=sha256:00\n")
    monkeypatch.chdir(project.folder)
    monkeypatch.setattr(doctor, "FREE_GB", 0.0)
    return project


@pytest.fixture
def at(placed: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """The same, without composing its parameters anew to see what differs, which is most of doctor's time."""
    monkeypatch.setattr(doctor, "drift", lambda *_: [])
    return placed


def findings() -> dict[str, Finding]:
    return {finding.subject: finding for finding in examine(Path("requirements.lock"))}


def only_ill(subject: str) -> str:
    """What is wrong with the one thing that is."""
    found = findings()
    assert [finding.subject for finding in found.values() if not finding.well] == [subject]
    return found[subject].detail


def test_where_all_is_well_everything_is_named(placed: Project, stub: Stub, tmp_path: Path) -> None:
    found = findings()
    assert all(finding.well for finding in found.values())
    details = {subject: finding.detail for subject, finding in found.items()}
    assert "GB free at" in details.pop("disk")
    assert details == {
        "packages": "1 package as pinned",
        "ledger": f"{tmp_path}/ledger.sqlite: 0 calls",
        "dvc": "nothing left of a killed run",
        "configuration": details["configuration"],
        "dataset": f"{DATASET}: 4 documents, 4 questions",
        "labels": "data/labels.csv: 0 labels",
        "sample": "4 questions to evaluate on, 0 to calibrate on",
        "embedder": "minilm answers with 384 dimensions",
        "reranker": "maxsim gives 1.00 to a passage that answers and 0.00 to one that does not",
        "store": "filled in memory by every process",
        "model": f"stub at {stub.url} answers",
        "model, log-probabilities": "the 12 likeliest tokens; verdicts are probabilities",
        "model, structured output": "json_schema is obeyed",
        "model, context": "the server does not tell",
    }
    assert details["configuration"].startswith("3 cells (no_retrieval-none, vanilla-dense, self_corrective-dense); differs from")


def test_the_command_ends_with_status_0_when_all_is_well_and_1_when_not(at: Project, stub: Stub) -> None:
    program = (sys.executable, "-c", "from rag_arena import cli, doctor; doctor.FREE_GB = 0.0; cli.main()")
    done = at.arena("doctor", program=program)
    assert (done.returncode, done.stderr) == (0, "")
    assert {line.split()[0] for line in done.stdout.splitlines()} == {"ok"}
    done = at.arena("doctor", program=program, OPENAI_API_KEY=None)
    assert (done.returncode, done.stderr) == (1, "")
    lacks = "needs a key; set OPENAI_API_KEY (any word for a server without keys)"
    assert f"MEND  model: {stub.url}: {lacks}" in done.stdout.splitlines()


def told(at: Project, **environment: str | None) -> list[str]:
    """What the command says is to be mended; it ends with status 1."""
    done = at.arena("doctor", **environment)
    assert (done.returncode, done.stderr) == (1, "")
    return [line.removeprefix("MEND  ") for line in done.stdout.splitlines() if line.startswith("MEND")]


def test_the_command_names_each_mistake_of_a_models_endpoint(at: Project, stub: Stub) -> None:
    url = stub.url
    lacks = "needs a key; set OPENAI_API_KEY (any word for a server without keys)"
    assert told(at, OPENAI_API_KEY=None) == [f"model: {url}: {lacks}"]
    stub.behave = OPENAI_SERVER.behaviour(stub)
    at.change({f"{llm}.endpoint.model": "gpt-4o-mni" for llm in MODELS})
    assert told(at) == [f"model: {url}: refuses the key (401); check OPENAI_API_KEY"]
    nearest = "gpt-4o-mini, gpt-4.1-mini, gpt-4o, o4-mini, text-embedding-3-small"
    absent = f"{url}: has no model 'gpt-4o-mni'; set llm.endpoint.model; the nearest it has: {nearest}"
    assert told(at, OPENAI_API_KEY=OPENAI_SERVER.key) == [f"model: {absent}"]
    at.point_at(f"{url}/v2")
    assert told(at, OPENAI_API_KEY=OPENAI_SERVER.key) == [
        f"model: {url}/v2: 404; check llm.endpoint.base_url and llm.endpoint.model (gpt-4o-mni)"
    ]


def test_the_command_names_a_server_without_log_probabilities(at: Project, stub: Stub) -> None:
    stub.behave = GROQ.behaviour(stub)
    at.change({f"{llm}.endpoint.model": GROQ.model for llm in MODELS})
    refused = "400 `logprobs` is not supported with this model; set llm.endpoint.top_logprobs to what it allows, 0 for none"
    assert told(at, OPENAI_API_KEY=GROQ.key) == [f"model, log-probabilities: {stub.url}: {refused}"]


def test_the_command_names_a_vector_store_that_is_down(at: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_PAUSES_S", ())
    at.change({"store": {"backend": "server", "url": (url := unused_url().removesuffix("/v1")), "api_key_env": ""}})
    [line] = told(at)
    assert re.fullmatch(rf"store: {url}: nobody answers \(.+\); start Qdrant or mend store\.url", line)


def test_a_vector_store_that_answers_is_named_with_its_version(at: Project) -> None:
    with serve_qdrant() as qdrant:
        at.change({"store": {"backend": "server", "url": qdrant.url, "api_key_env": ""}})
        assert findings()["store"] == Finding("store", True, f"Qdrant {VERSION} at {qdrant.url} answers")


def test_a_vector_store_that_hangs_is_asked_once_and_not_for_long(at: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "DEADLINE_S", 1)
    with serve_qdrant() as qdrant:
        at.change({"store": {"backend": "server", "url": qdrant.url, "api_key_env": ""}})
        qdrant.refuse = lambda _: time.sleep(1.2)
        assert only_ill("store") == f"{qdrant.url}: no reply within 1 s; give the server more memory or processors"
        assert len(qdrant.asked) == 1


def test_a_search_engine_is_asked_where_a_strategy_looks_on_the_web(at: Project, stub: Stub) -> None:
    engine = stub.url.removesuffix("/v1")
    at.change({"strategy.corrective": always_searching(stub), "grid.strategies": ["corrective"]})
    stub.behave = lambda body: searxng("river") if "q" in body else sensible(body)
    assert findings()["web"].detail == f"searxng at {engine} finds something"
    stub.behave = lambda body: with_json({}, 403) if "q" in body else sensible(body)
    assert only_ill("web").startswith(f"{engine}/search: 403; allow the format json in the instance's settings.yml")


def test_the_command_names_a_full_disk(at: Project, small_disk: Callable[[int], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "FREE_GB", 1e-6)
    disk = small_disk(64)
    layout.RESULTS.symlink_to(disk, target_is_directory=True)
    fill(disk)
    assert told(at) == ["disk: results: 0.0 GB free, 1e-06 are advised; free space"]


def test_the_command_names_a_ledger_that_cannot_be_written(at: Project, small_disk: Callable[[int], Path]) -> None:
    disk = small_disk(64)
    protect(disk)
    ledger = disk / "ledger.sqlite"
    [line] = told(at, ARENA_LEDGER=str(ledger))
    mend = "mend its folder's rights or space, or name another file in ARENA_LEDGER"
    assert line == f"ledger: {ledger}: the ledger cannot be used (unable to open database file); {mend}"


def test_the_projects_own_lock_pins_every_package_it_names() -> None:
    named = [line.split()[0] for line in (ROOT / "requirements.lock").read_text().splitlines() if line[:1].isalpha()]
    assert all(doctor._PINNED.match(name) for name in named)


# Packages


def test_a_package_of_another_version_is_told(at: Project) -> None:
    Path("requirements.lock").write_text("openai==0.0.1 \\\n")
    expected = f"1 package not as in requirements.lock (openai {OPENAI} instead of 0.0.1); delete .venv and run `make setup`"
    assert only_ill("packages") == expected


def test_a_package_that_is_absent_is_told(at: Project) -> None:
    Path("requirements.lock").write_text("no-such-package==1.0 \\\n")
    assert "(no-such-package absent instead of 1.0)" in only_ill("packages")


def test_a_package_for_another_platform_is_passed_over(at: Project) -> None:
    Path("requirements.lock").write_text(f"colorama==0.0.1 ; sys_platform == 'win32' \\\nopenai=={OPENAI} \\\n")
    assert findings()["packages"] == Finding("packages", True, "1 package as pinned")


def test_a_missing_lock_is_told(at: Project) -> None:
    Path("requirements.lock").unlink()
    assert only_ill("packages") == "requirements.lock: missing; run from the project's folder"


# Disk and ledger


def test_too_little_free_space_is_told(at: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "FREE_GB", 1e9)
    assert only_ill("disk").endswith("GB free, 1e+09 are advised; free space")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_is_told(at: Project) -> None:
    Path("data").chmod(0o500)
    detail = only_ill("disk")
    Path("data").chmod(0o700)
    assert detail == "data: cannot be written (Permission denied); mend the rights"


def test_a_ledger_that_cannot_be_made_is_told(at: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ARENA_LEDGER", str(tmp_path / "file/in/ledger.sqlite"))
    assert only_ill("ledger").endswith("the ledger's folder cannot be made (Not a directory); set ARENA_LEDGER")


def test_a_corrupt_ledger_is_told(at: Project, tmp_path: Path) -> None:
    (tmp_path / "ledger.sqlite").write_bytes(b"no database at all" * 100)
    assert only_ill("ledger").startswith(
        f"{tmp_path}/ledger.sqlite: the ledger is corrupt (file is not a database); move it away"
    )


@pytest.mark.parametrize("torn", ["", '{"wri'])
def test_a_table_of_claims_that_a_kill_has_torn_is_told(at: Project, torn: str) -> None:
    Path(".dvc/tmp").mkdir(parents=True)
    Path(".dvc/tmp/rwlock").write_text(torn)
    expected = ".dvc/tmp/rwlock: DVC was killed while writing it; `snakemake --cores 1` mends it, or delete it"
    assert only_ill("dvc") == expected


# Configuration and data


def test_parameters_that_break_the_schema_are_told_and_what_depends_on_them_is_not_looked_at(at: Project) -> None:
    at.change({"sample.evalution": 3})
    assert only_ill("configuration") == "params.yaml: unknown key sample.evalution; did you mean evaluation?"
    assert list(findings()) == ["packages", "disk", "ledger", "dvc", "configuration"]


def test_a_strategys_unknown_setting_is_told(at: Project) -> None:
    at.change({"strategy.vanilla.kk": 3})
    assert only_ill("configuration") == "params.yaml: unknown key strategy.vanilla.kk; did you mean k?"


def test_missing_parameters_are_told(at: Project) -> None:
    Path("params.yaml").unlink()
    assert only_ill("configuration") == "params.yaml: missing; make it with `arena compose` in the project's folder"


def test_an_experiment_that_does_not_exist_is_told(placed: Project) -> None:
    placed.change({"experiment": "nowhere"})
    assert "nowhere" in only_ill("configuration")


def test_parameters_as_composed_do_not_differ(placed: Project) -> None:
    Path("data").mkdir(exist_ok=True)
    Path("data/demo").symlink_to(ROOT / "data/demo")
    placed.ok("compose")
    detail = findings()["configuration"].detail
    assert "differs" not in detail
    assert yaml.safe_load(Path("params.yaml").read_text())["experiment"] == "demo"


def test_a_missing_dataset_is_told(at: Project) -> None:
    at.change({"dataset.path": "data/nowhere"})
    assert only_ill("dataset").startswith("data/nowhere/Corpus.json: missing; the folder must hold")


def test_supporting_facts_that_fit_no_document_are_counted(at: Project) -> None:
    rows = [{**row, "supporting_facts": [*row["supporting_facts"], {"title": "Oder"}]} for row in question_rows()]
    (Path(DATASET) / "Question.json").write_text(lines(rows))
    assert findings()["dataset"].detail == f"{DATASET}: 4 documents, 4 questions, 4 supporting facts unresolved"


# What later stages would refuse


def test_missing_labels_are_told(at: Project) -> None:
    Path("data/labels.csv").unlink()
    told = "data/labels.csv: missing; make it with the line question_id,doc_id,question,title,score,label"
    found = findings()
    assert found["labels"] == Finding("labels", False, told)


@pytest.mark.parametrize(
    ("row", "what"),
    [(labels.Row("q9", "d1", "", "", "", "yes"), "question 'q9'"), (labels.Row("q1", "d9", "", "", "", "no"), "document 'd9'")],
)
def test_a_label_of_what_the_dataset_does_not_have_is_told(at: Project, row: labels.Row, what: str) -> None:
    Path("data/labels.csv").write_text(labels.text([row]))
    assert only_ill("labels") == f"data/labels.csv: labels {what}, which the dataset does not have; delete the row"


def test_a_sample_larger_than_the_data_is_told(at: Project) -> None:
    at.change({"sample.evaluation": 5})
    assert only_ill("sample").startswith(
        "params.yaml: sample.evaluation asks for 5 questions, but 4 are in the dataset; lower it"
    )


def test_a_threshold_that_no_question_can_calibrate_is_told(at: Project) -> None:
    at.change({"strategy.self_corrective.threshold": "auto"})
    told = "strategy.self_corrective.threshold cannot be calibrated in dense: no retrieval of the calibration split is labelled"
    assert only_ill("sample").startswith(f"params.yaml: {told}; ")
    at.change({"sample.evaluation": 3, "sample.calibration": 1})
    assert findings()["sample"].detail == "3 questions to evaluate on, 1 to calibrate on"


def test_a_percentile_of_nothing_is_told(at: Project) -> None:
    at.change({"strategy.self_corrective.threshold": {"percentile": 10}})
    assert "the calibration split has no retrieval; raise sample.calibration" in only_ill("sample")


def test_a_router_that_no_question_can_train_is_told(at: Project) -> None:
    adaptive = {"router": "trained", "k": 3, "max_tokens": 9, "max_steps": 2, "max_paragraphs": 6, "step_tokens": 9}
    at.change({"strategy.adaptive": adaptive, "grid.strategies": ["adaptive"]})
    at.change({"sample.evaluation": 3, "sample.calibration": 1})
    told = "params.yaml: strategy.adaptive.router cannot be trained in dense: no calibration question has a silver label"
    assert only_ill("sample").startswith(told)


# Models


def test_the_embedded_models_file_is_looked_for(at: Project) -> None:
    at.ok("compose", "llm=embedded", "llm@judge.llm=embedded", "dataset=folder", f"dataset.path={DATASET}")
    assert findings()["model"].detail == "smollm2-135m-instruct: SmolLM2-135M-Instruct.Q4_1.gguf is in place"


def test_a_missing_key_is_told_by_its_variable(at: Project, stub: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    assert only_ill("model") == f"{stub.url}: needs a key; set OPENAI_API_KEY (any word for a server without keys)"
    assert stub.requests == []


@pytest.mark.parametrize(("status", "mend"), REFUSALS)
def test_a_server_that_refuses_key_or_model_is_told(at: Project, stub: Stub, status: int, mend: str) -> None:
    stub.behave = lambda _: with_json({"error": {"message": "stub-key is no good"}}, status)
    assert only_ill("model") == f"{stub.url}: {mend}"


def test_a_field_that_the_server_does_not_know_is_told_with_the_key_to_change(at: Project, stub: Stub) -> None:
    stub.behave = lambda _: with_json({"error": {"message": "Unrecognized request argument supplied: temperature"}}, 400)
    assert only_ill("model").endswith("; set llm.endpoint.temperature to null")


def test_an_url_where_nobody_answers_is_told(at: Project) -> None:
    at.point_at(url := unused_url())
    detail = only_ill("model")
    assert detail.startswith(f"{url}: nobody answers (")
    assert detail.endswith("; start the server or mend llm.endpoint.base_url")


@pytest.mark.parametrize(
    "answer",
    [
        Answer(content=b"<html>It works!</html>", headers={"content-type": "text/html"}),
        Answer(content=b"<html>It works!</html>", headers={"content-type": "application/json"}),
        with_json({"error": {"message": "overloaded"}}),
        with_json([1]),
        Answer(),
    ],
    ids=["a page", "a page called JSON", "an error object", "a list", "nothing"],
)
def test_an_url_where_something_else_answers_is_told(at: Project, stub: Stub, answer: Answer) -> None:
    stub.behave = lambda _: answer
    assert only_ill("model") == f"{stub.url}: 200 without a chat completion; mend llm.endpoint.base_url"


@pytest.mark.parametrize(("section", "subject"), [("small_llm", "small model"), ("judge.llm", "judge")])
def test_the_small_model_and_the_judge_are_asked_for_themselves_where_they_are_others(
    at: Project, stub: Stub, section: str, subject: str
) -> None:
    at.change({f"{section}.endpoint.model": "absent"})
    stub.behave = lambda body: with_json({}, 404) if body.get("model") == "absent" else sensible(body)
    expected = f"{stub.url}: has no model 'absent'; set {section}.endpoint.model; the nearest it has: stub"
    assert only_ill(subject) == expected
    assert sum(body.get("model") == "absent" for body in stub.requests) == 1


def test_a_judge_is_not_asked_for_log_probabilities(at: Project, stub: Stub) -> None:
    at.change({"judge.llm.endpoint.model": "another"})
    assert [subject for subject in findings() if subject.startswith("judge")] == [
        "judge",
        "judge, structured output",
        "judge, context",
    ]


def test_a_server_without_log_probabilities_is_told_with_the_key_to_set(at: Project, stub: Stub) -> None:
    stub.behave = lambda body: sensible({name: value for name, value in body.items() if name != "logprobs"})
    then = "then verdicts are asked for in JSON, with probability 0 or 1; until then each costs a request more"
    assert only_ill("model, log-probabilities") == f"{stub.url}: gives none; set llm.endpoint.top_logprobs to 0: {then}"


def test_an_url_without_its_v1_is_told(at: Project, stub: Stub) -> None:
    at.point_at(root := stub.url.removesuffix("/v1"))
    stub.behave = lambda body: sensible(body) if "path" in body else with_json({"detail": "Not Found"}, 404)
    assert only_ill("model") == f"{root}: 404; set llm.endpoint.base_url to {root}/v1"


NATIVE = {
    "variant": "native",
    **dict.fromkeys(("k", "segments", "segment_tokens", "beam_width", "max_tokens"), 3),
    "retrieve": "adaptive",
    "threshold": 0.2,
    "form": "short",
    "grader": "llm",
    "relevance": "auto",
    "weights": {"relevant": 1.0, "supported": 1.0, "useful": 0.5},
}


def test_a_native_variant_is_told_whether_the_server_continues_raw_text(at: Project, stub: Stub) -> None:
    at.change({"strategy.self_rag": NATIVE, "grid.strategies": ["self_rag"]})
    stub.behave = lambda body: raw_completion([("Yes", {"Yes": 0.5, "No": 0.25})]) if "prompt" in body else sensible(body)
    assert findings()["model, raw completions"].detail == "/completions gives the 2 likeliest tokens"
    stub.behave = lambda body: with_json({}, 404) if "prompt" in body else sensible(body)
    instead = "set strategy.self_rag.variant to prompted, or serve the checkpoint with vLLM"
    assert only_ill("model, raw completions") == f"{stub.url}: has no /completions; {instead}"


def test_a_recorded_reply_does_not_hide_a_wrong_key(at: Project, stub: Stub) -> None:
    assert findings()["model"].well
    stub.behave = lambda _: with_json({}, 401)
    assert "refuses the key" in only_ill("model")


# Embedders and rerankers over HTTP


def _serve_retrieval(at: Project, stub: Stub) -> None:
    stub.behave = served
    at.change({"embedder": served_embedder(stub.url), "reranker": served_reranker(stub.url)})


def test_an_embedder_and_a_reranker_over_http_are_asked_past_the_ledger(at: Project, stub: Stub) -> None:
    _serve_retrieval(at, stub)
    for _ in range(2):
        found = findings()
        assert found["embedder"].detail == f"stub-embedder answers with {DIMENSIONS} dimensions"
        # 4 and 0 words are shared, and a logit is their number less 1.5
        good, other = (1 / (1 + math.exp(1.5 - shared)) for shared in (4, 0))
        assert found["reranker"].detail == (
            f"stub-reranker gives {good:.2f} to a passage that answers and {other:.2f} to one that does not"
        )
    assert sum("texts" in request for request in stub.requests) == 2


def test_an_embedder_with_other_dimensions_is_told(at: Project, stub: Stub) -> None:
    _serve_retrieval(at, stub)
    at.change({"embedder.dimensions": 1024})
    said = f"{stub.url}/embeddings: 200 without embeddings (vectors of length {DIMENSIONS}, embedder.dimensions is 1024)"
    assert only_ill("embedder").startswith(said)


def test_a_reranker_that_gives_probabilities_where_logits_are_expected_is_told(at: Project, stub: Stub) -> None:
    _serve_retrieval(at, stub)
    stub.behave = lambda body: tei(body | {"raw_scores": False}) if "texts" in body else served(body)
    message = only_ill("reranker")
    assert message.endswith("look like probabilities; set reranker.scores to probabilities")


@pytest.mark.parametrize("score", [0.0, -1.0], ids=["the same", "less"])
def test_a_reranker_that_prefers_no_passage_that_answers_is_told(at: Project, stub: Stub, score: float) -> None:
    _serve_retrieval(at, stub)
    rows = [{"index": 0, "score": score - 2}, {"index": 1, "score": -2.0}]
    stub.behave = lambda body: with_json(rows) if "texts" in body else served(body)
    found = re.escape(f"gives {1 / (1 + math.exp(2 - score)):.2f} to a passage that answers and 0.12 to one that does not")
    assert re.fullmatch(f"stub-reranker {found}; is it a reranker\\?", only_ill("reranker"))


def test_a_server_that_hangs_is_asked_once_and_not_for_long(at: Project, stub: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "DEADLINE_S", 0.1)
    _serve_retrieval(at, stub)
    stub.behave = lambda body: served(body) if "messages" in body or "path" in body else Answer(pause_s=0.3)
    found = findings()
    for subject, path in (("embedder", "/v1/embeddings"), ("reranker", "/rerank")):
        assert "no complete reply within 0.1 s; wait until it has loaded its model" in found[subject].detail
        assert stub.paths.count(path) == 1


def test_on_a_terminal_what_is_waited_for_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    doctor._finding("embedder", lambda: "answers")
    assert "embedder" in capsys.readouterr().err
    monkeypatch.delenv("TTY_COMPATIBLE")
    doctor._finding("embedder", lambda: "answers")
    assert capsys.readouterr().err == ""


def test_models_that_are_to_run_here_without_their_packages_are_told(at: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr("importlib.util.find_spec", lambda name, *rest: None if name == "FlagEmbedding" else find(name, *rest))
    at.change({"embedder": yaml.safe_load((ROOT / "conf/embedder/bge_m3.yaml").read_text())})
    assert findings()["embedder"].detail.startswith("params.yaml: embedder needs FlagEmbedding")
