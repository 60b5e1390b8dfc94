"""Options of all commands that read files: headers, columns, duplicates and isolated nodes."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from typing import Annotated, Any, Literal

import typer

from nodecopy.io.edge_lists import Duplicates

Kind = Literal["graph", "interactions"]
PANEL = "Tables in files"


@dataclass(frozen=True)
class ReadingOptions:
    """How tables are read: parameters of ``read_graph`` and ``read_interactions``."""

    header: bool | None = None
    source: str | None = None
    target: str | None = None
    weight: str | None = None
    id: str | None = None
    label: str | None = None
    duplicates: Duplicates = "max"
    allow_isolated: bool = False
    ignore_columns: list[str] | None = None
    user: str | None = None
    item: str | None = None
    rating: str | None = None
    time: str | None = None
    lists: bool | None = None

    def of(self, kind: Kind) -> dict[str, Any]:
        """Return the parameters of the reader of graphs, but for its encoder, or of interactions."""
        names = ("header", *READER_PARAMETERS[kind])
        return {name: getattr(self, name) for name in names if name != "ignore_columns"}

    def given(self, *kinds: Kind) -> dict[str, Any]:
        """Return the options that were given, those of some kinds only or all."""
        names = [name for kind in kinds for name in READER_PARAMETERS[kind]] or [
            field.name for field in fields(self)
        ]
        default = ReadingOptions()
        return {
            _option(name): True for name in names if getattr(self, name) not in (getattr(default, name), [])
        }


READER_PARAMETERS: dict[Kind, tuple[str, ...]] = {
    "graph": ("source", "target", "weight", "id", "label", "duplicates", "allow_isolated", "ignore_columns"),
    "interactions": ("user", "item", "rating", "time", "lists"),
}
HELP = {
    "source": "Name of the column of sources in the table of edges.",
    "target": "Name of the column of targets in the table of edges.",
    "weight": "Name of the column of weights in the table of edges, or '' for none.",
    "id": "Name of the column of ids in the tables of labels and features.",
    "label": "Name of the column of labels (without --labels, in the table of features), or of a node "
    "attribute of a .graphml, .gexf or .json file.",
    "duplicates": "What an edge that is listed more than once gets: the largest weight, the sum, an error.",
    "allow_isolated": "Add ids of labels and features without edges as isolated nodes.",
    "ignore_columns": "A column of the table of features to leave out. May be repeated.",
    "user": "Name of the column of users in the table of interactions.",
    "item": "Name of the column of items in the table of interactions.",
    "rating": "Name of the column of ratings in the table of interactions, or '' for none.",
    "time": "Name of the column of times in the table of interactions, or '' for none.",
    "lists": "Whether each line of a .txt file holds a user and that user's items. (default: decided by what "
    "is in it)",
}
Header = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header",
        help="Whether the first row of each table is a header. (default: decided by what is in it)",
        rich_help_panel=PANEL,
    ),
]


def reads(*kinds: Kind) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that gives a command the options of some kinds of files.

    The command gets them as one argument, ``reading``.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(command, eval_str=True)
        own = [parameter for name, parameter in signature.parameters.items() if name != "reading"]
        taken = {parameter.name for parameter in own}
        options = {"header_row": ("header", Header, None)}
        for name in (name for kind in kinds for name in READER_PARAMETERS[kind]):
            if name == "ignore_columns" and "features" not in taken:
                continue
            default = getattr(ReadingOptions(), name)
            options[f"{name}_column"] = (name, _annotate(name, is_free=name not in taken), default)

        @wraps(command)
        def run(**arguments: Any) -> None:
            values = {name: arguments.pop(parameter) for parameter, (name, *_) in options.items()}
            command(**arguments, reading=ReadingOptions(**values))

        keyword = inspect.Parameter.KEYWORD_ONLY
        added = [
            inspect.Parameter(parameter, keyword, default=default, annotation=annotation)
            for parameter, (_, annotation, default) in options.items()
        ]
        parameters = [*(parameter.replace(kind=keyword) for parameter in own), *added]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        return run

    return decorate


def _option(name: str) -> str:
    """Return the name of an option; ``--user`` of recommend is the id of a user."""
    return {"user": "user_column", "ignore_columns": "ignore_column"}.get(name, name)


def _annotate(name: str, *, is_free: bool) -> Any:
    kinds = {"duplicates": Duplicates, "allow_isolated": bool, "ignore_columns": list[str] | None}
    kinds["lists"] = bool | None
    kind: Any = kinds.get(name, str | None)
    names = [f"--{_option(name).replace('_', '-')}"]
    if name == "lists":
        names = ["--lists/--no-lists"]
    if name == "user" and is_free:
        names.append("--user")
    metavar = "COLUMN" if kind in (str | None, list[str] | None) else None
    panel = None if name == "ignore_columns" else PANEL  # it belongs to --features
    return Annotated[kind, typer.Option(*names, help=HELP[name], metavar=metavar, rich_help_panel=panel)]
