"""Composing and describing the parameters."""

import json
from pathlib import Path
from typing import Annotated

import typer

from rag_arena import artifacts, layout, sources, strategies
from rag_arena import compose as composing
from rag_arena.params import parse

app = typer.Typer()


@app.command()
def compose(
    overrides: Annotated[
        list[str] | None, typer.Argument(help="Hydra overrides, e.g. experiment=smoke 'retrieval=\\[dense]'")
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
    sources.check(parse(new.encode(), str(layout.PARAMS)).dataset)
    for line in composing.differences(old, new):
        typer.echo(line)
    if new != old:
        artifacts.write(layout.PARAMS, new)


@app.command()
def doctor() -> None:
    """Check configuration, data, packages, models, endpoints, ledger and disk, and say what to mend. Example: arena doctor"""
    from rag_arena.doctor import examine

    ill = False
    for finding in examine(Path("requirements.lock")):
        typer.echo(f"{'ok  ' if finding.well else 'MEND'}  {finding.subject}: {finding.detail}")
        ill = ill or not finding.well
    raise typer.Exit(1 if ill else 0)


@app.command()
def schema() -> None:
    """Print the JSON schema of params.yaml. Example: arena schema > workflow/schemas/params.schema.json"""
    typer.echo(json.dumps(strategies.full_model().model_json_schema(), indent=2))
