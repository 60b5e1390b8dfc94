"""Sphinx configuration. ``make docs`` builds the pages into docs/_build/html."""

from __future__ import annotations

import logging
import os
import re
import sys
import warnings
from importlib.metadata import metadata
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from matplotlib import pyplot
from sphinx.domains.python import PyObject
from sphinx_gallery.sorting import ExplicitOrder

import nodecopy

sys.path.insert(0, str(Path(__file__).parents[1]))

from docs import model_pictures, result_pictures, start_pictures
from docs.reference_pages import complete_parameters, split_attributes, write_command_pages, write_if_changed
from docs.result_tables.pages import documented_tables, fill_tables

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
DESCRIPTION = metadata("nodecopy")["Summary"]
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
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "sphinxext.opengraph",
]
# Where the pages are published. Only such a build needs the internet, for links to other libraries.
if url := os.environ.get("NODECOPY_DOCS_URL"):
    html_baseurl = ogp_site_url = url
    extensions.append("sphinx.ext.intersphinx")
    intersphinx_mapping = {
        "python": ("https://docs.python.org/3/", None),
        "numpy": ("https://numpy.org/doc/stable/", None),
        "scipy": ("https://docs.scipy.org/doc/scipy/", None),
        "networkx": ("https://networkx.org/documentation/stable/", None),
        "sklearn": ("https://scikit-learn.org/stable/", None),
        "torch_geometric": ("https://pytorch-geometric.readthedocs.io/en/latest/", None),
    }
ogp_social_cards = {"enable": False}
ogp_image = "benefits.png"
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
html_extra_path = ["benefits.png"]
html_css_files = ["pages.css"]
html_js_files = [("versions.js", {"defer": "defer"})]
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
strip_signature_backslash = True  # fitted attributes keep their underscores
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True


def enlarge_figures(settings: dict[str, Any], example: str) -> None:
    """Set fonts and lines of the figures of an example that are legible in its thumbnail, too."""
    pyplot.rcParams.update({"font.size": 15, "lines.linewidth": 2.5, "lines.markersize": 8})


def format_warning(message: Any, category: type[Warning], *place: object, **others: object) -> str:
    """Return the text of a warning without the path of the example."""
    return f"{category.__name__}: {message}\n"


warnings.formatwarning = format_warning


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
    "reset_modules": ("matplotlib", enlarge_figures),
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
TABLES = documented_tables()
UNBUILT = re.compile(r"<!-- unbuilt -->.*?<!-- end of unbuilt -->\n", re.DOTALL)
"""What only readers of the Markdown files need."""
INCLUDED = ("contributing", "changelog")
"""Pages that only include another file."""


def rewrite_links(app: Any, page: str, source: list[str]) -> None:
    """Fill in tables, and replace links to files of the repository by links to generated pages."""
    source[0] = fill_tables(HERE / f"{page}.md", UNBUILT.sub("", source[0]), TABLES)
    for pattern, target in GENERATED_PAGES.items():
        source[0] = re.sub(pattern, target, source[0])
    source[0] = source[0].replace("](../results/README.md", "](results.md")
    for name in re.findall(r"\]\(\.\./results/([\w-]+)\.md", source[0]):
        folder = "results" if (HERE / "results" / f"{name}.md").exists() else "tables"
        source[0] = source[0].replace(f"](../results/{name}.md", f"]({folder}/{name}.md")


def skip_metadata_requests(app: Any, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool | None:
    """Leave out the methods that scikit-learn adds to estimators, whose links lead to its own pages."""
    return True if re.fullmatch("set_.*_request|get_metadata_routing", name) else None


def write_llms_txt(app: Any, error: Exception | None) -> None:
    """Write llms.txt, a list of the pages for language models; their Markdown sources are in _sources."""
    if error or app.builder.format != "html":
        return
    lines = ["# nodecopy", "", f"> {DESCRIPTION}", "", "## Documentation", ""]
    children = app.env.toctree_includes
    for page in children["index"]:
        for name in (page, *(child for child in children.get(page, ()) if child.startswith("results/"))):
            if app.env.doc2path(name, base=False).endswith(".md") and name not in INCLUDED:
                lines.append(f"- [{app.env.titles[name].astext()}](_sources/{name}.md.txt)")
    (Path(app.outdir) / "llms.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def setup(app: Any) -> None:
    """Write the generated pages before Sphinx collects its sources, and register the functions above."""
    write_table_pages()
    write_command_pages()
    for pictures in (model_pictures, result_pictures, start_pictures):
        pictures.write_pictures(HERE / "pictures")
    for field in PyObject.doc_field_types:
        if field.name == "variable":  # fitted attributes
            field.label = "Attributes"
    app.add_html_math_renderer("mathml", (render_mathml, None), (render_mathml, None))
    app.connect("autodoc-skip-member", skip_metadata_requests)
    for rewrite in (complete_parameters, split_attributes):
        app.connect("autodoc-process-docstring", rewrite, priority=400)  # before napoleon's 500
    app.connect("source-read", rewrite_links)
    app.connect("build-finished", write_llms_txt)
