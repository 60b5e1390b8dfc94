"""The command line: one module for each command, imported when the command is run."""

from __future__ import annotations

import errno
import os
import signal
import sys
from importlib import import_module
from io import TextIOWrapper
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from nodecopy._core.imports import check_name
from nodecopy.errors import InputError, MissingExtraError

COMMANDS = {  # command ``x`` is the function, or the Typer app, ``nodecopy.cli.x.x``
    "sample": "Sample graphs or interactions by node copying.",
    "stats": "Compute structural statistics of a graph, or compare it with samples.",
    "infer": "Bootstrap confidence intervals and p-values for network statistics.",
    "classify": "Predict the classes of unlabelled nodes, with probabilities and uncertainty.",
    "attack": "Attack nodes of an undirected, unweighted, labelled graph by flipping edges.",
    "defend": "Correct predictions at attacked nodes, and list the edges that are distrusted.",
    "recommend": "Recommend items that a user has not interacted with, best first.",
    "evaluate": "Evaluate recommenders on held-out interactions.",
    "datasets": "List, fetch and verify datasets.",
    "reproduce": "Reproduce a table of the paper, or the part of it that the options choose.",
    "report": "Write an HTML page with a graph, its samples and what can be learnt from them.",
    "demo": "Run node copying on the datasets that ship with the package.",
    "doctor": "Check the installation: versions, extras, data, processor, GPU and a short self-test.",
}
UsageError: Any = typer.BadParameter.__mro__[1]  # Typer has its own copy of Click and exports only this error


class LazyCommands(TyperGroup):
    """A group that imports a command when it is run."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        return TyperCommand(cmd_name, short_help=COMMANDS[cmd_name]) if cmd_name in COMMANDS else None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, *others = args
        if name not in COMMANDS and (ctx.resilient_parsing or name.startswith("-")):
            return super().resolve_command(ctx, args)
        return name, import_command(check_name(name, COMMANDS, "a command")), others


def import_command(name: str) -> Any:
    """Import a command of ``COMMANDS``."""
    command = getattr(import_module(f"nodecopy.cli.{name}"), name)
    if not isinstance(command, typer.Typer):
        from nodecopy.cli.options import add_command

        function, command = command, typer.Typer(add_completion=False)
        add_command(command, name, function)
    return get_command(command)


app = typer.Typer(
    name="nodecopy",
    cls=LazyCommands,
    help="Sample graphs like the one you observed, by node copying, and learn from them.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # Rich takes longer to import than everything else
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(is_requested: bool) -> None:
    if is_requested:
        import nodecopy

        typer.echo(f"nodecopy {nodecopy.__version__}")
        raise typer.Exit


@app.callback()
def _declare_options(
    version: bool = typer.Option(
        False, "--version", callback=_print_version, is_eager=True, help="Show the version."
    ),
) -> None:
    """Options before the command."""


def main() -> None:
    """Run the command line; errors of the user are one line, with exit code 2."""
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # torch is much faster on a busy machine
    _prepare_streams()
    received: list[int] = []

    def stop(number: int, frame: Any) -> None:
        received.append(number)
        sys.exit(128 + number)

    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)  # Windows has no SIGHUP, and nohup has it ignored
        if number is not None and signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, stop)
    try:
        status = app(standalone_mode=False)
        sys.stdout.flush()
    except BaseException as error:
        # Locks and DuckDB turn the exit of a signal into errors of their own.
        status = None if received else _print_error(error)
    if received == [signal.SIGINT]:
        _print_line("interrupted.")
    sys.exit(128 + received[0] if received else status)


def _print_error(error: BaseException) -> int:
    """Print an error of the user or of the system as one line, and return the exit code."""
    code, message = 2, str(error)
    if isinstance(error, UsageError):
        message = _describe_usage_error(error)
    elif isinstance(error, OSError):
        code = 1
        try:
            sys.stdout.flush()
        except OSError:  # drop the output, which would be an error again at the end of the process
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        if error.errno == errno.EBADF:
            message = "the standard output is closed."
    elif not isinstance(error, (InputError, MissingExtraError)):
        raise error
    if message:
        _print_line(message)
    return code


def _print_line(message: str) -> None:
    from nodecopy.cli.output import print_error

    print_error(message)


def _prepare_streams() -> None:
    """Open streams that the caller closed, so that no file gets their numbers, and accept all texts."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDONLY)
    if sys.stdout is None:
        sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115, open until the end
    if isinstance(sys.stdout, TextIOWrapper):  # an id may hold characters that its encoding has not
        sys.stdout.reconfigure(errors="backslashreplace")


def _describe_usage_error(error: Any) -> str:
    """Return the message of a usage error with the nearest options; empty if help was shown."""
    if type(error).__name__ == "NoArgsIsHelpError":
        error.show()
        return ""
    nearest = getattr(error, "possibilities", None)
    message = error.message if nearest else error.format_message()
    message = " ".join(message.replace("Value error, ", "").split()).removesuffix(".") + "."
    return message + (f" Did you mean {' or '.join(nearest)}?" if nearest else "")
