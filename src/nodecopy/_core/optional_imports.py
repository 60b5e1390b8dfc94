"""Optional dependencies: import them, or name the extra that installs them."""

from __future__ import annotations

import importlib
from typing import Any

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
    "threadpoolctl": "implicit",
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
            f"{purpose} needs {package}, which is not installed: pip install 'nodecopy[{extra}]'."
        ) from error


class OptionalModule:
    """A module that is imported where an attribute of it is used first, by :func:`import_optional`."""

    def __init__(self, module: str, purpose: str) -> None:
        self.module, self.purpose = module, purpose

    def __getattr__(self, name: str) -> Any:
        return getattr(import_optional(self.module, self.purpose), name)
