"""The command line: one file a command."""

from __future__ import annotations

import os
import signal
import sys

import typer

from nodecopy.cli import attack, classify, datasets, defend, demo, recommend, report, reproduce, sample, stats
from nodecopy.cli.terminal import complain
from nodecopy.errors import InputError, MissingExtraError

app = typer.Typer(
    name="nodecopy",
    help="Sample graphs like the one you observed, by node copying, and learn from them.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        import nodecopy

        typer.echo(f"nodecopy {nodecopy.__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Show the version."
    ),
) -> None:
    """Options before the command."""


app.command("sample")(sample.sample)
app.command("stats")(stats.stats)
app.command("classify")(classify.classify)
app.command("attack")(attack.attack)
app.command("defend")(defend.defend)
app.command("recommend")(recommend.recommend)
app.add_typer(datasets.app, name="datasets")
app.command("reproduce")(reproduce.reproduce)
app.command("report")(report.report)
app.command("demo")(demo.demo)


def _end(number: int, frame: object) -> None:
    """End like Ctrl-C does, so that nothing temporary stays behind."""
    sys.exit(128 + number)


def main() -> None:
    """Run the command line; what a user got wrong is told in one line, with exit code 2."""
    # Threads that spin while they wait make torch ten times slower on a machine that is busy otherwise.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    signal.signal(signal.SIGTERM, _end)
    try:
        app()
    except (InputError, MissingExtraError) as error:
        complain(str(error))
        sys.exit(2)
    except OSError as error:
        complain(str(error))
        sys.exit(1)
