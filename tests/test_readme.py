"""The README's Python snippets run as printed, and its commands exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.main import get_command

from nodecopy.cli import app

README = Path(__file__).parents[1] / "README.md"
TEXT = README.read_text(encoding="utf-8")


def test_snippets_run_one_after_the_other(capsys: pytest.CaptureFixture[str]) -> None:
    snippets = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    names: dict[str, object] = {}
    for snippet in snippets:
        exec(compile(snippet, str(README), "exec"), names)
    assert len(snippets) >= 2
    assert "edge_overlap" in capsys.readouterr().out


def test_commands_and_options_exist() -> None:
    commands = get_command(app).commands  # type: ignore[attr-defined]
    lines = re.findall(r"^nodecopy (\w+)(.*)$", TEXT, re.MULTILINE)
    assert lines
    for name, rest in lines:
        known = {option for parameter in commands[name].params for option in parameter.opts}
        used = set(re.findall(r"(?<!\S)(--?[a-z][\w-]*)", rest.partition("#")[0]))
        assert used <= known


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)]+)\)", TEXT):
        assert target.startswith("https://") or (README.parent / target).exists(), target
