"""Runs the code of a page of the documentation."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import pytest

from nodecopy import cli

DOCS = Path(__file__).parents[1] / "docs"


def run_blocks(page: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """Run the Python blocks and the commands of a page in order; return the names that are defined."""
    path, names = DOCS / page, dict[str, object]()
    for language, block in re.findall(
        r"```(python|sh)\n(.*?)```", path.read_text(encoding="utf-8"), re.DOTALL
    ):
        if language == "python":
            exec(compile(block, str(path), "exec"), names)
            continue
        for line in block.splitlines():
            monkeypatch.setattr(sys, "argv", shlex.split(line))
            with pytest.raises(SystemExit) as stop:
                cli.main()
            assert not stop.value.code, line
    return names
