"""`arena`: one subcommand per stage, and the tools around them. Paths, clocks and the environment stay here."""

import os

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
for _pool in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_pool] = "1"  # before numpy is imported: more threads change sums in the last bits

import asyncio
import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from rag_arena import artifacts, layout
from rag_arena import compose as composing
from rag_arena.errors import ArenaError
from rag_arena.llm.ledger import Ledger, default_path
from rag_arena.params import NO_MODE, Llm, Params, load
from rag_arena.records import Cell

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, help=__doc__)
ledger_app = typer.Typer(no_args_is_help=True, help="The record of every model call.")
app.add_typer(ledger_app, name="ledger")

Strategy = Annotated[str, typer.Argument(help="a strategy of the grid, e.g. vanilla")]
Mode = Annotated[str, typer.Argument(help="a retrieval mode, e.g. hybrid; none for a strategy without retrieval")]


@app.command()
def compose(
    overrides: Annotated[
        list[str] | None, typer.Argument(help="Hydra overrides, e.g. experiment=smoke 'retrieval=[dense]'")
    ] = None,
    check: Annotated[bool, typer.Option(help="only say whether params.yaml differs from conf/, and in which keys")] = False,
) -> None:
    """Compose conf/ into params.yaml and print what changed. Example: arena compose experiment=smoke"""
    old = layout.PARAMS.read_text(encoding="utf-8", errors="replace") if layout.PARAMS.exists() else ""
    if check:
        drift = composing.drift(layout.CONF, layout.PARAMS)
        typer.echo("\n".join(drift) if drift else "params.yaml agrees with conf/")
        raise typer.Exit(1 if drift else 0)
    new = composing.compose(layout.CONF, overrides or [])
    for line in composing.differences(old, new):
        typer.echo(line)
    if new != old:
        _write_text(layout.PARAMS, new)


@app.command()
def download() -> None:
    """Dataset files to data/corpus.parquet and data/questions.parquet. Example: arena download"""
    from rag_arena.stages.download import download

    corpus, questions, unresolved = download(_params().dataset)
    artifacts.write(layout.CORPUS, corpus)
    artifacts.write(layout.QUESTIONS, questions)
    typer.echo(f"{corpus.num_rows} documents, {questions.num_rows} questions, {len(unresolved)} supporting facts unresolved")
    for line in unresolved:
        typer.echo(f"unresolved: {line}")


@app.command()
def index() -> None:
    """Vectors of every document to data/index.parquet. Example: arena index"""
    from rag_arena.stages.index import index

    params = _params()
    previous = None
    if layout.INDEX.exists():
        try:
            previous = artifacts.read(layout.INDEX, artifacts.INDEX)
        except ArenaError as error:
            typer.echo(f"{error}; building it from scratch", err=True)
    artifacts.write(layout.INDEX, index(artifacts.read(layout.CORPUS, artifacts.CORPUS), params.embedder, previous))


@app.command()
def sample() -> None:
    """Draw the evaluation and calibration splits to data/sample/. Example: arena sample"""
    from rag_arena.stages.sample import sample

    evaluation, calibration = sample(artifacts.read(layout.QUESTIONS, artifacts.QUESTIONS), _params().sample)
    artifacts.write(layout.EVALUATION, evaluation)
    artifacts.write(layout.CALIBRATION, calibration)


@app.command()
def retrieve(mode: Mode) -> None:
    """First-pass hits of one mode for every question. Example: arena retrieve hybrid"""
    from rag_arena.stages.retrieve import retrieve

    hits, timings = retrieve(
        mode,
        _params(),
        artifacts.read(layout.CORPUS, artifacts.CORPUS),
        artifacts.read(layout.INDEX, artifacts.INDEX),
        artifacts.read(layout.QUESTIONS, artifacts.QUESTIONS),
    )
    artifacts.write(layout.hits(mode), hits)
    artifacts.write(layout.search_timings(mode), timings)


@app.command()
def run(strategy: Strategy, retrieval: Mode) -> None:
    """Answer the evaluation split with one cell. Example: arena run vanilla hybrid"""
    from rag_arena.llm.client import ChatModel
    from rag_arena.stages.run import Inputs, Outputs, run

    params = _params()
    cell = _cell(params, strategy, retrieval)
    inputs = Inputs(
        artifacts.read(layout.QUESTIONS, artifacts.QUESTIONS),
        artifacts.read(layout.EVALUATION, artifacts.SAMPLE),
        *(
            ()
            if retrieval == NO_MODE
            else (
                artifacts.read(layout.CORPUS, artifacts.CORPUS),
                artifacts.read(layout.INDEX, artifacts.INDEX),
                artifacts.read(layout.hits(retrieval), artifacts.HITS),
            )
        ),
    )

    async def work(client: Any) -> Outputs:
        return await run(cell, params, inputs, ChatModel(client, params.llm.endpoint))

    done = _with_model(params.llm, work)
    artifacts.write(layout.run(cell, "answers"), done.answers)
    artifacts.write(layout.run(cell, "calls"), done.calls)
    artifacts.write(layout.run(cell, "timings"), done.timings)


@app.command()
def judge(strategy: Strategy, retrieval: Mode) -> None:
    """Judge one cell's answers. Example: arena judge vanilla hybrid"""
    from rag_arena.scoring.judge import Judge
    from rag_arena.stages.judge import judge

    params = _params()
    cell = _cell(params, strategy, retrieval)
    answers = artifacts.read(layout.run(cell, "answers"), artifacts.ANSWERS)
    questions = artifacts.read(layout.QUESTIONS, artifacts.QUESTIONS)
    sampled = artifacts.read(layout.EVALUATION, artifacts.SAMPLE)
    corpus = artifacts.read(layout.CORPUS, artifacts.CORPUS)

    async def work(client: Any) -> Any:
        judging = Judge(client, params.judge.llm.endpoint, params.judge.metrics)
        return await judge(str(cell), params.judge, answers, questions, sampled, corpus, judging)

    artifacts.write(layout.judged(cell), _with_model(params.judge.llm, work))


@app.command()
def judge_truth() -> None:
    """Put the judge before pairs whose truth is known. Example: arena judge-truth"""
    from rag_arena.scoring.judge import Judge
    from rag_arena.stages.judge import judge_known_truth

    params = _params()
    questions = artifacts.read(layout.QUESTIONS, artifacts.QUESTIONS)
    sampled = artifacts.read(layout.CALIBRATION, artifacts.SAMPLE)

    async def work(client: Any) -> Any:
        judging = Judge(client, params.judge.llm.endpoint, params.judge.metrics)
        return await judge_known_truth(params.judge, questions, sampled, judging)

    artifacts.write(layout.KNOWN_TRUTH, _with_model(params.judge.llm, work))


@app.command()
def aggregate() -> None:
    """Scores, leaderboard and the tables beside it to results/. Example: arena aggregate"""
    from rag_arena.stages.aggregate import CellTables, Retrieved, aggregate

    params = _params()
    done = aggregate(
        params,
        artifacts.read(layout.QUESTIONS, artifacts.QUESTIONS),
        artifacts.read(layout.EVALUATION, artifacts.SAMPLE),
        {
            mode: Retrieved(
                artifacts.read(layout.hits(mode), artifacts.HITS),
                artifacts.read(layout.search_timings(mode), artifacts.SEARCH_TIMINGS),
            )
            for mode in params.grid.modes
        },
        {
            cell: CellTables(
                artifacts.read(layout.run(cell, "answers"), artifacts.ANSWERS),
                artifacts.read(layout.run(cell, "timings"), artifacts.TIMINGS),
                artifacts.read(layout.judged(cell), artifacts.JUDGEMENTS),
            )
            for cell in params.cells
        },
        artifacts.read(layout.KNOWN_TRUTH, artifacts.KNOWN_TRUTH),
    )
    for name in ("scores", "leaderboard", "judge_quality", "judge_truth", "retrieval_quality", "disagreement"):
        artifacts.write(layout.result(name), getattr(done, name))
    _write_text(layout.RESULTS / "leaderboard.csv", done.display.to_csv(index=False))
    _write_text(layout.RESULTS / "metrics.json", json.dumps(done.metrics, indent=2) + "\n")


@app.command()
def leaderboard(
    question_type: Annotated[str, typer.Option(help="all, multi_hop, single_hop or summary")] = "all",
) -> None:
    """Print results/ as tables. Example: arena leaderboard --question-type multi_hop"""
    from rag_arena.leaderboard import render

    render(Console(), _params(), question_type)


@app.command()
def failed() -> None:
    """Print the DVC stage of every cell with failed questions, for `make retry`. Example: arena failed"""
    for cell in load(layout.PARAMS).cells:
        answers = artifacts.read(layout.run(cell, "answers"), artifacts.ANSWERS)
        if "failed" in answers["status"].to_pylist():
            typer.echo(f"run_floor@{cell.strategy}" if cell.retrieval == NO_MODE else f"run@{cell}")


@app.command()
def schema() -> None:
    """Print the JSON schema of params.yaml. Example: arena schema > workflow/schemas/params.schema.json"""
    typer.echo(json.dumps(Params.model_json_schema(), indent=2))


@ledger_app.command()
def stats() -> None:
    """Calls, tokens and model seconds per endpoint. Example: arena ledger stats"""
    path = default_path()
    ledger = Ledger(path)
    typer.echo(f"ledger: {path}")
    for row in ledger.stats():
        name = json.loads(row.endpoint).get("base_url") or json.loads(row.endpoint)["model"]
        typer.echo(f"{name}: {row.calls} calls, {row.tokens_in} tokens in, {row.tokens_out} out, {row.seconds:.1f} s")
    ledger.close()


@ledger_app.command(name="load")
def load_calls(files: Annotated[list[Path], typer.Argument(help="calls.parquet files")]) -> None:
    """Refill the ledger from recorded calls. Example: arena ledger load data/runs/*/*/calls.parquet"""
    from rag_arena.llm.ledger import Entry

    ledger = Ledger(default_path())
    for file in files:
        columns = ("key", "endpoint", "request", "reply", "tokens_in", "tokens_out", "latency_s")
        entries = [Entry(*(row[c] for c in columns)) for row in artifacts.read(file, artifacts.CALLS).to_pylist()]
        typer.echo(f"{file}: {ledger.load(entries)} new of {len(entries)}")
    ledger.close()


def _params() -> Params:
    params = load(layout.PARAMS)
    if "ARENA_DRIFT_CHECKED" not in os.environ and (drift := composing.drift(layout.CONF, layout.PARAMS)):
        typer.echo(f"note: params.yaml differs from conf/ in {len(drift)} keys; see `arena compose --check`", err=True)
    return params


def _cell(params: Params, strategy: str, retrieval: str) -> Cell:
    cell = Cell(strategy, retrieval)
    if cell not in params.cells:
        raise ArenaError(f"params.yaml: the grid has no cell {cell}; it has {', '.join(map(str, params.cells))}")
    return cell


def _with_model(llm: Llm, work: Any) -> Any:
    from rag_arena.llm.client import connect

    ledger = Ledger(default_path())

    async def connected() -> Any:
        async with connect(llm, ledger) as client:
            return await work(client)

    try:
        return asyncio.run(connected())
    finally:
        ledger.close()


def _write_text(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(path)
    except OSError as error:
        raise ArenaError(f"{path}: cannot be written ({error.strerror or error}); free space or mend the rights") from error
    finally:
        temporary.unlink(missing_ok=True)


def main() -> None:
    """Run the command line; a mistake of the user's ends in one line and exit status 1."""
    try:
        app()
    except ArenaError as error:
        typer.echo(f"arena: {error}", err=True)
        sys.exit(1)
