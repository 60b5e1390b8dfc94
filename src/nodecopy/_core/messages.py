"""Decisions made for the user, warnings about data, tables, and text that is safe to print.

Decisions are logged at level INFO to the logger ``nodecopy``; the command line prints them. To see them in
Python: ``logging.basicConfig(); logging.getLogger("nodecopy").setLevel("INFO")``.
"""

from __future__ import annotations

import html
import logging
import math
import re
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from nodecopy._core.imports import import_optional
from nodecopy.errors import DataWarning

LOGGER = logging.getLogger("nodecopy")
PACKAGE = str(Path(__file__).parent.parent)
EVERY = "every decision"
MAX_ROWS = 50  # of a printed table
R = TypeVar("R")
_skipped: ContextVar[set[str] | None] = ContextVar("decisions that are not logged", default=None)


def log_decision(message: str, *parameters: str) -> None:
    """Log what was decided for the user and why, and the ``parameters`` that change it."""
    skipped = _skipped.get()
    text = f"{message} Set {list_alternatives(parameters)} to change this." if parameters else message
    if skipped is None or not {text, EVERY} & skipped:
        LOGGER.info(text, extra={"decision": message, "parameters": parameters})
    if skipped is not None:
        skipped.add(text)


def list_alternatives(words: Sequence[str]) -> str:
    """Return words with commas and "or" between them."""
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


@contextmanager
def log_decisions_once(*skipped: str) -> Iterator[None]:
    """Log the same decision of this thread only once."""
    token = _skipped.set({*skipped, *(_skipped.get() or ())})
    try:
        yield
    finally:
        _skipped.reset(token)


def mute_decisions() -> AbstractContextManager[None]:
    """Log no decisions of this thread."""
    return log_decisions_once(EVERY)


@contextmanager
def mute_data_warnings() -> Iterator[None]:
    """Issue no :class:`DataWarning`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        yield


def warn_about_data(message: str, *parameters: str) -> None:
    """Issue a :class:`DataWarning` at the first caller outside the package; see :func:`log_decision`."""
    frame, level = sys._getframe(), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame, level = frame.f_back, level + 1
    warnings.warn(DataWarning(message, *parameters), stacklevel=level)


# Control characters, those that change the direction of text, and halves of characters:
CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
MARKDOWN = re.compile(r"[\\`*_\[\]<>|&~]|^(?:#|[-+=](?=\s))")
LATEX = {character: f"\\{character}" for character in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
}
FORMULA_SIGNS = ("=", "+", "-", "@", "＝", "＋", "－", "＠")  # noqa: RUF001


def escape_controls(text: str, keep: str = "") -> str:
    """Return text for a terminal, in which control characters are visible."""

    def escape(match: re.Match[str]) -> str:
        return match[0] if match[0] in keep else match[0].encode("unicode_escape").decode("ascii")

    return CONTROLS.sub(escape, text)


def join_lines(text: str) -> str:
    """Return text on one line, for headings, cells and comments."""
    return escape_controls(" ".join(text.split()))


def format_value(value: str | float) -> str:
    """Format integers with commas, other numbers with four digits and NaN as a dash."""
    if isinstance(value, str):
        return value
    if isinstance(value, int) or (math.isfinite(value) and value == int(value) and abs(value) >= 1000):
        return f"{int(value):,}"
    return "-" if math.isnan(value) else f"{value:.4g}"


def align_table(heads: Sequence[str], rows: Iterable[Iterable[Any]]) -> list[str]:
    """Return the lines of a table with aligned columns, numbers to the right."""
    columns = [_align([head, *map(format_value, cells)]) for head, *cells in zip(heads, *rows, strict=True)]
    return ["  ".join(line).rstrip() for line in zip(*columns, strict=True)]


def _align(cells: list[str]) -> list[str]:
    cells = list(map(escape_controls, cells))
    width = max(map(len, cells))
    is_numeric = all(cell[:1].isdigit() or cell[:1] == "-" for cell in cells[1:])
    return [cell.rjust(width) if is_numeric else cell.ljust(width) for cell in cells]


def render_html(
    heads: Sequence[str], rows: Iterable[Iterable[Any]], above: Sequence[str] = (), below: Sequence[str] = ()
) -> str:
    """Return a table as HTML, with lines of text above and below."""
    lines = [[f"<div>{html.escape(join_lines(line))}</div>" for line in part] for part in (above, below)]
    head = "".join(f"<th>{html.escape(name)}</th>" for name in heads)
    body = "".join(f"<tr>{''.join(map(_html_cell, row))}</tr>" for row in rows)
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return "".join([*lines[0], table, *lines[1]])


def _html_cell(value: Any) -> str:
    is_text = isinstance(value, str)
    side, text = ("left", join_lines(value)) if is_text else ("right", format_value(value))
    return f'<td style="text-align: {side}">{html.escape(text)}</td>'


class PrintedTable:
    """Results that print as a table, and as one of HTML in notebooks."""

    heads: ClassVar[tuple[str, ...]]

    def cells(self) -> Iterable[Iterable[Any]]:
        """Return the cells of the printed rows."""
        return self  # type: ignore[return-value]

    def notes(self) -> tuple[list[str], list[str]]:
        """Return the lines above and below the table."""
        return [], []

    def _parts(self) -> tuple[list[Iterable[Any]], list[str], list[str]]:
        rows, (above, below) = list(self.cells()), self.notes()
        more = [f"and {len(rows) - MAX_ROWS:,} more"] if len(rows) > MAX_ROWS else []
        problems = (f"Warning: {problem}" for problem in getattr(self, "problems", ()))
        return rows[:MAX_ROWS], above, [*more, *below, *problems]

    def __repr__(self) -> str:
        rows, above, below = self._parts()
        return "\n".join([*above, *align_table(self.heads, rows), *below])

    def _repr_html_(self) -> str:
        return render_html(self.heads, *self._parts())


class ResultTable(PrintedTable, Generic[R]):
    """Results by name that print as a table; a subclass is a data class with its rows in the first field."""

    def __iter__(self) -> Iterator[R]:
        return iter(getattr(self, next(iter(self.__dict__))))

    def __getitem__(self, name: str) -> R:
        rows: Any = self
        return {row.name: row for row in rows}[name]  # type: ignore[no-any-return]

    def to_pandas(self) -> Any:
        """Return a data frame with a row per statistic."""
        frame, rows = import_optional("pandas", "to_pandas").DataFrame, list(self)
        return frame(rows, columns=getattr(rows[0], "_fields", None)).set_index("name")


def escape_markdown(text: str) -> str:
    """Return text that Markdown shows as it is."""
    return MARKDOWN.sub(lambda match: f"\\{match[0]}", join_lines(text))


def escape_latex(text: str) -> str:
    """Return text that LaTeX prints as it is."""
    return "".join(LATEX.get(character, character) for character in join_lines(text))


def escape_cell(value: Any) -> Any:
    """Return a cell for spreadsheets, with an apostrophe before a formula, which makes it text."""
    if not isinstance(value, str):
        return value
    text = value.lstrip("'")
    is_formula = text.lstrip().startswith(FORMULA_SIGNS) or text[:1] in ("\t", "\r", "\n")
    return f"'{value}" if is_formula else value


def add_escaped(positions: dict[Any, int]) -> dict[Any, int]:
    """Return positions of ids with those of their escaped forms."""
    return {escape_cell(value): position for value, position in positions.items()} | positions
