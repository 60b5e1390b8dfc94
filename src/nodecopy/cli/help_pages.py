"""The help of commands: options in panels, and examples; the terminal and the documentation show the same."""

from __future__ import annotations

import inspect
import re
import shutil
import textwrap
import tomllib
from collections.abc import Callable, Iterable, Iterator
from enum import EnumMeta
from functools import wraps
from importlib.resources import files
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

import typer
from typer.core import TyperCommand, TyperGroup

MAX_WIDTH, NAME_WIDTH = 100, 24
"""Columns of a help page, and of the names of options in it."""
PANELS = {
    "Input": "source labels features directed interactions largest_component samples test validation split "
    "test_share min_rating ignore_columns_column results load model_file names experiment trust dataset user "
    "users all_users items exclude unknown labels_per_class nodes n_targets flips",
    "Model": "",
    "Engine": "engine memory master scratch workers device store resume stored batch_size backend scheduler "
    "neighbours max_item_degree",
    "Output": "out out_folder format overwrite scores save per_user picture spreadsheet json_ quiet help_all "
    "help",
    "Tables in files": "",
}
"""The parameters in each panel; others are settings of the model."""
PANEL_OF = {name: panel for panel, names in PANELS.items() for name in names.split()} | {
    "attack flips": "Output",
    "classify validation": "Model",
    "recommend explain": "Output",
    "reproduce labels": "Input",
    "report samples": "Model",
}
"""The panel of each parameter; the name of a command before it tells apart what other commands call so."""
RARE_PANELS = ("Engine", "Tables in files")
RARE_PARAMETERS = (
    "largest_component ignore_columns_column spreadsheet overwrite n_neighbours exponent max_donors "
    "similarity scale_features scale_weights n_rounds n_weight_samples share balance base_weight network "
    "prior voters calibrate validation load path_length alternative simultaneous level picture delete "
    "n_influencers independent no_check retrain trust_edges donors uncertain_share scores items exclude "
    "unknown include_seen min_rating model_file users tune test_share per_user trust visible_validation "
    "attacks"
)
"""Panels and parameters that the short help names without an explanation."""
RARE = frozenset(RARE_PARAMETERS.split())
METAVARS = {int: "N", float: "X", str: "TEXT"}


class Entry(NamedTuple):
    """An option, an argument or a command, what it means, and whether the short help explains it."""

    names: str
    text: str
    is_common: bool = True


class HelpPage(NamedTuple):
    """What the help of a command says."""

    usage: str
    description: str
    panels: dict[str, list[Entry]]
    examples: list[str]
    more: str = ""


class HelpCommand(TyperCommand):
    """A command whose help has panels and examples: the most used options, or with --help-all every one."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        formatter.write(render(shorten_page(describe_command(self, ctx))))


class HelpGroup(TyperGroup):
    """A group of commands with the same kind of help."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        commands = [
            Entry(name, (command.help or "").partition("\n")[0])
            for name in self.list_commands(ctx)
            if (command := self.get_command(ctx, name)) is not None
        ]
        page = describe_command(self, ctx)
        formatter.write(render(page._replace(panels={"Commands": commands, **page.panels})))


def add_command(app: typer.Typer, name: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that adds a function to an app as a command with ``--quiet`` and ``--help-all``.

    Its help is the docstring, with the lines of each paragraph joined; indented lines stay as they are.
    """

    def add(command: Callable[..., None]) -> Callable[..., None]:
        text = re.sub(r"(?<=\S)\n(?=\S)", " ", inspect.getdoc(command) or "")
        app.command(name, cls=HelpCommand, help=text)(_add_common_options(command))
        return command

    return add


def _show_full_help(ctx: typer.Context, is_requested: bool) -> None:
    if is_requested:
        typer.echo(render(describe_command(ctx.command, ctx)))
        raise typer.Exit


def _add_common_options(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command that also takes the options of all commands, ``--quiet`` and ``--help-all``."""
    signature = inspect.signature(command, eval_str=True)

    @wraps(command)
    def call(*, quiet: bool, help_all: bool, **arguments: Any) -> None:
        from nodecopy.cli import output as terminal

        terminal.set_quiet(quiet)
        command(**arguments)

    keyword = inspect.Parameter.KEYWORD_ONLY
    text = "Print results, warnings and errors only."
    quiet = Annotated[bool, typer.Option("--quiet", "-q", help=text)]
    parameters = [parameter.replace(kind=keyword) for parameter in signature.parameters.values()]
    parameters.append(inspect.Parameter("quiet", keyword, default=False, annotation=quiet))
    text = "Explain all options, and exit."
    help_all = Annotated[bool, typer.Option("--help-all", is_eager=True, callback=_show_full_help, help=text)]
    parameters.append(inspect.Parameter("help_all", keyword, default=False, annotation=help_all))
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    call.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return call


def describe_command(command: Any, ctx: Any) -> HelpPage:
    """Return the help of a command; ``ctx`` is the context that it was called in."""
    declarations = inspect.signature(command.callback).parameters if command.callback else {}
    panels: dict[str, list[Entry]] = {name: [] for name in PANELS}
    arguments = []
    for parameter in [*command.params, command.get_help_option(ctx)]:
        panel = (
            getattr(parameter, "rich_help_panel", None)
            or PANEL_OF.get(f"{command.name} {parameter.name}")
            or PANEL_OF.get(parameter.name, "Model")
        )
        declaration = declarations.get(parameter.name)
        entry = _describe_parameter(parameter, declaration and declaration.annotation)
        is_common = parameter.name not in RARE and panel not in RARE_PANELS
        panels[panel].append(entry._replace(is_common=is_common))
        if parameter.param_type_name == "argument":
            name = parameter.name.upper()
            arguments.append(name if parameter.required else f"[{name}]")
    if isinstance(command, TyperGroup):
        arguments = ["COMMAND", "..."]
        panels = {"Options": [entry for entries in panels.values() for entry in entries]}
    description, _, examples = (command.help or "").partition("\nExamples:\n")
    return HelpPage(
        " ".join([ctx.command_path, *arguments, "[OPTIONS]" if arguments[-1:] != ["..."] else ""]).rstrip(),
        description.strip(),
        {name: entries for name, entries in panels.items() if entries},
        [line.strip() for line in examples.splitlines() if line.strip()],
    )


def _describe_parameter(parameter: Any, annotation: Any) -> Entry:
    kind, is_list = _unwrap(annotation)
    text, _, default = (parameter.help or "").partition(" (default: ")
    default = default and f" (default: {default}"
    if choices := _choices(kind):
        text += f" One of {', '.join(choices)}."
    if parameter.param_type_name == "argument":
        return Entry(parameter.name.upper() + " ..." * is_list, text + default)
    names = sorted(parameter.opts, key=len)
    if parameter.secondary_opts:
        return Entry(f"{names[-1]}, {parameter.secondary_opts[0]}", text + default)
    if getattr(parameter, "is_flag", False):
        return Entry(", ".join(names), text + default)
    if not default and parameter.default not in (None, [], ()):
        values = parameter.default if isinstance(parameter.default, (list, tuple)) else [parameter.default]
        default = f" (default: {', '.join(str(getattr(value, 'value', value)) for value in values)})"
    return Entry(f"{', '.join(names)} {parameter.metavar or _metavar(kind, text)}", text + default)


def _unwrap(annotation: Any) -> tuple[Any, bool]:
    """Return the type of one value, and whether there may be several."""
    if get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    if get_origin(annotation) in (Union, UnionType):
        annotation = next(part for part in get_args(annotation) if part is not type(None))
    if get_origin(annotation) is list:
        return get_args(annotation)[0], True
    return annotation, False


def _choices(kind: Any) -> list[str]:
    if isinstance(kind, EnumMeta):
        return [str(member.value) for member in kind]  # type: ignore[var-annotated]
    return [str(choice) for choice in get_args(kind)] if get_origin(kind) is Literal else []


def _metavar(kind: Any, text: str) -> str:
    """Return what stands for the value of an option; "Folder ..." tells it from a file."""
    if _choices(kind):
        return "NAME"
    if kind is Path:
        return "FOLDER" if text.startswith("Folder") else "PATH" if "folder" in text else "FILE"
    return METAVARS.get(kind, "TEXT")


def shorten_page(page: HelpPage) -> HelpPage:
    """Return a page with the first sentence about each common option, and the names of the others."""
    panels = {
        title: [_shorten_entry(entry) for entry in entries if entry.is_common]
        for title, entries in page.panels.items()
    }
    rare = [entry.names for entries in page.panels.values() for entry in entries if not entry.is_common]
    names = " ".join(re.split("[ ,]", name)[0] for name in rare)
    return page._replace(panels={title: entries for title, entries in panels.items() if entries}, more=names)


def _shorten_entry(entry: Entry) -> Entry:
    """Return an entry with the first sentence of its text, the choices and the default."""
    text, *others = re.split(r"(?= One of )|(?= \(default: )", entry.text)
    sentence = re.split(r"(?<=[\w)'])\. ", text.removesuffix("."))[0]
    return entry._replace(text="".join([f"{sentence}.", *others]))


def render(page: HelpPage) -> str:
    """Return a help page as text for the terminal, at most ``MAX_WIDTH`` columns wide."""
    width = max(50, min(MAX_WIDTH, shutil.get_terminal_size((MAX_WIDTH, 24)).columns))
    lines = [f"{typer.style('Usage:', bold=True)} {page.usage}", ""]
    for paragraph in page.description.split("\n\n"):
        lines += [*textwrap.wrap(paragraph, width), ""]
    options = [entry for title, panel in page.panels.items() if title != "Commands" for entry in panel]
    for title, entries in page.panels.items():
        others = entries if title == "Commands" else options  # which start in the same column
        column = min(NAME_WIDTH, max(len(entry.names) for entry in others)) + 4
        lines += [typer.style(title, bold=True), *_render_entries(entries, column, width), ""]
    if page.more:
        names = textwrap.wrap(page.more, width - 2, break_on_hyphens=False)
        title = typer.style("More options", bold=True)
        lines += [f"{title} (--help-all explains them)", *(f"  {line}" for line in names), ""]
    if page.examples:
        lines += [typer.style("Examples", bold=True), *(f"  {line}" for line in page.examples), ""]
    return "\n".join(lines)


def _render_entries(entries: list[Entry], column: int, width: int) -> Iterator[str]:
    for names, text, _ in entries:
        first, *rest = textwrap.wrap(text, width - column) or [""]
        if len(names) > column - 4:
            yield f"  {names}"
            names = ""
        yield f"  {names:{column - 4}}  {first}".rstrip()
        yield from (" " * column + line for line in rest)


# Completion of names in the shell: datasets, experiments and what is in them, statistics, models.


Complete = Callable[..., list[str]]


def complete_among(list_names: Callable[[], Iterable[str]]) -> Complete:
    """Return a completion among names that are listed when it is asked for."""

    def complete(incomplete: str) -> list[str]:
        return [name for name in list_names() if name.startswith(incomplete)]

    return complete


def _list_datasets() -> Iterable[str]:
    from nodecopy import datasets

    return datasets.names()


def _list_interactions() -> Iterable[str]:
    from nodecopy import datasets

    return [name for name in datasets.names() if datasets.describe(name).kind == "interactions"]


def _list_experiments() -> Iterable[str]:
    from nodecopy.experiments import config as toml

    return toml.names()


complete_dataset = complete_among(_list_datasets)
complete_interactions = complete_among(_list_interactions)
complete_experiment = complete_among(_list_experiments)
complete_device = complete_among(lambda: ("cpu", "cuda"))


def complete_part(kind: str) -> Complete:
    """Return a completion of the last of several names with commas between: parts of the experiment.

    ``kind`` is "datasets", "methods" or "attacks".
    """

    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        names = set(_list_experiments())
        words = [ctx.params.get("experiment"), *ctx.args]  # arguments before an unfinished option
        name = next((word for word in words if word in names), None)
        before, comma, last = incomplete.rpartition(",")
        return [before + comma + part for part in _list_parts(name, kind) if part.startswith(last)]

    return complete


def _list_parts(experiment: str | None, kind: str) -> Iterable[str]:
    """Return the names of the parts of an experiment, without importing its methods."""
    while experiment is not None:
        path = files("nodecopy.experiments") / "configs" / f"{experiment}.toml"
        content = tomllib.loads(path.read_text(encoding="utf-8"))
        if parts := content.get(kind) or content.get("protocol", {}).get(kind):
            return _list_attacks(parts) if kind == "attacks" else list(parts)
        experiment = content.get("base")
    return []


def _list_attacks(sections: dict[str, Any]) -> list[str]:
    """Return the names of attacks, with their budgets."""
    from nodecopy.experiments.config import expand_budgets  # here, since it imports NumPy

    return list(expand_budgets(sections))
