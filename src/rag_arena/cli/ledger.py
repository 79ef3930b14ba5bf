"""The record of every model call."""

import json
from pathlib import Path
from typing import Annotated

import typer

from rag_arena import artifacts
from rag_arena.errors import ArenaError
from rag_arena.llm.ledger import Entry, Ledger, default_path
from rag_arena.wording import count

app = typer.Typer(no_args_is_help=True, help=__doc__)


@app.command()
def stats() -> None:
    """Calls, tokens and model seconds per endpoint. Example: arena ledger stats"""
    path = default_path()
    ledger = Ledger(path)
    typer.echo(f"ledger: {path}")
    for row in ledger.stats():
        name = json.loads(row.endpoint).get("base_url") or json.loads(row.endpoint)["model"]
        typer.echo(
            f"{name}: {count(row.calls, 'call')}, {count(row.tokens_in, 'token')} in, {row.tokens_out} out, {row.seconds:.1f} s"
        )
    ledger.close()


@app.command()
def show(key: Annotated[str, typer.Argument(help="the beginning of a call's key, as in calls.parquet")]) -> None:
    """Print recorded calls, request and reply. Example: arena ledger show 3fa9"""
    ledger = Ledger(default_path())
    found = ledger.find(key)
    ledger.close()
    if not found:
        raise ArenaError(f"{default_path()}: no call has a key that begins with {key!r}")
    for entry in found:
        typer.echo(f"{entry.key}: {count(entry.tokens_in, 'token')} in, {entry.tokens_out} out, {entry.latency_s:.2f} s")
        for part in (entry.endpoint, entry.request, entry.reply):
            typer.echo(json.dumps(json.loads(part), indent=2, ensure_ascii=False))


@app.command()
def prune(days: Annotated[float, typer.Option(min=0, help="forget calls recorded more than this many days ago")]) -> None:
    """Forget old calls; asking them again will cost. Example: arena ledger prune --days 90"""
    ledger = Ledger(default_path())
    typer.echo(f"{count(ledger.prune(days), 'call')} forgotten")
    ledger.close()


@app.command(name="load")
def load_calls(files: Annotated[list[Path], typer.Argument(help="calls.parquet files")]) -> None:
    """Refill the ledger from recorded calls. Example: arena ledger load data/runs/*/*/calls.parquet"""
    ledger = Ledger(default_path())
    for file in files:
        columns = ("key", "endpoint", "request", "reply", "tokens_in", "tokens_out", "latency_s")
        entries = [Entry(*(row[c] for c in columns)) for row in artifacts.read(file, artifacts.CALLS).to_pylist()]
        typer.echo(f"{file}: {ledger.load(entries)} new of {len(entries)}")
    ledger.close()
