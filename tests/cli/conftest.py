"""Runs commands as a user does: in a new process' manner, with everything they print."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import pytest

from nodecopy import cli
from nodecopy.cli import output as terminal


@dataclass
class Ran:
    """How a command ended and what it printed."""

    code: int
    out: str
    err: str

    def ok(self) -> Self:
        """Return the run itself if the command succeeded."""
        assert self.code == 0, self.err
        return self

    def json(self) -> Any:
        """Return what was printed as JSON."""
        return json.loads(self.ok().out)


Run = Callable[..., Ran]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    """Call ``run("stats", "karate")`` inside an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(terminal.console, "_file", None)

    def command(*arguments: str | Path) -> Ran:
        monkeypatch.setattr(sys, "argv", ["nodecopy", *map(str, arguments)])
        # The background jobs of a shell ignore SIGINT.
        code, on_interrupt = 0, signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            cli.main()
        except SystemExit as stop:
            code = int(stop.code or 0)
        finally:
            signal.signal(signal.SIGINT, on_interrupt)
        return Ran(code, *capsys.readouterr())

    return command
