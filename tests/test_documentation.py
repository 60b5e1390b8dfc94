"""The generated parts of the documentation: pages of commands and pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("matplotlib")

from docs import model_pictures, result_pictures
from docs.reference_pages import describe_commands, render_command
from nodecopy import cli


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
