"""Decisions made for the user, warnings about data, and text that is safe to print.

A decision (a header, a donor rule, a scaling) can be changed by a parameter. It is logged at level INFO to the
logger ``nodecopy``; the command line prints it. A warning is a :class:`~nodecopy.errors.DataWarning`.
To see decisions in Python: ``logging.basicConfig(); logging.getLogger("nodecopy").setLevel("INFO")``.
"""

from __future__ import annotations

import logging
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from nodecopy.errors import DataWarning

LOGGER = logging.getLogger("nodecopy")
PACKAGE = str(Path(__file__).parent.parent)
EVERY = "every decision"
_skipped: ContextVar[set[str] | None] = ContextVar("decisions that are not logged", default=None)


def log_decision(message: str, *parameters: Any) -> None:
    """Log what was decided for the user and why; ``parameters`` are the names of those that change it.

    The record has both as attributes beside its text, so that the command line can name options instead.
    """
    text, skipped = add_parameters(message, parameters), _skipped.get()
    if skipped is None or not {text, EVERY} & skipped:
        LOGGER.info(text, extra={"decision": message, "parameters": parameters})
    if skipped is not None:
        skipped.add(text)


def add_parameters(message: str, parameters: Sequence[Any]) -> str:
    """Return a message with a sentence about the parameters that change what it is about, if there are any.

    >>> add_parameters("The first row is a header.", ["header"])
    'The first row is a header. Set header to change this.'
    """
    if parameters and all(isinstance(name, str) for name in parameters):
        return f"{message} Set {list_alternatives(parameters)} to change this."
    return " ".join(map(str, (message, *parameters)))


def list_alternatives(words: Sequence[str]) -> str:
    """Return words with commas and "or" between them.

    >>> list_alternatives(["a", "b", "c"])
    'a, b or c'
    """
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


@contextmanager
def log_decisions_once(*skipped: str) -> Iterator[None]:
    """Log the same decision of this thread once, such as that of several classifiers about the features."""
    token = _skipped.set({*skipped, *(_skipped.get() or ())})
    try:
        yield
    finally:
        _skipped.reset(token)


def mute_decisions() -> AbstractContextManager[None]:
    """Log no decisions of this thread, such as those about files that the package wrote itself."""
    return log_decisions_once(EVERY)


@contextmanager
def mute_data_warnings() -> Iterator[None]:
    """Issue no :class:`DataWarning`, such as those about each of many graphs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        yield


def warn_about_data(message: str, *parameters: Any) -> None:
    """Issue a :class:`DataWarning` at the first caller outside the package; see :func:`log_decision`."""
    frame, level = sys._getframe(), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame, level = frame.f_back, level + 1
    warnings.warn(DataWarning(message, *parameters), stacklevel=level)


PLACEHOLDERS = {str: "NAME", int: "NUMBER"}
"""What stands for any value of a type."""


class Hint:
    """A sentence about parameters."""

    def __init__(self, text: str = "Use {} otherwise.", call: str = "", /, **parameters: Any) -> None:
        self.text, self.call = text, call
        self.parameters = parameters

    def __str__(self) -> str:
        return self.text.format(self.call) if self.call else self.format(name_parameter)

    def format(self, name: Callable[[str, Any], str | None]) -> str:
        """Return the sentence with parameters as ``name(parameter, value)`` writes them.

        Parameters for which it returns ``None`` are left out, and with them the sentence, unless ``{}``
        still stands for another one.
        """
        names = {parameter: name(parameter, value) for parameter, value in self.parameters.items()}
        existing = [text for text in names.values() if text]
        if not existing or ("{}" not in self.text and len(existing) < len(names)):
            return ""
        return self.text.format(" or ".join(existing), **names)


def name_parameter(parameter: str, value: Any) -> str:
    """Return a parameter with its value as in a call in Python."""
    if value is ...:
        return parameter
    values = value if isinstance(value, tuple) else (value,)
    return f"{parameter}={list_alternatives([_name_value(choice) for choice in values])}"


def _name_value(value: Any) -> str:
    if isinstance(value, type):
        return PLACEHOLDERS.get(value, f"{value.__name__}()")
    return repr(value)


CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters, those that change the direction of text, and halves of characters."""
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
    r"""Return text for a terminal, in which control characters are visible.

    >>> escape_controls("\x1b[2Jred")
    '\\x1b[2Jred'
    """

    def escape(match: re.Match[str]) -> str:
        return match[0] if match[0] in keep else match[0].encode("unicode_escape").decode("ascii")

    return CONTROLS.sub(escape, text)


def join_lines(text: str) -> str:
    """Return text on one line, as headings, cells and comments need it."""
    return escape_controls(" ".join(text.split()))


def escape_markdown(text: str) -> str:
    r"""Return text that Markdown shows as it is, in a cell, a heading or an entry of a list.

    >>> escape_markdown("a|b\n<i>")
    'a\\|b \\<i\\>'
    """
    return MARKDOWN.sub(lambda match: f"\\{match[0]}", join_lines(text))


def escape_latex(text: str) -> str:
    r"""Return text that LaTeX prints as it is.

    >>> escape_latex("5 %\n~x_1")
    '5 \\% \\textasciitilde{}x\\_1'
    """
    return "".join(LATEX.get(character, character) for character in join_lines(text))


def escape_cell(value: Any) -> Any:
    """Return a cell for spreadsheets, where an apostrophe before a formula makes it text.

    Formulas that have an apostrophe already get another one, so that different cells stay different.

    >>> escape_cell("=1+1")
    "'=1+1"
    """
    if not isinstance(value, str):
        return value
    text = value.lstrip("'")
    is_formula = text.lstrip().startswith(FORMULA_SIGNS) or text[:1] in ("\t", "\r", "\n")
    return f"'{value}" if is_formula else value


def add_escaped(positions: dict[Any, int]) -> dict[Any, int]:
    """Return the positions of ids, by id and by its escaped form."""
    return {escape_cell(value): position for value, position in positions.items()} | positions
