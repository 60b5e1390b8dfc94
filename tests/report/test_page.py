from __future__ import annotations

import hashlib
import json
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import nodecopy
from nodecopy.report import page
from tests.report import examples

D3 = "d1c22a6cd599ffcf470051630cc701b70edf50a3f3bbdab166a107dad02c020d"


class Elements(HTMLParser):
    """Tags with their attributes, and the text of the data element and of the title."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: dict[str, str] = {}
        self.now = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.now = dict(attrs).get("id") or tag

    def handle_endtag(self, tag: str) -> None:
        self.now = ""

    def handle_data(self, data: str) -> None:
        self.text[self.now] = self.text.get(self.now, "") + data


def test_the_data_arrive_as_they_were(tmp_path: Path) -> None:
    sections = examples.every_section(tmp_path)
    title = examples.CRAFTED[0]
    elements = Elements(page.render_page(title, sections, origin=examples.CRAFTED[1]))
    data = json.loads(elements.text["data"])
    assert data["sections"] == sections
    assert (data["title"], data["origin"]) == (title, examples.CRAFTED[1])
    assert data["version"] == nodecopy.__version__
    assert elements.text["title"] == title


def test_a_title_may_hold_what_no_file_can(tmp_path: Path) -> None:
    """It is the name of a file, in which bytes that are not UTF-8 are halves of characters."""
    page.write_page(tmp_path / "page.html", "caf\udce9.csv", [], origin="caf\udce9.csv")
    assert "<title>caf\\udce9.csv</title>" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_crafted_texts_add_no_elements(tmp_path: Path) -> None:
    plain = Elements(page.render_page("a", []))
    crafted = Elements(
        page.render_page(examples.CRAFTED[0], examples.every_section(tmp_path), origin="</script>")
    )
    assert crafted.tags == plain.tags
    assert [tag for tag, _ in plain.tags].count("script") == 1 + len(page.SCRIPTS)


def test_nothing_is_loaded_from_elsewhere() -> None:
    elements = Elements(page.render_page("a", []))
    for _, attributes in elements.tags:
        assert "src" not in attributes
        assert (attributes.get("href") or "#")[:5] in ("#", "#main", "data:")
    policy = next(attributes["content"] for _, attributes in elements.tags if attributes.get("http-equiv"))
    assert policy is not None
    assert policy.startswith("default-src 'none'")


def test_an_empty_page_is_small() -> None:
    assert len(page.render_page("a", [])) < 200_000


@given(
    st.text() | st.lists(st.floats(allow_nan=False, allow_infinity=False)) | st.sampled_from(examples.CRAFTED)
)
def test_json_survives_and_cannot_end_its_element(value: object) -> None:
    text = page.encode_json({"a": value})
    assert json.loads(text) == {"a": value}
    assert not set(text) & set("<>&")
    assert text.isascii()


def test_undefined_numbers_are_no_json() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        page.encode_json([float("nan")])


def test_a_page_is_written_whole(tmp_path: Path) -> None:
    page.write_page(tmp_path / "new" / "page.html", "Title", [])
    assert (tmp_path / "new" / "page.html").read_text(encoding="utf-8").startswith("<!doctype html>")


def test_the_drawing_library_is_the_documented_build_with_its_licence() -> None:
    folder = files("nodecopy.report") / "web" / "vendor"
    assert hashlib.sha256((folder / "d3.min.js").read_bytes()).hexdigest() == D3
    assert "Copyright 2010-2026 Mike Bostock" in (folder / "d3-LICENSE.txt").read_text(encoding="utf-8")
    assert "Permission to use, copy, modify" in page.render_page("a", [])
