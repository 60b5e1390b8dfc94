from __future__ import annotations

import pytest

import nodecopy
from nodecopy.cli import sample
from tests.cli.conftest import Run


def test_version(run: Run) -> None:
    assert run("--version").out == f"nodecopy {nodecopy.__version__}\n"


def test_help_lists_the_commands(run: Run) -> None:
    text = run("--help").out
    assert all(command in text for command in ("sample", "stats", "datasets", "demo"))


def test_an_unknown_option_is_a_usage_error(run: Run) -> None:
    assert run("stats", "karate", "--frobnicate").code == 2


def test_trouble_with_files_is_told_without_a_traceback(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(sample, "write_graph", full)
    ran = run("sample", "karate", "--out", "out")
    assert ran.code == 1
    assert "No space left on device" in ran.err
