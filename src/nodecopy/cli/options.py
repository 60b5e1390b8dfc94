"""Options that several commands share, their panels in the help, and checks."""

from __future__ import annotations

import inspect
import math
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, fields
from functools import partial, wraps
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, ClassVar, Literal, Union, cast, get_args, get_origin

import typer
from typer.core import TyperCommand

from nodecopy._core.checks import check_choice, check_integer, check_real
from nodecopy._core.files import resolve, target_format
from nodecopy._core.imports import import_optional
from nodecopy._core.messages import list_alternatives
from nodecopy.errors import InputError

RARE_PANELS = ("More options", "Engine", "Tables in files")  # the short help only names their options
OPTION_NAMES = {"user": "user_column", "ignore_columns": "ignore_column"}  # not named as the parameter
N_NEIGHBOURS = 10  # neighbours of each node of a graph that is built from features
KEYWORD_ONLY = inspect.Parameter.KEYWORD_ONLY
METAVARS = {int: "N", float: "X", str: "TEXT", Path: "FILE", bool: ""}


def common(
    help: str, default: Any = None, *names: str, panel: str | None = None, metavar: str | None = None
) -> Any:
    """Return an option as the default of a parameter, or for its annotation."""
    return typer.Option(default, *names, help=help, rich_help_panel=panel, metavar=metavar)


reads, writes = partial(common, panel="Input"), partial(common, panel="Output")
more, engine, _table_option = (partial(common, panel=panel) for panel in RARE_PANELS)
_column = partial(_table_option, metavar="COLUMN")


def _accept(check: Callable[..., Any]) -> Callable[..., Any]:
    """Return a callback that accepts ``None`` and what ``check`` accepts."""

    def check_option(param: typer.CallbackParam, value: Any) -> Any:
        return None if value is None else check(value, max(param.opts, key=len))

    return check_option


def between(low: float, high: float, check: Callable[..., Any] = check_real) -> Callable[..., Any]:
    """Return a callback that accepts numbers between ``low`` and ``high``, and ``None``."""
    return _accept(partial(check, low=low, high=high))


def at_least(low: int) -> Callable[..., Any]:
    """Return a callback that accepts integers of at least ``low``, and ``None``."""
    return between(low, math.inf, check_integer)


Count = Annotated[int, at_least(1)]
Natural = Annotated[int, at_least(0)]
Share = Annotated[float, between(0, 1)]

GRAPH_FORMATS = "Formats: .csv .tsv .txt .parquet .npz .mtx .graphml .gexf .json."
LOG_FORMATS = "Formats: .csv .tsv .txt .inter .parquet .npz."
_source = partial(typer.Argument, metavar="SOURCE")
Source = Annotated[str, _source(help=f"A dataset ('nodecopy datasets list') or a file.\n\n{GRAPH_FORMATS}")]
TrainingSource = Annotated[
    str,
    _source(
        help=f"A dataset ('nodecopy datasets list') or a file of edges.\n\n{GRAPH_FORMATS} A table of "
        "features alone gets a graph of nearest neighbours."
    ),
]
LogSource = Annotated[str, _source(help=f"A dataset of interactions, or a file.\n\n{LOG_FORMATS}")]
Device = Annotated[str, engine("The device on which networks are trained: cpu or cuda.", metavar="NAME")]
Seed = Annotated[Natural, common("Seed of random draws.")]
Spreadsheet = Annotated[
    bool, more("Put an apostrophe before text that a spreadsheet would take for a formula.")
]
AsJson = Annotated[bool, writes("Print the results as JSON.", None, "--json")]
ScaleFeatures = Literal["auto", "unit", "rows", "standardise", "none", "binary"]


@dataclass(frozen=True)
class FileOptions:
    """How tables are read; each field is an option."""

    header: Annotated[bool | None, _table_option("Whether tables have headers. (default: by content)")] = None
    decimal: Annotated[
        Literal[".", ","] | None, _table_option("Decimal sign of weights and ratings. (default: by content)")
    ] = None
    reader_parameters: ClassVar[tuple[str, ...]]

    def given(self, *names: str) -> dict[str, bool]:
        return {
            OPTION_NAMES.get(field.name, field.name): True
            for field in fields(self)
            if (field.name in names or not names) and getattr(self, field.name) not in (field.default, [])
        }

    def parameters(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("header", *self.reader_parameters)}


@dataclass(frozen=True)
class GraphOptions(FileOptions):
    """The tables of a graph beside its edges, and how they are read."""

    labels: Annotated[Path | None, reads("A table of node ids and labels.")] = None
    features: Annotated[
        Path | None,
        reads("A table of node ids and features.\n\nAlso .npz of ids and x, or a matrix as .npz or .npy."),
    ] = None
    directed: Annotated[bool, reads("The edges of the file are directed.")] = False
    largest_component: Annotated[bool, more("Use the largest connected component.")] = False
    source: Annotated[str | None, _column("Column of sources in the table of edges.")] = None
    target: Annotated[str | None, _column("Column of targets in the table of edges.")] = None
    weight: Annotated[str | None, _column("Column of weights in the table of edges; '' for none.")] = None
    id: Annotated[str | None, _column("Column of ids in the tables of labels and features.")] = None
    label: Annotated[str | None, _column("Column of labels in a table, or a node attribute.")] = None
    duplicates: Annotated[
        Literal["max", "sum", "error"], _table_option("Repeated edges: largest weight, sum, or an error.")
    ] = "max"
    allow_isolated: Annotated[bool, _table_option("Add ids without edges as isolated nodes.")] = False
    ignore_columns: Annotated[list[str] | None, _column("A feature to leave out. May be repeated.")] = None
    reader_parameters = (
        "source",
        "target",
        "weight",
        "id",
        "label",
        "decimal",
        "duplicates",
        "allow_isolated",
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
        ScaleFeatures, more("How features are scaled. auto: word counts to unit length, others standardised.")
    ] = "auto"
    scale_weights: Annotated[
        Literal["auto", "raw", "log", "binary"],
        more("How edge weights are scaled. auto: the logarithm if they are heavy-tailed, else raw."),
    ] = "auto"
    n_neighbours: Annotated[
        Count | None, more(f"Features without edges: neighbours of each node. (default: {N_NEIGHBOURS})")
    ] = None


@dataclass(frozen=True)
class InteractionOptions(FileOptions):
    """How a table of interactions is read."""

    user: Annotated[str | None, _column("Column of users.")] = None
    item: Annotated[str | None, _column("Column of items.")] = None
    rating: Annotated[str | None, _column("Column of ratings; '' for none.")] = None
    time: Annotated[str | None, _column("Column of times; '' for none.")] = None
    lists: Annotated[
        bool | None, _table_option("Whether lines of .txt hold a user and items. (default: by content)")
    ] = None
    day_first: Annotated[
        bool | None, _table_option("Whether 3/4/2024 is in April. (default: by content)")
    ] = None
    reader_parameters = ("user", "item", "rating", "time", "lists", "decimal", "day_first")


class HelpCommand(TyperCommand):
    """A command whose help shows first paragraphs, and everything with ``--help-all``."""

    explains_all = False

    def format_help(self, ctx: Any, formatter: Any) -> None:
        rare: list[str] = []
        parameters: Any = self.get_params(ctx)
        for parameter in parameters:
            parameter.metavar = parameter.metavar or ""  # no "<bool>"
            if parameter.param_type_name == "argument":  # neither "<str>" nor "{SOURCE}" and "[required]"
                usage = parameter.metavar if parameter.required else f"[{parameter.metavar}]"
                parameter.get_usage_pieces = lambda ctx, usage=usage: [usage]
                parameter.display_type_rich = lambda ctx: ""
                parameter.required = False
            if not self.explains_all:
                parameter.help = (parameter.help or "").partition("\n\n")[0]
                if getattr(parameter, "rich_help_panel", None) in RARE_PANELS:
                    parameter.hidden = True
                    rare.append(max(parameter.opts, key=len))
        if not self.explains_all:
            self.help = (self.help or "").partition("\n\n")[0]
        if rare:
            self.epilog = f"More options (--help-all explains them): {' '.join(rare)}\n\n{self.epilog}"
        super().format_help(ctx, formatter)


def _explain_all(ctx: typer.Context, is_requested: bool) -> None:
    if is_requested:
        cast(Any, ctx.command).explains_all = True
        typer.echo(ctx.get_help())
        raise typer.Exit


OPTIONS_OF_ALL_COMMANDS = {
    "quiet": writes("Print results, warnings and errors only.", False, "--quiet", "-q"),
    "help_all": typer.Option(
        False, "--help-all", is_eager=True, callback=_explain_all, help="Explain all options."
    ),
}


def add_command(app: typer.Typer, name: str, command: Callable[..., None]) -> None:
    """Add a function to an app as a command."""
    description, _, examples = (inspect.getdoc(command) or "").partition("\nExamples:\n")
    text = re.sub(r"(?<=\S)\n(?=\S)", " ", description.strip())
    examples = "\n".join(line.strip() for line in examples.splitlines())
    app.command(name, cls=HelpCommand, help=text, epilog=f"Examples\n{examples}")(_expand(command))


def _expand(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command with the options of :class:`FileOptions` and of all commands."""
    own = inspect.signature(command, eval_str=True).parameters
    groups = {name: part.annotation for name, part in own.items() if hasattr(part.annotation, "given")}
    fields_of = {name: inspect.signature(group, eval_str=True).parameters for name, group in groups.items()}
    parameters = [inspect.Parameter("context", KEYWORD_ONLY, annotation=typer.Context)]
    parameters += [_declare(part) for name, part in own.items() if name not in groups]
    shared = {name: part for parts in fields_of.values() for name, part in parts.items()}
    for name, part in shared.items():
        names = [OPTION_NAMES.get(name, name)] + ["user"] * (name == "user" and "user" not in own)
        parameters.append(_declare(part.replace(name=f"{name}_field"), *names))
    for name, option in OPTIONS_OF_ALL_COMMANDS.items():
        parameters.append(_declare(inspect.Parameter(name, KEYWORD_ONLY, default=option, annotation=bool)))

    @wraps(command)
    def run(*, context: typer.Context, quiet: bool, help_all: bool, **arguments: Any) -> None:
        from nodecopy.cli.output import show_notices

        values = {name: arguments.pop(f"{name}_field") for name in shared}
        for name, group in groups.items():
            arguments[name] = group(**{part: values[part] for part in fields_of[name]})
        parts = context.command.params
        options = [name for part in parts for name in (*part.opts, *part.secondary_opts)]
        with show_notices(options, quiet=quiet):
            command(**arguments)

    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return run


def _declare(parameter: inspect.Parameter, *names: str) -> inspect.Parameter:
    kind, *outer = _unpack(parameter.annotation)
    is_optional = get_origin(kind) in (Union, UnionType)
    value, *inner = _unpack(get_args(kind)[0] if is_optional else kind)
    checks, default = [*inner, *outer], parameter.default
    if checks and hasattr(checks[-1], "param_decls"):
        info = copy(checks.pop())
    else:
        info, default = copy(default), default.default
    single = get_args(value)[0] if get_origin(value) is list else value
    choices = checks.pop() if checks and isinstance(checks[-1], (tuple, dict)) else get_args(single)
    info.callback = checks[0] if checks else info.callback
    if value is bool and default is False and not info.param_decls:
        names = names or (parameter.name,)  # no second name that negates it
    if names:
        info.param_decls = tuple(f"--{name.replace('_', '-')}" for name in names)
        if value is bool and default is None:
            info.param_decls = (f"{info.param_decls[0]}/--no-{names[0].replace('_', '-')}",)
    if info.metavar is None:
        info.metavar = "NAME" if choices else METAVARS.get(single, "NAME")
    text, end, more = info.help.partition("\n\n")
    if choices:
        text, start, chosen = text.partition(" (default: ")
        text = f"{text} One of {', '.join(choices)}.{start}{chosen}"
        value = str
        info.callback = _accept(partial(check_choice, allowed=choices))  # it names the nearest choice
        info.autocompletion = lambda incomplete: [c for c in choices if c.startswith(incomplete)]
    has_default = isinstance(default, (str, int, float, Path, list)) and not isinstance(default, bool)
    if has_default and "(default: " not in text:
        text += f" (default: {', '.join(default) if isinstance(default, list) else default})"
    info.help, info.show_default, info.default = f"{text}{end}{more}", False, ...
    annotation = value | None if is_optional else value
    return parameter.replace(kind=KEYWORD_ONLY, annotation=Annotated[annotation, info], default=default)


def _unpack(annotation: Any) -> tuple[Any, ...]:
    return get_args(annotation) if get_origin(annotation) is Annotated else (annotation,)


def check_applicable(applies_to: str, got: str, **options: object) -> None:
    """Raise an error for options that apply elsewhere."""
    names = [name for name, value in options.items() if value is not None and value is not False]
    if names:
        listing = " and ".join(f"--{name.replace('_', '-')}" for name in names)
        verb, pronoun = ("applies", "it") if len(names) == 1 else ("apply", "them")
        raise InputError(f"{listing} {verb} to {applies_to} only; got {got}. Leave {pronoun} out.")


def select_given(
    option: str, chosen: str, choices_of: Mapping[str, Sequence[str]], settings: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the settings that were given, which must apply to the choice."""
    given = {name: value for name, value in settings.items() if value is not None}
    for name in given:
        if chosen not in choices_of[name]:
            allowed = f"--{option} {list_alternatives(choices_of[name])}"
            check_applicable(allowed, f"--{option} {chosen}", **{name: True})
    return given


def check_outputs(inputs: Iterable[object], **outputs: tuple[Path | None, Iterable[str]]) -> None:
    """Raise an error unless outputs can be written and replace nothing in use."""
    used = {resolve(path) for path in inputs if isinstance(path, (str, os.PathLike))}
    for option, (path, formats) in outputs.items():
        if path is None:
            continue
        if target_format(path, formats) == ".parquet":
            import_optional("pyarrow", "writing Parquet")
        if resolve(path) in used:
            allowed = "a file that is neither an input nor another output"
            raise InputError(f"--{option} must be {allowed}; got {path}.")
        used.add(resolve(path))
