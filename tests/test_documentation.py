"""The generated parts of the documentation: pages of commands and pictures."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("matplotlib")

from docs.model_pictures import PICTURES, write_pictures
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


def test_pictures_are_the_same_in_every_build(tmp_path: Path) -> None:
    for folder in ("first", "second"):
        write_pictures(tmp_path / folder)
    for name in PICTURES:
        first, second = ((tmp_path / folder / f"{name}.svg").read_bytes() for folder in ("first", "second"))
        assert first == second
        assert len(first) > 5_000
