"""Options that several commands share, and checks whose messages name the option."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from nodecopy._core.checks import check_integer, check_real
from nodecopy._core.files import resolve, target_format
from nodecopy._core.imports import import_optional
from nodecopy.cli.help_pages import Complete, complete_dataset, complete_device
from nodecopy.errors import InputError

Source: TypeAlias = Annotated[
    str,
    typer.Argument(
        help="A dataset ('nodecopy datasets list') or a file. Formats: .csv .tsv .txt .parquet .npz .mtx "
        ".graphml .gexf .json.",
        metavar="SOURCE",
        autocompletion=complete_dataset,
    ),
]
Labels: TypeAlias = Annotated[
    Path | None,
    typer.Option(help="A table of node ids and labels."),
]
Features: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        help="A table of node ids and features. Also a .npz archive of the arrays ids and x, or a .npz or "
        ".npy matrix whose row i belongs to node i."
    ),
]
Directed: TypeAlias = Annotated[bool, typer.Option("--directed", help="The edges of the file are directed.")]
LargestComponent: TypeAlias = Annotated[
    bool, typer.Option("--largest-component", help="Use the largest connected component only.")
]
Device: TypeAlias = Annotated[
    str,
    typer.Option(
        help="The device on which networks are trained: cpu or cuda.",
        metavar="NAME",
        autocompletion=complete_device,
    ),
]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print the results as JSON.")]
Callback: TypeAlias = Callable[[typer.CallbackParam, Any], Any]


Spreadsheet: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--spreadsheet",
        help="Put an apostrophe before text in .csv and .tsv files that a spreadsheet would take for a "
        "formula (it starts with =, +, - or @).",
    ),
]


def option(
    help: str,
    default: Any = None,
    check: Callback | None = None,
    *names: str,
    complete: Complete | None = None,
    metavar: str | None = None,
) -> Any:
    """Return an option as the default of a parameter; ``check`` is ``at_least(...)`` or ``between(...)``."""
    return typer.Option(default, *names, help=help, callback=check, autocompletion=complete, metavar=metavar)


def flag(name: str, help: str) -> Any:
    """Return an option without a value, off by default, as the default of a parameter."""
    return typer.Option(False, name, help=help)


def at_least(low: int) -> Callback:
    """Return a callback that accepts integers of at least ``low``, and nothing given."""
    return _callback(lambda value, option: check_integer(value, option, low=low, high=math.inf))


def between(low: float, high: float) -> Callback:
    """Return a callback that accepts numbers between ``low`` and ``high``, and nothing given."""
    return _callback(lambda value, option: check_real(value, option, low=low, high=high))


def _callback(check: Callable[[Any, str], Any]) -> Callback:
    def check_option(param: typer.CallbackParam, value: Any) -> Any:
        return None if value is None else check(value, max(param.opts, key=len))

    return check_option


def check_applicable(applies_to: str, got: str, **options: object) -> None:
    """Raise an error that names the options that were given although they apply elsewhere.

    Parameters
    ----------
    applies_to, got
        Where the options apply, and what was given instead, such as ``--method dice``.
    options
        The options by their Python names; ``None`` and ``False`` mean that one was not given.

    Examples
    --------
    >>> check_applicable("--method dice", "--method fga", delete="any")
    Traceback (most recent call last):
    nodecopy.errors.InputError: --delete applies to --method dice only; got --method fga. Leave it out.
    """
    names = [name for name, value in options.items() if value is not None and value is not False]
    if names:
        listing = " and ".join(f"--{name.replace('_', '-')}" for name in names)
        verb, pronoun = ("applies", "it") if len(names) == 1 else ("apply", "them")
        raise InputError(f"{listing} {verb} to {applies_to} only; got {got}. Leave {pronoun} out.")


def check_outputs(inputs: Iterable[object], **outputs: tuple[Path | None, Iterable[str]]) -> None:
    """Check before any computation that outputs can be written and replace no input and no other output.

    Parameters
    ----------
    inputs
        Paths that are read. Names of datasets and ``None`` are allowed among them.
    outputs
        By option, the path and its allowed formats; the path is ``None`` where the option was not given.
    """
    used = {resolve(path) for path in inputs if isinstance(path, (str, os.PathLike))}
    for option, (path, formats) in outputs.items():
        if path is None:
            continue
        if target_format(path, formats) == ".parquet":
            import_optional("pyarrow", "writing Parquet")
        if resolve(path) in used:
            raise InputError(
                f"--{option} must be a file that is neither an input nor another output; got {path}. "
                "Choose another name."
            )
        used.add(resolve(path))
