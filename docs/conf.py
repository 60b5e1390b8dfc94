"""Sphinx configuration; ``make docs`` builds the pages into docs/_build/html."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx_gallery.sorting import ExplicitOrder

import nodecopy

GALLERY = (
    "sampling",
    "how_many_donors",
    "few_labels",
    "uncertainty",
    "attack_and_defence",
    "recommendation",
    "own_data",
    "pyg_augmentation",
)
HERE = Path(__file__).parent
RESULTS = HERE.parent / "results"

project = "nodecopy"
author = "the nodecopy authors"
release = version = nodecopy.__version__
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "gallery/*.ipynb", "gallery/*.py", "gallery/*.md5"]
suppress_warnings = ["config.cache"]  # the gallery's options hold a function

templates_path = ["_templates"]
html_theme = "furo"
html_math_renderer = "mathml"
html_title = "nodecopy"
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_show_sphinx = html_show_copyright = False

myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_typehints = "none"  # the signatures have them, the texts say what they mean
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "inherited-members": True, "show-inheritance": True}
napoleon_use_rtype = False
napoleon_use_ivar = True
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/\w+\.py",
    "within_subsection_order": ExplicitOrder([f"{name}.py" for name in GALLERY]),
    "download_all_examples": False,
    "show_memory": False,
    "write_computation_times": False,
    "plot_gallery": True,
    "abort_on_example_error": True,
    "capture_repr": (),
}


def table_pages() -> None:
    """A page for each table of results: the table, then what the notes say about it."""
    notes = re.split(r"^### ", (RESULTS / "README.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    (HERE / "tables").mkdir(exist_ok=True)
    for old in (HERE / "tables").glob("*.md"):
        old.unlink()
    for path in sorted(RESULTS.glob("table*.md")):
        number, _, part = path.stem.removeprefix("table").partition("-")
        title, _, body = path.read_text(encoding="utf-8").partition("\n")
        # Numbers stay whole where a table is narrow.
        body = re.sub(
            r"(?<=\d) (?=±)|(?<=±) |(?<=level|ahead|ehind|paper) (?=[+-])|(?<=p) (?==)|(?<=p =) ",
            "\u00a0",
            body,
        )
        name = f"Table {number}, {part}" if part else f"Table {number}"
        about = [note.partition("\n")[2].strip() for note in notes[1:] if number in note.partition("\n")[0]]
        page = [f"# {name}: {title.partition(': ')[2]}", body.strip()]
        if about:
            page += ["## Where ours differs from the paper", *about]
        page.append("What the original code does otherwise: [](../original_code.md).")
        (HERE / "tables" / path.name).write_text("\n\n".join(page) + "\n", encoding="utf-8")


def mathml(writer: Any, node: Any) -> None:
    """Formulas that browsers draw themselves, so that pages need no script from elsewhere."""
    writer.body.append(tex2mathml(node.astext(), as_block=isinstance(node, nodes.math_block)))
    raise nodes.SkipNode


def at_home(app: Any, page: str, source: list[str]) -> None:
    """Links that are right in the repository, made right in the pages."""
    text = source[0].replace("](../results/README.md", "](results.md").replace("](../results/", "](tables/")
    if not (HERE / "scale.md").exists():
        text = text.replace("\nscale\n", "\n")
    source[0] = text


def setup(app: Any) -> None:
    """Make the pages before Sphinx looks for them."""
    table_pages()
    app.add_html_math_renderer("mathml", (mathml, None), (mathml, None))
    app.connect("source-read", at_home)
