"""Looking at results: the leaderboard, one question, one path, what failed."""

import json
from collections.abc import Iterable
from typing import Annotated, Any

import pyarrow.parquet as pq
import typer
from rich.console import Console
from rich.markup import escape

from rag_arena import artifacts, layout, strategies
from rag_arena.cli.common import calibrated, mode_of_grid, params_in_force, router, with_models
from rag_arena.errors import ArenaError
from rag_arena.metering import Call
from rag_arena.params import NO_MODE, load, nearest
from rag_arena.records import NOT_ASKED, Cell, Document, Metadata, chunk_id
from rag_arena.wording import count

app = typer.Typer()
_LONGEST = 100  # characters of a cell of a table that is looked at


@app.command()
def leaderboard(
    question_type: Annotated[
        str, typer.Option(help="all, multi_hop, single_hop or summary; original or generated where both occur")
    ] = "all",
    markdown: Annotated[bool, typer.Option(help="as a Markdown table")] = False,
) -> None:
    """Print results/ as a table. Example: arena leaderboard --question-type multi_hop"""
    from rag_arena.leaderboard import render

    render(Console(), question_type, markdown)


@app.command()
def compare(
    first: Annotated[str, typer.Argument(help="a cell of the leaderboard, as strategy-retrieval")],
    second: Annotated[str, typer.Argument(help="the cell to hold it against")],
) -> None:
    """Hold two cells against each other, question by question. Example: arena compare corrective-dense vanilla-dense"""
    from rag_arena.comparison import render

    render(Console(), first, second)


@app.command()
def table(
    name: Annotated[
        str, typer.Argument(help="a table of results/, e.g. retrieval_quality; without it, their names are listed")
    ] = "",
    where: Annotated[list[str] | None, typer.Argument(help="only rows with these values, as column=value")] = None,
) -> None:
    """Print a table of results/. Example: arena table decisions question_type=all decision=keep"""
    from rich.box import SIMPLE
    from rich.table import Table

    known = {path.stem: path for path in sorted(layout.RESULTS.glob("*.parquet"))}
    if not known:
        raise ArenaError(f"{layout.RESULTS}: no tables; run `snakemake --cores 4` in the project's folder")
    if not name:
        typer.echo("\n".join(known))
        return
    if name not in known:
        raise ArenaError(f"{layout.result(name)}: missing{nearest(name, list(known))}")
    rows = pq.read_table(known[name])
    wanted = dict(condition.partition("=")[::2] for condition in where or [])
    for column in wanted:
        if column not in rows.column_names:
            raise ArenaError(f"{known[name]}: no column {column!r}{nearest(column, rows.column_names)}")
        if wanted[column] not in (values := sorted({str(value) for value in rows[column].to_pylist()})):
            raise ArenaError(f"{known[name]}: {column} is never {wanted[column]!r}{nearest(wanted[column], values)}")
    shown = Table(*rows.column_names, box=SIMPLE, pad_edge=False)
    for row in (r for r in rows.to_pylist() if all(str(r[column]) == value for column, value in wanted.items())):
        shown.add_row(*(_cell_text(value) for value in row.values()))
    Console(emoji=False, width=1000).print(shown)  # as wide as it needs: a table that is cut says nothing


def _cell_text(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.3f}"
    text = str(value)
    return escape(text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…")


@app.command()
def ask(
    question: Annotated[str, typer.Argument(help="any question; the corpus is that of the built index")],
    strategy: Annotated[str, typer.Option(help="a strategy with settings in params.yaml")] = "vanilla",
    retrieval: Annotated[str, typer.Option(help="a retrieval mode [default: hybrid, or none if it never retrieves]")] = "",
    where: Annotated[list[str] | None, typer.Option(help="only from documents with this metadata, as column=value")] = None,
) -> None:
    """Answer one question and print the path it took. Example: arena ask "Who designed Hero?" --strategy corrective"""
    from rag_arena.explain import path
    from rag_arena.llm.client import chat_models
    from rag_arena.retrieval.web import WebSearch
    from rag_arena.stages.resolve import resolve
    from rag_arena.stages.run import Inputs, ask

    if not question.strip():
        raise ArenaError("the question is empty; write it between quotes")
    params = params_in_force()
    retrieval = retrieval or (NO_MODE if strategy in params.floor else "hybrid")
    cell = Cell(strategy, retrieval)
    corpus = artifacts.read(layout.CORPUS, artifacts.CORPUS)
    documents = artifacts.documents(corpus)
    wanted = _metadata(where or [], documents.values())
    inputs = Inputs(
        artifacts.read(layout.QUESTIONS, artifacts.QUESTIONS).slice(0, 0),
        artifacts.table(artifacts.SAMPLE, []),
        *(
            ()
            if retrieval == NO_MODE
            else (
                corpus,
                artifacts.read(layout.INDEX, artifacts.INDEX),
                artifacts.table(artifacts.HITS, []),
                resolve(
                    cell,
                    params,
                    lambda name: calibrated(mode_of_grid(params, retrieval), name),
                    lambda: router(mode_of_grid(params, retrieval)),
                ),
            )
        ),
    )

    async def work(clients: Any, ledger: Any) -> Any:
        web = WebSearch(ledger, params.llm.transport)
        return await ask(cell, params, inputs, *chat_models(params, clients), question, web, wanted)

    state, meter = with_models([params.llm, params.small_llm], work)
    console = Console(emoji=False)
    console.print(path(f"{question}  ({cell})", state["trace"], meter.calls, documents.__getitem__, ()))
    tokens = sum(c.tokens_in + c.tokens_out for c in meter.calls)
    seconds = meter.search_s + meter.grading_s + sum(c.latency_s for c in meter.calls)
    console.print(f"{count(len(meter.calls), 'call')}, {count(tokens, 'token')}, {seconds:.2f} s", highlight=False)
    console.print(f"[bold]answer:[/bold] {escape(state['answer'])}", highlight=False)


def _metadata(conditions: list[str], documents: Iterable[Document]) -> Metadata:
    """Conditions as column=value, each of them true of some document."""
    wanted = dict(condition.partition("=")[::2] for condition in conditions)
    known: dict[str, set[str]] = {}
    for column, value in (pair for document in documents for pair in document.metadata):
        known.setdefault(column, set()).add(value)
    for column, value in wanted.items():
        if column not in known:
            raise ArenaError(f"{layout.CORPUS}: no document has metadata {column!r}{nearest(column, sorted(known))}")
        if value not in known[column]:
            raise ArenaError(f"{layout.CORPUS}: {column} is never {value!r}{nearest(value, sorted(known[column]))}")
    return tuple(sorted(wanted.items()))


@app.command()
def trace(
    question_id: Annotated[str, typer.Argument(help="an id of the evaluation split, as in results/scores.parquet")],
) -> None:
    """Print the path of one question in every cell, gold documents marked. Example: arena trace demo_003"""
    from rag_arena.explain import path

    params = load(layout.PARAMS)
    questions = {row["question_id"]: row for row in artifacts.read(layout.QUESTIONS, artifacts.QUESTIONS).to_pylist()}
    asked = artifacts.read(layout.EVALUATION, artifacts.SAMPLE)["question_id"].to_pylist()
    if question_id not in asked:
        raise ArenaError(f"data/sample/evaluation.parquet: question {question_id!r} was not asked; asked were {', '.join(asked)}")
    question = questions[question_id]
    corpus = artifacts.read(layout.CORPUS, artifacts.CORPUS)
    documents = artifacts.documents(corpus)

    def document(doc_id: str) -> Document:
        return documents.get(doc_id) or documents[chunk_id(doc_id, 1)]

    scores = {
        (row["strategy"], row["retrieval"]): row
        for row in artifacts.read(layout.result("scores"), artifacts.SCORES).to_pylist()
        if row["question_id"] == question_id
    }
    console = Console(emoji=False)
    console.print(f"[bold]{escape(question['question'])}[/bold]  ({question['question_type']})", highlight=False)
    if question["where"]:
        console.print(
            f"only from: {escape(', '.join(f'{column} {value}' for column, value in question['where']))}", highlight=False
        )
    console.print(f"reference: {escape(' | '.join((question['answer'], *question['aliases'])))}", highlight=False)
    for cell in params.cells:
        rows = artifacts.read(layout.run(cell, "answers"), artifacts.ANSWERS).to_pylist()
        row = next((r for r in rows if r["question_id"] == question_id), None)
        score = scores.get((cell.strategy, cell.retrieval))
        if row is None or score is None:
            where = layout.run(cell, "answers") if row is None else layout.result("scores")
            raise ArenaError(f"{where}: nothing of question {question_id!r} in {cell}; run `snakemake --cores 4`")
        calls = [
            Call(**{key: value for key, value in row.items() if key not in artifacts.CALLS.key})
            for row in artifacts.read(layout.run(cell, "calls"), artifacts.CALLS).to_pylist()
            if row["question_id"] == question_id
        ]
        console.print()
        console.print(path(str(cell), json.loads(row["trace"]), calls, document, question["gold_ids"]))
        console.print(f"answer: {escape(row['answer'] or '')}" if row["error"] is None else f"failed: {escape(row['error'])}")
        verdict = {True: "correct", False: score["failure"] or "wrong", None: "correctness not known (no judgement)"}
        shown = ", ".join(f"{k} {score[k]:.2f}" for k in ("recall", "precision", "f1", "contains") if score[k] is not None)
        if row["error"] is None:
            console.print(f"{verdict[score['correct']]}; {shown}", highlight=False)


@app.command()
def graph(strategy: Annotated[str, typer.Argument(help="a strategy, in the grid or not")]) -> None:
    """Print a strategy's graph as a Mermaid diagram. Example: arena graph corrective"""
    typer.echo(strategies.draw(strategy))


@app.command()
def failed() -> None:
    """Print the DVC stages with failed questions or a judge that could not be asked, for `make retry`. Example: arena failed"""
    stages = []
    for cell in load(layout.PARAMS).cells:
        answers = artifacts.read(layout.run(cell, "answers"), artifacts.ANSWERS)
        judgements = artifacts.read(layout.judged(cell), artifacts.JUDGEMENTS)
        errors = [*judgements["accuracy_error"].to_pylist(), *judgements["faithfulness_error"].to_pylist()]
        name = f"_floor@{cell.strategy}" if cell.retrieval == NO_MODE else f"@{cell}"
        if "failed" in answers["status"].to_pylist():
            stages.append(f"run{name}")
        if any(error and error.startswith(NOT_ASKED) for error in errors):
            stages.append(f"judge{name}")
    for stage in stages:
        typer.echo(stage)
    if not stages:
        typer.echo("nothing failed", err=True)


@app.command()
def loops() -> None:
    """Print the questions that a strategy tried again, what failed each time and how it ended. Example: arena loops"""
    questions = {row["question_id"]: row["question"] for row in artifacts.read(layout.QUESTIONS, artifacts.QUESTIONS).to_pylist()}
    found = False
    for cell in load(layout.PARAMS).cells:
        for row in artifacts.read(layout.run(cell, "answers"), artifacts.ANSWERS).to_pylist():
            trace = json.loads(row["trace"])
            failures = [step["failure"] for step in trace if step["node"] == "rewrite" and "failure" in step]
            if failures:
                found = True
                ended = "unconfirmed" if trace[-1].get("unconfirmed") else "confirmed"
                path = " -> ".join([*failures, ended])
                typer.echo(f"{cell}  {row['question_id']}  {path}  {questions[row['question_id']]}")
    if not found:
        typer.echo("no question was tried again", err=True)
