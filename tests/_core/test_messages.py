"""Decisions, warnings, and text that is safe to print."""

from __future__ import annotations

import logging

import pytest

from nodecopy._core.messages import (
    LOGGER,
    add_escaped,
    escape_cell,
    escape_controls,
    escape_latex,
    escape_markdown,
    log_decision,
    log_decisions_once,
    mute_decisions,
    warn_about_data,
)
from nodecopy.errors import DataWarning


def test_warnings_name_the_first_caller_outside_the_package() -> None:
    with pytest.warns(DataWarning, match="few labels") as caught:
        warn_about_data("few labels")
    assert caught[0].filename == __file__


def test_decisions_are_muted_for_a_while(caplog: pytest.LogCaptureFixture) -> None:
    with mute_decisions():
        log_decision("muted")
    log_decision("logged")
    assert caplog.messages == ["logged"]


def test_the_same_decision_is_logged_once_for_a_while(caplog: pytest.LogCaptureFixture) -> None:
    with log_decisions_once():
        for decision in ("rows are scaled", "weights are ignored", "rows are scaled"):
            log_decision(decision)
        LOGGER.warning("rows are scaled")
    log_decision("rows are scaled")
    decisions = [record.getMessage() for record in caplog.records if record.levelno == logging.INFO]
    assert decisions == ["rows are scaled", "weights are ignored", "rows are scaled"]
    assert len(caplog.records) == 4  # warnings are never dropped


@pytest.mark.parametrize("number", [*range(32), 127, 0x9B, 0x202E, 0x2028, 0x2066, 0xDC80])
def test_control_characters_are_visible(number: int) -> None:
    text = escape_controls(f"a{chr(number)}b")
    assert text.isprintable()
    assert text.isascii()
    assert text.startswith("a\\")
    text.encode()


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("BGCN (copying), 5 %", "BGCN (copying), 5 %"),
        ("a\n# b\r\n\tc", "a # b c"),
        ("# a", "\\# a"),
        ("- a", "\\- a"),
        ("-1", "-1"),
        (
            "*a* _b_ `c` [d](e) <f> | &lt; ~g~ \\",
            r"\*a\* \_b\_ \`c\` \[d\](e) \<f\> \| \&lt; \~g\~ " + "\\" * 2,
        ),
    ],
)
def test_markdown(text: str, escaped: str) -> None:
    assert escape_markdown(text) == escaped


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("5 % & #1 {a} x_1 $y$", r"5 \% \& \#1 \{a\} x\_1 \$y\$"),
        ("a\n\\input{b}", r"a \textbackslash{}input\{b\}"),
        ("~^", r"\textasciitilde{}\textasciicircum{}"),
        ("<|>", r"\textless{}\textbar{}\textgreater{}"),
        ("\x1b", r"\textbackslash{}x1b"),
    ],
)
def test_latex(text: str, escaped: str) -> None:
    assert escape_latex(text) == escaped


def test_no_cell_for_spreadsheets_is_a_formula() -> None:
    texts = ["=1+1", "+1", "-1", "@a", "\t=1", " =1", "\r1", "＝1"]  # noqa: RUF001
    assert [escape_cell(text) for text in texts] == [f"'{text}" for text in texts]
    assert [escape_cell(value) for value in ("a=1", -1, None, "")] == ["a=1", -1, None, ""]


def test_escaped_ids_stay_different_and_are_found_again() -> None:
    ids = ["=1", "'=1", "''=1", "'a", "b"]
    assert len({escape_cell(name) for name in ids}) == len(ids)
    positions = add_escaped({name: number for number, name in enumerate(ids[::2])})
    assert [positions[escape_cell(name)] for name in ids[::2]] == [0, 1, 2]
    assert add_escaped({"=1": 0, "'=1": 1})["'=1"] == 1
