"""The generated parts of the documentation: pages of commands and pictures."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("matplotlib")

from docs import model_pictures, result_pictures
from docs.reference_pages import describe_commands, render_command
from nodecopy import cli

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted([*DOCS.glob("*.md"), *(DOCS / "results").glob("*.md"), *ROOT.glob("*.md")])
GENERATED = {DOCS / name for name in ("api", "commands", "gallery", "pictures", "tables", "_build")}
"""Folders that a build fills."""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere_before_the_pages_are_built(page: Path) -> None:
    """Pictures are generated; everything else that a page links to is in the repository."""
    for link in re.findall(r"(?<!!)\[[^]]*\]\(([^)#\s]+)", page.read_text(encoding="utf-8")):
        if "://" not in link:
            target = (page.parent / link).resolve()
            assert target.exists(), link
            assert not GENERATED & {target, *target.parents}, link


def test_every_command_has_a_page_with_all_of_its_options() -> None:
    pages = describe_commands()
    assert {name.partition(" ")[0] for name in pages} == set(cli.COMMANDS)
    for name, page in pages.items():
        text = render_command(name, page)
        assert text.startswith(f"# nodecopy {name}\n")
        for entries in page.panels.values():
            for entry in entries:
                assert f"| `{entry.names}` |" in text
        for example in page.examples:
            assert f"\n{example}\n" in text


@pytest.mark.parametrize("pictures", [model_pictures, result_pictures])
def test_pictures_are_the_same_in_every_build(pictures: Any, tmp_path: Path) -> None:
    for folder in ("first", "second"):
        pictures.write_pictures(tmp_path / folder)
    paths = sorted((tmp_path / "first").iterdir())
    assert len(paths) >= 3
    for path in paths:
        assert path.read_bytes() == (tmp_path / "second" / path.name).read_bytes()


def test_a_dot_for_every_published_cell() -> None:
    cells = result_pictures.read_cells("table3")
    assert sum(map(len, cells.values())) == 20
    assert [row["copies"] for row in cells["cora"]] == [False, False, False, False, True]
