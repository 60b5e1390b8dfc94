"""The report page: sections, styles and scripts in one HTML file that needs nothing else."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from importlib.resources import files
from string import Template
from typing import Any

import nodecopy
from nodecopy._core.atomic_files import atomic_write
from nodecopy._core.formats import PathLike
from nodecopy.report.sections import Section

SCRIPTS = ("vendor/d3.min.js", "drawing.js", "graphs.js", "charts.js", "tables.js", "page.js")
"""In this order. D3, https://d3js.org, is the unchanged file of npm's d3 7.9.2 (licence: d3-LICENSE.txt)."""


def write(path: PathLike, title: str, sections: Sequence[Section], *, origin: str = "") -> None:
    """Write a page with some sections; ``origin`` says where its data come from."""
    with atomic_write(path) as temporary:
        temporary.write_text(page(title, sections, origin=origin), encoding="utf-8")


def page(title: str, sections: Sequence[Section], *, origin: str = "") -> str:
    """The HTML of a page."""
    data = {"title": title, "origin": origin, "version": nodecopy.__version__, "sections": list(sections)}
    return Template(_asset("page.html")).substitute(
        title=html.escape(title),
        style=_asset("style.css"),
        data=as_json(data),
        licence=_asset("vendor/d3-LICENSE.txt").replace("--", "- -"),
        scripts="\n".join(f"<script>{_asset(name)}</script>" for name in SCRIPTS),
    )


def as_json(data: Any) -> str:
    r"""JSON in plain ASCII that cannot end the element it stands in, whatever its texts hold.

    >>> as_json("</script><!-- é")
    '"\\u003c/script\\u003e\\u003c!-- \\u00e9"'
    """
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _asset(name: str) -> str:
    return (files("nodecopy.report") / "web" / name).read_text(encoding="utf-8")
