"""Run the blocks of the first pages and of defences in order; compare what is printed with what they show."""

from __future__ import annotations

import logging
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.page_blocks import DOCS, run_blocks

for module in ("torch", "pandas", "sklearn"):
    pytest.importorskip(module)
PAGES = (
    "installation.md",
    "ten_minutes.md",
    "troubleshooting.md",
    "model.md",
    "expectations.md",
    "reproducibility.md",
    "defence.md",
)


@pytest.fixture(autouse=True)
def logger_as_before() -> Iterator[None]:
    logger, root = logging.getLogger("nodecopy"), logging.getLogger()
    level, handlers = logger.level, root.handlers.copy()
    yield
    logger.setLevel(level)
    root.handlers[:] = handlers


@pytest.mark.parametrize("page", PAGES)
def test_all_blocks_run_and_print_what_the_page_shows(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    run_blocks(page, monkeypatch)
    printed = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    text = (DOCS / page).read_text(encoding="utf-8")
    for block in re.findall(r"```text\n(.*?)```", text, re.DOTALL):
        for line in block.splitlines():
            assert any(other.startswith(line) for other in printed), line


def test_the_least_uncertain_half_is_classified_better(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names = run_blocks("ten_minutes.md", monkeypatch)
    is_correct = names["is_correct"]
    assert is_correct.mean() > 0.85  # type: ignore[attr-defined]
    assert is_correct[:67].mean() > 0.98  # type: ignore[index]


def test_the_installation_page_lists_every_extra() -> None:
    project = tomllib.loads((DOCS.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    listed = set(
        re.findall(r"^\| `(\w+)` \|", (DOCS / "installation.md").read_text(encoding="utf-8"), re.MULTILINE)
    )
    assert listed == set(project["optional-dependencies"]) - {"dev", "docs"}
