"""The stages: each reads its artifacts, calls its pure function and writes what comes back."""

import json
from typing import Annotated, Any

import typer

from rag_arena import artifacts, layout
from rag_arena.cli.common import (
    CALIBRATED,
    ROUTER,
    calibrated,
    cell_of_grid,
    params_in_force,
    router,
    save,
    with_model,
    with_models,
)
from rag_arena.errors import ArenaError
from rag_arena.llm.ledger import default_path
from rag_arena.params import NO_MODE
from rag_arena.sources import labels
from rag_arena.wording import count

app = typer.Typer()

Strategy = Annotated[str, typer.Argument(help="a strategy of the grid, e.g. vanilla")]
Mode = Annotated[str, typer.Argument(help="a retrieval mode, e.g. hybrid; none for a strategy without retrieval")]


@app.command()
def download() -> None:
    """Dataset files to data/corpus.parquet and data/questions.parquet. Example: arena download"""
    from rag_arena.llm.lookups import opening
    from rag_arena.stages.download import download
    from rag_arena.stages.preflight import check_calibration

    params = params_in_force()
    with opening(default_path(), params.llm.transport) as lookups:
        done = download(params.dataset, lookups)
    without_gold = done.questions["gold_ids"].to_pylist().count([])
    check_calibration(params, without_gold < done.questions.num_rows, labels.read(layout.LABELS))
    save(layout.CORPUS, done.corpus)
    save(layout.QUESTIONS, done.questions)
    typer.echo(f"{done.size}, {count(len(done.unresolved), 'supporting fact')} unresolved")
    for line in done.unresolved:
        typer.echo(f"unresolved: {line}")
    for line in done.notes:
        typer.echo(f"note: {line}")
    if without_gold:
        typer.echo(f"note: {count(without_gold, 'question')} without gold documents, for which recall and precision stay empty")


@app.command()
def index() -> None:
    """Vectors of every document to data/index.parquet. Example: arena index"""
    from rag_arena.stages.index import index

    params = params_in_force()
    previous = None
    if layout.INDEX.exists():
        try:
            previous = artifacts.read(layout.INDEX, artifacts.INDEX)
        except ArenaError as error:
            typer.echo(f"{error}; building it from scratch", err=True)
    parts = artifacts.Parts(layout.INDEX_PARTS, artifacts.VECTORS)
    corpus = artifacts.read(layout.CORPUS, artifacts.CORPUS)
    save(layout.INDEX, index(corpus, params.embedder, previous, parts, params.served))
    parts.clear()


@app.command()
def sample() -> None:
    """Draw the evaluation and calibration splits to data/sample/. Example: arena sample"""
    from rag_arena.stages.sample import sample

    evaluation, calibration = sample(artifacts.read(layout.QUESTIONS, artifacts.QUESTIONS), params_in_force().sample)
    save(layout.EVALUATION, evaluation)
    save(layout.CALIBRATION, calibration)


@app.command()
def retrieve(mode: Mode) -> None:
    """First-pass hits of one mode for every question. Example: arena retrieve hybrid"""
    from rag_arena.stages.retrieve import retrieve

    hits, timings = retrieve(
        mode,
        params_in_force(),
        artifacts.read(layout.CORPUS, artifacts.CORPUS),
        artifacts.read(layout.INDEX, artifacts.INDEX),
        artifacts.read(layout.QUESTIONS, artifacts.QUESTIONS),
    )
    save(layout.hits(mode), hits)
    save(layout.search_timings(mode), timings)


@app.command()
def calibrate(mode: Mode) -> None:
    """Fit one mode's sigmoids and thresholds on the calibration split. Example: arena calibrate hybrid"""
    from rag_arena.stages.calibrate import calibrate

    done = calibrate(
        mode,
        params_in_force(),
        artifacts.read(layout.CORPUS, artifacts.CORPUS),
        artifacts.read(layout.INDEX, artifacts.INDEX),
        artifacts.read(layout.QUESTIONS, artifacts.QUESTIONS),
        artifacts.read(layout.CALIBRATION, artifacts.SAMPLE),
        artifacts.read(layout.hits(mode), artifacts.HITS),
        labels.read(layout.LABELS),
    )
    for name in CALIBRATED:
        save(layout.calibrated(mode, name), getattr(done, name))


@app.command()
def train(mode: Mode) -> None:
    """Label calibration questions and learn one mode's router from them. Example: arena train hybrid"""
    params = params_in_force()
    if not params.silver.questions:  # what trains takes seconds to import
        for name, artifact in ROUTER.items():
            save(layout.router(mode, name), artifacts.table(artifact, []))
        return
    from rag_arena.llm.client import chat_models
    from rag_arena.stages.run import Inputs
    from rag_arena.stages.train import Trained, train

    inputs = Inputs(
        artifacts.read(layout.QUESTIONS, artifacts.QUESTIONS),
        artifacts.read(layout.CALIBRATION, artifacts.SAMPLE),
        artifacts.read(layout.CORPUS, artifacts.CORPUS),
        artifacts.read(layout.INDEX, artifacts.INDEX),
        artifacts.read(layout.hits(mode), artifacts.HITS),
    )

    async def work(clients: Any, _: Any) -> Trained:
        return await train(mode, params, inputs, *chat_models(params, clients))

    done = with_models([params.llm, params.small_llm], work)
    for name in ROUTER:
        save(layout.router(mode, name), getattr(done, name))
    for row in done.quality.to_pylist():
        typer.echo(f"router of {mode}: {', '.join(f'{key} {value}' for key, value in row.items() if key != 'retrieval')}")


@app.command()
def resolve(strategy: Strategy, mode: Mode) -> None:
    """Write the settings in force of one cell, thresholds as numbers. Example: arena resolve corrective hybrid"""
    from rag_arena.stages.resolve import resolve

    params = params_in_force()
    cell = cell_of_grid(params, strategy, mode)
    save(layout.resolved(cell), resolve(cell, params, lambda name: calibrated(mode, name), lambda: router(mode)))


@app.command()
def run(strategy: Strategy, retrieval: Mode) -> None:
    """Answer the evaluation split with one cell. Example: arena run vanilla hybrid"""
    from rag_arena.llm.client import chat_models
    from rag_arena.retrieval.web import WebSearch
    from rag_arena.stages.run import Inputs, Outputs, run

    params = params_in_force()
    cell = cell_of_grid(params, strategy, retrieval)
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
                artifacts.read(layout.resolved(cell), artifacts.RESOLVED),
            )
        ),
    )

    async def work(clients: Any, ledger: Any) -> Outputs:
        return await run(cell, params, inputs, *chat_models(params, clients), WebSearch(ledger, params.llm.transport))

    done = with_models([params.llm, params.small_llm], work)
    save(layout.run(cell, "answers"), done.answers)
    save(layout.run(cell, "calls"), done.calls)
    save(layout.run(cell, "timings"), done.timings)


@app.command()
def judge(strategy: Strategy, retrieval: Mode) -> None:
    """Judge one cell's answers. Example: arena judge vanilla hybrid"""
    from rag_arena.scoring.judge import Judge
    from rag_arena.stages.judge import judge

    params = params_in_force()
    cell = cell_of_grid(params, strategy, retrieval)
    answers = artifacts.read(layout.run(cell, "answers"), artifacts.ANSWERS)
    questions = artifacts.read(layout.QUESTIONS, artifacts.QUESTIONS)
    sampled = artifacts.read(layout.EVALUATION, artifacts.SAMPLE)

    async def work(client: Any) -> Any:
        judging = Judge(client, params.judge.llm.endpoint, params.judge.metrics)
        return await judge(str(cell), params.judge, answers, questions, sampled, judging)

    judgements, calls = with_model(params.judge.llm, work)
    save(layout.judged(cell), judgements)
    save(layout.judge_calls(cell), calls)


@app.command()
def judge_truth() -> None:
    """Put the judge before pairs whose truth is known. Example: arena judge-truth"""
    from rag_arena.scoring.judge import Judge
    from rag_arena.stages.judge import judge_known_truth

    params = params_in_force()
    questions = artifacts.read(layout.QUESTIONS, artifacts.QUESTIONS)
    sampled = artifacts.read(layout.CALIBRATION, artifacts.SAMPLE)

    async def work(client: Any) -> Any:
        judging = Judge(client, params.judge.llm.endpoint, params.judge.metrics)
        return await judge_known_truth(params.judge, questions, sampled, judging)

    ratings, calls = with_model(params.judge.llm, work)
    save(layout.KNOWN_TRUTH, ratings)
    save(layout.KNOWN_TRUTH_CALLS, calls)


@app.command()
def aggregate() -> None:
    """Scores, leaderboard and the tables beside it to results/. Example: arena aggregate"""
    from rag_arena.stages.aggregate import CellTables, Retrieved, aggregate

    params = params_in_force()
    done = aggregate(
        params,
        artifacts.read(layout.QUESTIONS, artifacts.QUESTIONS),
        artifacts.read(layout.EVALUATION, artifacts.SAMPLE),
        {
            mode: Retrieved(
                artifacts.read(layout.hits(mode), artifacts.HITS),
                artifacts.read(layout.search_timings(mode), artifacts.SEARCH_TIMINGS),
                calibrated(mode, "thresholds"),
            )
            for mode in params.grid.modes
        },
        {
            cell: CellTables(
                artifacts.table(artifacts.RESOLVED, [])
                if cell.retrieval == NO_MODE
                else artifacts.read(layout.resolved(cell), artifacts.RESOLVED),
                artifacts.read(layout.run(cell, "answers"), artifacts.ANSWERS, without=("contexts",)),
                artifacts.read(layout.run(cell, "calls"), artifacts.CALLS, without=("endpoint", "request", "reply")),
                artifacts.read(layout.run(cell, "timings"), artifacts.TIMINGS),
                artifacts.read(layout.judged(cell), artifacts.JUDGEMENTS),
            )
            for cell in params.cells
        },
        artifacts.read(layout.KNOWN_TRUTH, artifacts.KNOWN_TRUTH),
    )
    for name, table in done.tables.items():
        save(layout.result(name), table)
    for name, display in done.displays.items():
        save(layout.RESULTS / f"{name}.csv", display.to_csv(index=False))
    save(layout.RESULTS / "metrics.json", json.dumps(done.metrics, indent=2) + "\n")
