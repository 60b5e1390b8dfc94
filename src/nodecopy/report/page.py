"""The report page: sections, style and scripts in one self-contained HTML file."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from importlib.resources import files
from string import Template
from typing import Any

import nodecopy
from nodecopy._core.atomic_files import atomic_write
from nodecopy._core.escaping import join_lines
from nodecopy._core.formats import PathLike
from nodecopy.report.page_sections import Section

SCRIPTS = (
    *("vendor/d3.min.js", "drawing.js", "view_state.js", "downloads.js", "graph_painting.js", "graphs.js"),
    *("graph_details.js", "statistics.js", "classification.js", "attack.js", "recommendations.js"),
    *("results.js", "page.js"),
)
"""In the order in which they run. D3 is bundled as ``vendor/d3-subset.mjs`` says."""


def write_page(path: PathLike, title: str, sections: Sequence[Section], *, origin: str = "") -> None:
    """Write the page of some sections to an HTML file; ``origin`` is the note on where the data come from."""
    with atomic_write(path) as temporary:
        temporary.write_text(render_page(title, sections, origin=origin), encoding="utf-8")


def render_page(title: str, sections: Sequence[Section], *, origin: str = "") -> str:
    """Return the HTML of a page."""
    data = {"title": title, "origin": origin, "version": nodecopy.__version__, "sections": list(sections)}
    return Template(_read_asset("page.html")).substitute(
        title=html.escape(join_lines(title)),
        style=_read_asset("style.css"),
        data=encode_json(data),
        licence=_read_asset("vendor/d3-LICENSE.txt").replace("--", "- -"),
        scripts="\n".join(f"<script>{_read_asset(name)}</script>" for name in SCRIPTS),
    )


def encode_json(data: Any) -> str:
    r"""Return ASCII JSON that cannot end the HTML element it stands in, whatever its strings hold.

    >>> encode_json("</script><!-- é")
    '"\\u003c/script\\u003e\\u003c!-- \\u00e9"'
    """
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _read_asset(name: str) -> str:
    return (files("nodecopy.report") / "web" / name).read_text(encoding="utf-8")
