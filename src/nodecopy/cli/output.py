"""Printing: tables and JSON on the standard output, notes, errors and progress on the standard error."""

from __future__ import annotations

import json
import logging
import math
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from typing import Any, TypeVar, cast

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeElapsedColumn, track
from rich.text import Text

from nodecopy._core.messages import LOGGER, ResultTable, align_table, escape_controls, list_alternatives
from nodecopy._core.parallel import report_progress
from nodecopy.cli.options import OPTION_NAMES
from nodecopy.errors import DataWarning, InputError

OPTIONS = {  # of parameters of the package with another name
    **OPTION_NAMES,
    "read_interactions": "interactions",
    "features": "scale-features",
    "weights": "scale-weights",
    "datasets": "dataset",
    "metrics": "metric",
    "folder": "results",
    "targets": "nodes",
    "edge_confidence": "confidence",
    "n_looks": "looks",
}

console = Console(highlight=False)
error_console = Console(stderr=True, highlight=False)
notices: list[str] = []  # decisions and warnings of this run
T = TypeVar("T")
_is_quiet = False


@contextmanager
def show_notices(options: Collection[str] = (), *, quiet: bool = False) -> Iterator[None]:
    """Print decisions and warnings on the standard error, and keep them for JSON."""
    global _is_quiet
    _is_quiet = quiet
    handler, show_other, level = logging.Handler(), warnings.showwarning, LOGGER.level
    notices.clear()

    def emit(record: logging.LogRecord) -> None:
        decision = getattr(record, "decision", record.getMessage())
        message = _describe_notice(decision, getattr(record, "parameters", ()), options)
        if message not in notices:
            notices.append(message)
            (print_note if record.levelno < logging.WARNING else print_warning)(message)

    def show_warning(message: Warning | str, category: type[Warning], *place: Any, **where: Any) -> None:
        if isinstance(message, DataWarning):
            LOGGER.warning(_describe_notice(message.args[0], message.args[1:], options))
        else:
            show_other(message, category, *place, **where)

    cast(Any, handler).emit = emit
    with warnings.catch_warnings():
        warnings.simplefilter("always", DataWarning)
        warnings.showwarning = cast(Any, show_warning)
        LOGGER.addHandler(handler)
        LOGGER.setLevel(logging.INFO)
        try:
            yield
        except InputError as error:
            raise InputError(describe_error(error, options)) from error
        finally:
            LOGGER.removeHandler(handler)
            LOGGER.setLevel(level)
            notices.clear()
            _is_quiet = False


def _name_option(parameter: str, options: Collection[str]) -> str | None:
    name = OPTIONS.get(parameter, parameter).replace("_", "-")
    return " or ".join(option for option in (f"--{name}", f"--no-{name}") if option in options) or None


def _describe_notice(message: str, parameters: Iterable[Any], options: Collection[str]) -> str:
    names = [name for parameter in parameters if (name := _name_option(str(parameter), options))]
    return f"{message} Use {list_alternatives(names)} to change this." if names else message


def describe_error(error: InputError, options: Collection[str]) -> str:
    """Return the message of an error with the option in place of the parameter."""
    parameter = error.parameter
    option = parameter and _name_option(parameter.partition(" of ")[0], options)
    settings = (_name_setting(name, value, options) for name, value in error.settings.items())
    return error.describe(option or parameter, filter(None, settings))


def _name_setting(parameter: str, value: Any, options: Collection[str]) -> str:
    """Return an option with its value, such as ``--weight ''``, if there is one."""
    name = OPTIONS.get(parameter, parameter).replace("_", "-")
    option = f"--no-{name}" if value is False else f"--{name}"
    words = [] if isinstance(value, bool) else [value] if isinstance(value, (str, int, float)) else value
    return " ".join([option, *(quote(str(word)) for word in words)]) if option in options else ""


def print_error(message: str) -> None:
    """Print an error on the standard error."""
    _print_line(("error: ", "bold red"), message)


def print_note(message: str) -> None:
    """Print a line on the standard error, unless the run is quiet."""
    if not _is_quiet:
        _print_line("", message, "dim")


def print_warning(message: str) -> None:
    """Print a warning on the standard error."""
    _print_line(("warning: ", "bold yellow"), message)


def _print_line(start: str | tuple[str, str], message: str, style: str = "") -> None:
    text = escape_controls(message, keep="\n")
    error_console.print(Text.assemble(start, (text, style)), soft_wrap=True)


def print_written(path: Path | None, what: str, *, option: str = "") -> None:
    """Note what was written, or that ``option`` would write it."""
    if path is not None:
        print_note(f"{what} written to {path}")
    elif option:
        print_note(f"nothing written: give {option} to write the {what}")


def _shows_progress() -> bool:
    return error_console.is_terminal and not _is_quiet


def show_progress(items: Iterable[T], total: int, what: str) -> Iterator[T]:
    """Yield items under a progress bar, which only a terminal shows."""
    if not _shows_progress():
        return iter(items)
    return iter(track(items, description=what, total=total, console=error_console, transient=True))


def create_bar(*columns: ProgressColumn) -> Progress:
    """Return a progress bar with a description and the time."""
    columns = (TextColumn("{task.description}"), BarColumn(), *columns, TimeElapsedColumn())
    return Progress(*columns, console=error_console, transient=True, disable=not _shows_progress())


@contextmanager
def show_status(what: str) -> Iterator[Callable[[], None]]:
    """Show on a terminal what is being done; yield a function that ends it."""
    if not _shows_progress():
        yield lambda: None
        return
    with error_console.status(what) as status:
        yield status.stop


@contextmanager
def show_training(what: str) -> Iterator[None]:
    """Show a bar that moves with the progress that the package reports."""
    with create_bar() as bar:
        task = bar.add_task(what, total=None)

        def update(item: str, n_done: int, n: int) -> None:
            bar.update(task, description=item, completed=n_done, total=n)

        with report_progress(update):
            yield


def print_title(title: str) -> None:
    """Print the title of the next table below a blank line."""
    console.print(Text(f"\n{title}", "dim"), soft_wrap=True)


def print_table(heads: Sequence[str], rows: Iterable[Iterable[Any]]) -> None:
    """Print aligned columns, not cut to the width of the terminal."""
    for number, line in enumerate(align_table(heads, rows)):
        console.print(Text(line, "" if number else "bold"), soft_wrap=True)


def print_result(result: ResultTable[Any]) -> None:
    """Print a result, and its notes on the standard error."""
    above, below = result.notes()
    for line in above:
        print_note(line)
    print_table(result.heads, result.cells())
    for line in below:
        print_note(line)


def print_json(value: Any) -> None:
    """Print JSON with null in place of undefined numbers."""
    if notices and isinstance(value, dict):
        value = {**value, "notices": notices}
    print(json.dumps(_replace_nan(value), indent=2))


def _replace_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _replace_nan(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_replace_nan(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
