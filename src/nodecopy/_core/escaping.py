"""Text from outside in output: what means something to a terminal, a format or a spreadsheet is escaped."""

from __future__ import annotations

import re
from typing import Any

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
    """Return the cell of a table for spreadsheets, where an apostrophe keeps text from being a formula.

    Such text with an apostrophe gets another one, so that different cells stay different.

    >>> escape_cell("=1+1")
    "'=1+1"
    """
    if not isinstance(value, str):
        return value
    text = value.lstrip("'")
    is_formula = text.lstrip().startswith(FORMULA_SIGNS) or text[:1] in ("\t", "\r", "\n")
    return f"'{value}" if is_formula else value


def add_escaped(positions: dict[Any, int]) -> dict[Any, int]:
    """Return the positions of ids, by id and by what :func:`escape_cell` writes for it."""
    return {escape_cell(value): position for value, position in positions.items()} | positions
