"""Optional dependencies: import them, or name the extra that installs them."""

from __future__ import annotations

import importlib
import json
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any
from urllib.parse import urlparse
from urllib.request import url2pathname

from nodecopy.errors import MissingExtraError

EXTRA_OF = {
    "distributed": "cluster",
    "duckdb": "duckdb",
    "ibis": "duckdb",
    "igraph": "igraph",
    "implicit": "implicit",
    "matplotlib": "plots",
    "networkx": "data",
    "pandas": "tables",
    "pyarrow": "tables",
    "pyspark": "spark",
    "sklearn": "data",
    "torch": "torch",
    "torch_geometric": "torch",
}


def import_optional(module: str, purpose: str) -> Any:
    """Import and return a module, or raise an error that names the extra that ``purpose`` needs."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        extra = EXTRA_OF[package]
        raise MissingExtraError(
            f"{purpose} needs {package}, which is not installed: {install_command(extra)}."
        ) from error


def install_command(extra: str) -> str:
    """Return the command that installs an extra, from the checkout that nodecopy came from, if any."""
    try:
        origin = json.loads(distribution("nodecopy").read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, ValueError):
        origin = {}
    url = urlparse(str(origin.get("url", "")))
    folder = Path(url2pathname(url.path))
    if url.scheme != "file" or not (folder / "pyproject.toml").is_file():
        return f"pip install 'nodecopy[{extra}]'"
    is_editable = origin.get("dir_info", {}).get("editable", False)
    place = "." if folder == Path.cwd() else folder
    return f"pip install {'-e ' * is_editable}'{place}[{extra}]'"


class OptionalModule:
    """A module that is imported where an attribute of it is used first, by :func:`import_optional`."""

    def __init__(self, module: str, purpose: str) -> None:
        self.module, self.purpose = module, purpose

    def __getattr__(self, name: str) -> Any:
        return getattr(import_optional(self.module, self.purpose), name)
