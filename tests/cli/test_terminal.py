from __future__ import annotations

import io
import json
import logging
import math
from pathlib import Path

import pytest
from rich.console import Console

from nodecopy import cli
from nodecopy._core.messages import LOGGER, Hint, log_decision, warn_about_data
from nodecopy._core.parallel import track
from nodecopy.cli import output as terminal
from nodecopy.cli.output import (
    OptionNames,
    estimate_time,
    format_duration,
    format_value,
    print_error,
    print_json,
    print_note,
    print_table,
    print_warning,
    print_written,
    show_notices,
)


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


def test_notes_and_errors_are_apart_from_results(capsys: pytest.CaptureFixture[str]) -> None:
    print_error("a [dim] word")
    print_note("note [1]")
    print_written(Path("out.csv"), "table of predictions")
    print_written(None, "samples", option="--out FOLDER")
    print_written(None, "flips")
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == [
        "error: a [dim] word",
        "note [1]",
        "table of predictions written to out.csv",
        "nothing written: give --out FOLDER to write the samples",
    ]


def test_decisions_and_warnings_are_printed_once_and_kept(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with show_notices(OptionNames()):
        log_decision("read the first row as a header")
        log_decision("read the first row as a header")
        warn_about_data("few nodes have labels")
        print_json({"a": 1})
    out, err = capsys.readouterr()
    assert err.splitlines() == ["read the first row as a header", "warning: few nodes have labels"]
    expected = ["read the first row as a header", "few nodes have labels"]
    assert json.loads(out) == {"a": 1, "notices": expected}
    assert not LOGGER.handlers


@pytest.mark.parametrize(
    ("seconds", "text"), [(25, "25 seconds"), (119, "119 seconds"), (150, "2 minutes"), (9000, "2 hours")]
)
def test_durations(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


def test_a_short_run_is_not_estimated(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(estimate_time([1, 2, 3], 3, "targets")) == [1, 2, 3]
    assert capsys.readouterr().err == ""


def test_notices_name_options(capsys: pytest.CaptureFixture[str]) -> None:
    with show_notices(OptionNames(cli.import_command("stats").params)):
        log_decision("the first row is data.", Hint(header=True))
        warn_about_data("edges are repeated.", Hint("{} adds them.", duplicates="sum"), Hint(workers=3))
    assert capsys.readouterr().err.splitlines() == [
        "the first row is data. Use --header otherwise.",
        "warning: edges are repeated. --duplicates sum adds them.",
    ]


def test_notices_restore_the_level_of_the_logger() -> None:
    """It was reset, whatever the user had set."""
    level = LOGGER.level
    LOGGER.setLevel(logging.ERROR)
    try:
        with show_notices(OptionNames()):
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


def test_without_a_terminal_training_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = Console(file=io.StringIO(), force_terminal=False)
    monkeypatch.setattr(terminal, "error_console", shown)
    with terminal.show_training("training"):
        list(track([1, 2], "round"))
    assert shown.file.getvalue() == ""  # type: ignore[attr-defined]
