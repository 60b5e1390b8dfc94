"""Options that several commands share, their panels in the help, and checks whose messages name the option.

The help of a command shows the first paragraph of its text and of those of the most used options, and names the
other options. ``--help-all`` shows everything.
"""

from __future__ import annotations

import inspect
import math
import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields
from functools import wraps
from pathlib import Path
from types import UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Literal,
    TypeAlias,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

import typer
from typer.core import TyperCommand

from nodecopy._core.checks import check_integer, check_real
from nodecopy._core.files import resolve, target_format
from nodecopy._core.imports import import_optional
from nodecopy.errors import InputError

INPUT, OUTPUT = "Input", "Output"
MORE, ENGINE, TABLES_IN_FILES = "More options", "Engine", "Tables in files"
RARE_PANELS = (MORE, ENGINE, TABLES_IN_FILES)
"""Panels whose options the short help only names."""
OPTION_NAMES = {"user": "user_column", "ignore_columns": "ignore_column"}
"""Options that are not named as the parameter."""
N_NEIGHBOURS = 10
"""Neighbours of each node of a graph that is built from features."""
METAVARS = {int: "N", float: "X", str: "TEXT", Path: "FILE", bool: ""}

Callback: TypeAlias = Callable[[typer.CallbackParam, Any], Any]


def option(
    help: str,
    default: Any = None,
    check: Callback | None = None,
    *names: str,
    panel: str | None = None,
    metavar: str | None = None,
) -> Any:
    """Return an option as the default of a parameter; ``check`` is ``at_least(...)`` or ``between(...)``."""
    return typer.Option(default, *names, help=help, callback=check, rich_help_panel=panel, metavar=metavar)


def flag(name: str, help: str, *, panel: str | None = None) -> Any:
    """Return an option without a value, off by default, as the default of a parameter."""
    return typer.Option(False, name, help=help, rich_help_panel=panel, metavar="")


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


def _option(help: str, *names: str, panel: str | None = INPUT, **settings: Any) -> Any:
    """Return an option for an annotation; its default is that of the parameter."""
    return typer.Option(*names, help=help, rich_help_panel=panel, **settings)


def _column(help: str, *names: str) -> Any:
    return _option(help, *names, panel=TABLES_IN_FILES, metavar="COLUMN")


Source: TypeAlias = Annotated[
    str,
    typer.Argument(
        help="A dataset ('nodecopy datasets list') or a file.\n\nFormats: .csv .tsv .txt .parquet .npz .mtx "
        ".graphml .gexf .json.",
        metavar="SOURCE",
    ),
]
Device: TypeAlias = Annotated[
    str, _option("The device on which networks are trained: cpu or cuda.", panel=ENGINE, metavar="NAME")
]
Seed: TypeAlias = Annotated[int, _option("Seed of random draws.", panel=None, callback=at_least(0))]
Spreadsheet: TypeAlias = Annotated[
    bool,
    _option(
        "Put an apostrophe before text in .csv and .tsv files that a spreadsheet would take for a formula "
        "(it starts with =, +, - or @).",
        "--spreadsheet",
        panel=MORE,
    ),
]
AsJson: TypeAlias = Annotated[bool, _option("Print the results as JSON.", "--json", panel=OUTPUT)]
ScaleFeatures: TypeAlias = Literal["auto", "unit", "rows", "standardise", "none", "binary"]
Duplicates: TypeAlias = Literal["max", "sum", "error"]


@dataclass(frozen=True)
class FileOptions:
    """How the tables of a command are read. A command takes the fields as options."""

    header: Annotated[
        bool | None,
        _option(
            "Whether the first row of each table is a header. (default: decided by what is in it)",
            "--header/--no-header",
            panel=TABLES_IN_FILES,
        ),
    ] = None

    def given(self, *names: str) -> dict[str, bool]:
        """Return the options that were given, of all fields or of some."""
        return {
            OPTION_NAMES.get(field.name, field.name): True
            for field in fields(self)
            if (field.name in names or not names) and getattr(self, field.name) not in (field.default, [])
        }

    def parameters(self) -> dict[str, Any]:
        """Return the parameters of the reader."""
        return {name: getattr(self, name) for name in self.reader_parameters}

    reader_parameters: ClassVar[tuple[str, ...]]


@dataclass(frozen=True)
class GraphOptions(FileOptions):
    """The tables of a graph beside its edges, and how they are read."""

    labels: Annotated[Path | None, _option("A table of node ids and labels.", "--labels")] = None
    features: Annotated[
        Path | None,
        _option(
            "A table of node ids and features.\n\nAlso a .npz archive of the arrays ids and x, or a .npz or "
            ".npy matrix whose row i belongs to node i.",
            "--features",
        ),
    ] = None
    directed: Annotated[bool, _option("The edges of the file are directed.", "--directed")] = False
    largest_component: Annotated[
        bool, _option("Use the largest connected component only.", "--largest-component", panel=MORE)
    ] = False
    source: Annotated[str | None, _column("Column of sources in the table of edges.", "--source")] = None
    target: Annotated[str | None, _column("Column of targets in the table of edges.", "--target")] = None
    weight: Annotated[
        str | None, _column("Column of weights in the table of edges, or '' for none.", "--weight")
    ] = None
    id: Annotated[str | None, _column("Column of ids in the tables of labels and features.", "--id")] = None
    label: Annotated[
        str | None,
        _column(
            "Column of labels (without --labels, in the table of features), or a node attribute of a .graphml, "
            ".gexf or .json file.",
            "--label",
        ),
    ] = None
    duplicates: Annotated[
        Duplicates,
        _option(
            "Value of an edge that is listed more than once: the largest weight, the sum, or an error.",
            "--duplicates",
            panel=TABLES_IN_FILES,
        ),
    ] = "max"
    allow_isolated: Annotated[
        bool,
        _option(
            "Add ids of labels and features without edges as isolated nodes.",
            "--allow-isolated",
            panel=TABLES_IN_FILES,
        ),
    ] = False
    ignore_columns: Annotated[
        list[str] | None,
        _column("A column of the table of features to leave out. May be repeated.", "--ignore-column"),
    ] = None
    reader_parameters: ClassVar[tuple[str, ...]] = (
        *("header", "source", "target", "weight", "id", "label", "duplicates", "allow_isolated"),
    )


@dataclass(frozen=True)
class UndirectedGraphOptions(GraphOptions):
    """Options without ``--directed``."""

    directed: bool = field(default=False, init=False)


@dataclass(frozen=True)
class StructureOptions(GraphOptions):
    """Options without features."""

    features: None = field(default=None, init=False)
    ignore_columns: None = field(default=None, init=False)


@dataclass(frozen=True)
class TrainingGraphOptions(GraphOptions):
    """Options of a graph that networks learn from; it may be built from features alone."""

    scale_features: Annotated[
        ScaleFeatures,
        _option(
            "How networks see features. auto: word counts by unit length, anything else standardised; the "
            "choice is printed.",
            "--scale-features",
            panel=MORE,
        ),
    ] = "auto"
    scale_weights: Annotated[
        Literal["auto", "raw", "log", "binary"],
        _option(
            "How networks see edge weights. auto: the logarithm of heavy-tailed weights, others as they are; "
            "the choice is printed.",
            "--scale-weights",
            panel=MORE,
        ),
    ] = "auto"
    n_neighbours: Annotated[
        int | None,
        _option(
            f"Features without edges: neighbours of each node. (default: {N_NEIGHBOURS})",
            "--n-neighbours",
            panel=MORE,
            callback=at_least(1),
        ),
    ] = None


@dataclass(frozen=True)
class InteractionOptions(FileOptions):
    """How a table of interactions is read."""

    user: Annotated[str | None, _column("Column of users.", "--user-column")] = None
    item: Annotated[str | None, _column("Column of items.", "--item")] = None
    rating: Annotated[str | None, _column("Column of ratings, or '' for none.", "--rating")] = None
    time: Annotated[str | None, _column("Column of times, or '' for none.", "--time")] = None
    lists: Annotated[
        bool | None,
        _option(
            "Whether each line of a .txt file holds a user and that user's items. (default: decided by what "
            "is in it)",
            "--lists/--no-lists",
            panel=TABLES_IN_FILES,
        ),
    ] = None
    reader_parameters: ClassVar[tuple[str, ...]] = ("header", "user", "item", "rating", "time", "lists")


class HelpCommand(TyperCommand):
    """A command whose help is short, the first paragraph of every text, and complete with --help-all."""

    explains_all = False

    def format_help(self, ctx: Any, formatter: Any) -> None:
        if not self.explains_all:
            self.help = (self.help or "").partition("\n\n")[0]
            rare: list[str] = []
            for parameter in self.params:
                parameter.help = (parameter.help or "").partition("\n\n")[0]
                if parameter.rich_help_panel in RARE_PANELS:
                    parameter.hidden = True
                    rare.append(max(parameter.opts, key=len))
            if rare:
                self.epilog = f"More options (--help-all explains them): {' '.join(rare)}\n\n{self.epilog}"
        super().format_help(ctx, formatter)


def _explain_all(ctx: typer.Context, is_requested: bool) -> None:
    if is_requested:
        cast(Any, ctx.command).explains_all = True
        typer.echo(ctx.get_help())
        raise typer.Exit


def add_command(app: typer.Typer, name: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that adds a function to an app as a command.

    Parameters that are :class:`FileOptions` become the options of their fields. Every command has ``--quiet``
    and ``--help-all``. The help is the docstring up to "Examples:".
    """

    def add(command: Callable[..., None]) -> Callable[..., None]:
        description, _, examples = (inspect.getdoc(command) or "").partition("\nExamples:\n")
        text = re.sub(r"(?<=\S)\n(?=\S)", " ", description.strip())
        examples = "\n".join(line.strip() for line in examples.splitlines())
        app.command(name, cls=HelpCommand, help=text, epilog=f"Examples\n{examples}")(_expand(command))
        return command

    return add


def _expand(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command with options in place of :class:`FileOptions`, and with the options of all commands."""
    parameters, groups = [], {}
    for parameter in inspect.signature(command, eval_str=True).parameters.values():
        if isinstance(parameter.annotation, type) and issubclass(parameter.annotation, FileOptions):
            groups[parameter.name] = parameter.annotation
        else:
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))
    has_user = any(parameter.name == "user" for parameter in parameters)
    added: dict[str, tuple[Any, Any]] = {}
    for group in groups.values():
        hints = get_type_hints(group, include_extras=True)
        added |= {
            f"{part.name}_field": (hints[part.name], part.default) for part in fields(group) if part.init
        }
    if "user_field" in added and not has_user:
        added["user_field"] = (
            Annotated[str | None, _column("Column of users.", "--user-column", "--user")],
            None,
        )
    quiet = _option("Print results, warnings and errors only.", "--quiet", "-q", panel=OUTPUT)
    help_all = typer.Option("--help-all", is_eager=True, callback=_explain_all, help="Explain all options.")
    added |= {"quiet": (Annotated[bool, quiet], False), "help_all": (Annotated[bool, help_all], False)}
    parameters += [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for name, (annotation, default) in added.items()
    ]
    for parameter in parameters:
        _add_metavar(parameter)

    @wraps(command)
    def run(*, context: typer.Context, quiet: bool, help_all: bool, **arguments: Any) -> None:
        from nodecopy.cli.output import show_notices

        values = {name[: -len("_field")]: arguments.pop(name) for name in added if name.endswith("_field")}
        for name, group in groups.items():
            arguments[name] = group(**{part.name: values[part.name] for part in fields(group) if part.init})
        options = [name for parameter in context.command.params for name in parameter.opts]
        with show_notices(options, quiet=quiet):
            command(**arguments)

    context = inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
    signature = inspect.Signature([context, *parameters])
    run.__annotations__ = {
        parameter.name: parameter.annotation for parameter in signature.parameters.values()
    }
    run.__signature__ = signature  # type: ignore[attr-defined]
    return run


def _add_metavar(parameter: inspect.Parameter) -> None:
    """Give an option a short name of its type, and add choices to its help."""
    kind, info = parameter.annotation, parameter.default
    if get_origin(kind) is Annotated:
        kind, info = get_args(kind)
    if info.metavar is not None:
        return
    if get_origin(kind) in (Union, UnionType):
        kind = get_args(kind)[0]
    kind = get_args(kind)[0] if get_origin(kind) is list else kind
    info.metavar = METAVARS.get(kind, "NAME")
    if choices := get_args(kind):
        text, end, more = info.help.partition("\n\n")
        text, default, value = text.partition(" (default: ")
        info.help = f"{text} One of {', '.join(choices)}.{default}{value}{end}{more}"


def check_applicable(applies_to: str, got: str, **options: object) -> None:
    """Raise an error that names the options that were given although they apply elsewhere.

    ``applies_to`` and ``got`` are where they apply and what was given instead, such as ``--method dice``.
    Options are named as in Python; ``None`` and ``False`` mean that one was not given.

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

    ``inputs`` are paths, names of datasets and ``None``; ``outputs`` have, by option, a path or ``None`` and
    its allowed formats.
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
