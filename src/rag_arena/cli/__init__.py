"""`arena`: one subcommand per stage, and the tools around them. Paths, clocks and the environment stay here."""

import gc
import os

gc.set_threshold(50_000)  # looking for garbage among modules being imported takes a quarter of the time to start
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
for _pool in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_pool] = "1"  # before numpy is imported: more threads change sums in the last bits

import signal
import sys

import typer

from rag_arena.cli import calibrating, configuration, ledger, look, stages, sweep
from rag_arena.errors import ArenaError

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Which retrieval-augmented generation strategy is worth its cost on your data.",
)
for _part in (configuration, stages, look, calibrating, sweep):
    app.add_typer(_part.app)
app.add_typer(ledger.app, name="ledger")


def _stop(*_: object) -> None:
    """Leave at once: a model call cannot be cut short, and nothing is lost, since files and ledger entries are written whole."""
    os.write(2, b"\narena: interrupted; finished calls are kept, the same command goes on from here\n")
    os._exit(130)


def main() -> None:
    """Run the command line; a mistake of the user's ends in one line and exit status 1, an interruption in one line and 130."""
    signal.signal(signal.SIGINT, _stop)
    try:
        app()
    except ArenaError as error:
        typer.echo(f"arena: {error}", err=True)
        sys.exit(1)
