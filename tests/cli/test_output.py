from __future__ import annotations

import io
import json
import logging
import math

import pytest
from rich.console import Console

from nodecopy._core.messages import LOGGER, log_decision, warn_about_data
from nodecopy._core.parallel import track
from nodecopy.cli import output as terminal
from nodecopy.cli.output import (
    describe_error,
    format_value,
    print_error,
    print_json,
    print_note,
    print_table,
    print_warning,
    show_notices,
)
from nodecopy.errors import InputError


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("as it is", "as it is"),
        (1234567, "1,234,567"),
        (1234.0, "1,234"),
        (12.0, "12"),
        (0.123456, "0.1235"),
        (math.nan, "-"),
        (math.inf, "inf"),
    ],
)
def test_values(value: str | float, text: str) -> None:
    assert format_value(value) == text


def test_tables_align_numbers_to_the_right(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [["a", "1"], ["[bold]b", "-"], ["c" * 90, "1,000"]]
    print_table(["name", "value"], rows)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines] == [
        ["name", "value"],
        ["a", "1"],
        ["[bold]b", "-"],
        ["c" * 90, "1,000"],
    ]
    assert {len(line) for line in lines} == {97}
    assert lines[1].startswith("a ")


def test_control_characters_do_not_reach_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    name = "a\x1b]0;title\x07\x9b2J\r\u202eb\udc80\\\\[red]"
    print_table(["name"], [[f"{name}\n"]])
    for show in (print_error, print_note, print_warning):
        show(f"{name}\nmore")
    out, err = capsys.readouterr()
    shown = r"a\x1b]0;title\x07\x9b2J\r\u202eb\udc80\\[red]"
    assert out.splitlines() == ["name", shown + r"\n"]
    assert err.splitlines() == [f"error: {shown}", "more", shown, "more", f"warning: {shown}", "more"]


def test_json_has_null_in_place_of_undefined_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"a": [1.5, math.nan], "b": ({"c": math.inf},)})
    assert json.loads(capsys.readouterr().out) == {"a": [1.5, None], "b": [{"c": None}]}


def test_decisions_and_warnings_are_printed_once_and_kept(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with show_notices():
        log_decision("read the first row as a header")
        log_decision("read the first row as a header")
        warn_about_data("few nodes have labels")
        print_json({"a": 1})
    out, err = capsys.readouterr()
    assert err.splitlines() == ["read the first row as a header", "warning: few nodes have labels"]
    expected = ["read the first row as a header", "few nodes have labels"]
    assert json.loads(out) == {"a": 1, "notices": expected}
    assert not LOGGER.handlers


def test_notices_and_errors_name_options(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--header", "--duplicates", "--exponent", "--scale-features"]
    with show_notices(options):
        log_decision("the first row is data.", "header")
        warn_about_data("edges are repeated.", "duplicates", "workers")
        log_decision("columns are standardised.", "features", "header")
        log_decision("nothing to change.", "workers")
    assert capsys.readouterr().err.splitlines() == [
        "the first row is data. Use --header to change this.",
        "warning: edges are repeated. Use --duplicates to change this.",
        "columns are standardised. Use --scale-features or --header to change this.",
        "nothing to change.",
    ]
    assert (
        describe_error(InputError("n_steps of VGAE", "must be 3."), options) == "n_steps of VGAE must be 3."
    )


def test_notices_restore_the_level_of_the_logger() -> None:
    """It was reset, whatever the user had set."""
    level = LOGGER.level
    LOGGER.setLevel(logging.ERROR)
    try:
        with show_notices():
            assert LOGGER.level == logging.INFO
        assert LOGGER.level == logging.ERROR
    finally:
        LOGGER.setLevel(level)


def test_training_shows_a_bar_that_moves_with_the_reported_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = Console(file=io.StringIO(), force_terminal=True, width=80)
    monkeypatch.setattr(terminal, "error_console", shown)
    with terminal.show_training("training"):
        for _ in track([1, 2], "round"):
            shown.print("a note")
    written = shown.file.getvalue()  # type: ignore[attr-defined]
    assert "round 2 of 2" in written
    assert written.count("a note") == 2
