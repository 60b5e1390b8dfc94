from __future__ import annotations

import pytest

from nodecopy._core.parallel import report_progress, track


def test_without_a_report_items_are_passed_on() -> None:
    assert list(track([3, 1], "item")) == [3, 1]


def test_only_the_outermost_items_are_reported() -> None:
    lines: list[tuple[str, int, int]] = []
    with report_progress(lambda *line: lines.append(line)):
        for _ in track("ab", "outer"):
            assert list(track("cd", "inner")) == ["c", "d"]
        list(track("e", "next"))
    list(track("f", "later"))
    expected = [("outer 1 of 2", 0, 2), ("outer 2 of 2", 1, 2), ("outer 2 of 2", 2, 2)]
    assert lines == [*expected, ("next 1 of 1", 0, 1), ("next 1 of 1", 1, 1)]


def test_an_error_ends_the_report() -> None:
    lines: list[str] = []

    def divide() -> None:
        for number in track([1, 0], "item"):
            1 / number

    with report_progress(lambda name, *_: lines.append(name)), pytest.raises(ZeroDivisionError):
        divide()
    list(track("a", "later"))
    assert lines == ["item 1 of 2", "item 2 of 2"]
