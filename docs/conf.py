"""Sphinx configuration. ``make docs`` builds the pages into docs/_build/html."""

from __future__ import annotations

import logging
import re
import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx_gallery.sorting import ExplicitOrder

import nodecopy

sys.path.insert(0, str(Path(__file__).parents[1]))

from docs import model_pictures, result_pictures
from docs.reference_pages import complete_parameters, write_command_pages, write_if_changed

GALLERY = (
    "sampling",
    "how_many_donors",
    "inference",
    "closure",
    "links",
    "few_labels",
    "uncertainty",
    "scikit_learn",
    "attack_and_defence",
    "any_network",
    "own_network",
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
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "gallery/*.ipynb", "gallery/*.py", "gallery/*.md5"]
suppress_warnings = [
    "config.cache",  # the options of the gallery contain an object that is not picklable
    "ref.python",  # Sphinx looks up the names of attributes, and several classes share "name"
]
# The styles of the theme log everything from INFO on; the build would print the decisions of every example.
logging.getLogger("nodecopy").setLevel(logging.WARNING)

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
autodoc_typehints = "none"  # the docstrings name types where they are not obvious
autodoc_member_order = "bysource"
autodoc_default_options = {
    "members": True,
    # All but those of torch modules, of named tuples and of scikit-learn's estimators.
    "inherited-members": "Module,tuple,dict,ClassifierMixin",
    "show-inheritance": True,
}
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


def write_table_pages() -> None:
    """Write a page for each results table; docs/results and docs/inference.md tell what they show.

    A new table builds without a place in the navigation (``orphan``), until a page is written about it.
    """
    (HERE / "tables").mkdir(exist_ok=True)
    paths = set(RESULTS.glob("*.md")) - {RESULTS / "README.md"}
    for page in set((HERE / "tables").glob("*.md")) - {HERE / "tables" / path.name for path in paths}:
        page.unlink()
    for path in sorted(paths):
        number, _, part = path.stem.removeprefix("table").partition("-")
        title, _, body = path.read_text(encoding="utf-8").partition("\n")
        title = title.partition(": ")[2]
        if path.stem.startswith("table"):  # of the paper
            name = f"Table {number}, {part.replace('-', ' ')}" if part else f"Table {number}"
            title = f"{name}: {title}"
        # Non-breaking spaces keep numbers together in narrow columns.
        body = re.sub(
            r"(?<=\d) (?=±)|(?<=±) |(?<=level|ahead|ehind|paper) (?=[+-])|(?<=p) (?==)|(?<=p =) ",
            "\u00a0",
            body,
        )
        write_if_changed(
            HERE / "tables" / path.name, f"---\norphan: true\n---\n\n# {title}\n\n{body.strip()}\n"
        )


def render_mathml(writer: Any, node: Any) -> None:
    """Render a formula as MathML, which browsers display without a script."""
    formula = re.sub(r"\\frac(\w)(\w)", r"\\frac{\1}{\2}", node.astext())  # docutils needs the braces
    writer.body.append(tex2mathml(formula, as_block=isinstance(node, nodes.math_block)))
    raise nodes.SkipNode


GENERATED_PAGES = {
    r"\]\(\.\./examples/(\w+)\.py\)": r"](gallery/\1.rst)",
    r"\]\(\.\./examples\)": "](gallery/index.rst)",
    r"\]\(\.\./src/nodecopy/cli/(\w+)\.py\)": r"](commands/\1.md)",
    r"\]\(\.\./\.\./results/([\w-]+)\.md\)": r"](../tables/\1.md)",
}
"""Links to files of the repository, and the pages generated from them."""
UNBUILT = re.compile(r"<!-- unbuilt -->.*?<!-- end of unbuilt -->\n", re.DOTALL)
"""What only readers of the Markdown files need."""


def rewrite_links(app: Any, page: str, source: list[str]) -> None:
    """Replace links to files of the repository by links to the pages generated from them."""
    source[0] = UNBUILT.sub("", source[0])
    for pattern, target in GENERATED_PAGES.items():
        source[0] = re.sub(pattern, target, source[0])
    source[0] = source[0].replace("](../results/README.md", "](results.md")
    for name in re.findall(r"\]\(\.\./results/([\w-]+)\.md", source[0]):
        folder = "results" if (HERE / "results" / f"{name}.md").exists() else "tables"
        source[0] = source[0].replace(f"](../results/{name}.md", f"]({folder}/{name}.md")


def skip_metadata_requests(app: Any, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool | None:
    """Leave out the methods that scikit-learn adds to estimators, whose links lead to its own pages."""
    return True if re.fullmatch("set_.*_request|get_metadata_routing", name) else None


def setup(app: Any) -> None:
    """Write the generated pages before Sphinx collects its sources, and register the functions above."""
    write_table_pages()
    write_command_pages()
    for pictures in (model_pictures, result_pictures):
        pictures.write_pictures(HERE / "pictures")
    app.add_html_math_renderer("mathml", (render_mathml, None), (render_mathml, None))
    app.connect("autodoc-skip-member", skip_metadata_requests)
    app.connect("autodoc-process-docstring", complete_parameters, priority=400)  # before napoleon's 500
    app.connect("source-read", rewrite_links)
