"""Imports by name: optional dependencies, lazy exports of packages, and classes of files.

This module imports neither NumPy nor SciPy, so that ``import nodecopy`` and ``nodecopy --help`` are fast.
"""

from __future__ import annotations

import ast
import importlib
import json
import sys
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any
from urllib.parse import urlparse
from urllib.request import url2pathname

from nodecopy.errors import InputError, MissingExtraError

EXTRA_OF = {
    "distributed": "cluster", "duckdb": "duckdb", "ibis": "duckdb", "igraph": "igraph",
    "implicit": "implicit", "matplotlib": "plots", "networkx": "data",
    "pandas": "tables", "pyarrow": "tables", "pyspark": "spark",
    "sklearn": "data", "torch": "torch", "torch_geometric": "pyg",
}  # fmt: skip


def import_optional(module: str, purpose: str) -> Any:
    """Import a module, or raise an error that names the extra that ``purpose`` needs."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        command = install_command(EXTRA_OF[package])
        raise MissingExtraError(f"{purpose} needs {package}, which is not installed: {command}.") from error


def install_command(extra: str) -> str:
    """Return the command that installs an extra, from a checkout if nodecopy was."""
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
    """A module that :func:`import_optional` imports when it is used."""

    def __init__(self, module: str, purpose: str) -> None:
        self.module, self.purpose = module, purpose

    def __getattr__(self, name: str) -> Any:
        return getattr(import_optional(self.module, self.purpose), name)


def lazy_exports(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` for the names in ``__init__.pyi`` (SPEC 1)."""
    stub = ast.parse(Path(file).with_suffix(".pyi").read_text(encoding="utf-8"))
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    module_of = {alias.name: str(node.module) for node in imports for alias in node.names}

    def get(name: str) -> Any:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if module_of[name] == package:  # the name stands for a module
            return importlib.import_module(f"{package}.{name}")
        return getattr(importlib.import_module(module_of[name]), name)

    return get, lambda: sorted(module_of), sorted(module_of)


def check_name(name: str, names: Iterable[str], what: str) -> str:
    """Return ``name`` if it is one of ``names``."""
    names = sorted(names)
    if name in names:
        return name
    if not names:
        raise InputError(what, f"must be left out: there is nothing to choose from; got {name!r}.")
    raise InputError(what, f"must be one of {', '.join(names)}; got {name!r}.{suggest(name, names)}")


def from_name(value: Any, table: Mapping[str, Any], what: str, on: str = "", **settings: Any) -> Any:
    """Return the object that a name stands for in a table of classes or import paths; others as they are.

    ``on`` is its device, if it has one.
    """
    if not isinstance(value, str):
        return value
    kind = table[check_name(value, table, what)]
    created = (import_member(kind, what) if isinstance(kind, str) else kind)(**settings)
    if on and hasattr(created, "device"):
        created.device = on
    return created


def suggest(name: Any, names: Iterable[str]) -> str:
    """Return a question for an error message if some names are similar to a wrong one."""
    nearest = get_close_matches(str(name), list(names), n=3, cutoff=0.5)
    return f" Did you mean {' or '.join(nearest)}?" if nearest else ""


def import_member(path: str, what: str) -> Any:
    """Import the object at ``path`` (``module.name``); errors call it ``what``."""
    module, _, name = path.rpartition(".")
    try:
        return getattr(importlib.import_module(module), name)
    except Exception as error:  # of the module of a user, anything
        if isinstance(error, ImportError) and error.name in EXTRA_OF:
            import_optional(error.name, what)
        hint = suggest(name, dir(sys.modules.get(module))) if isinstance(error, AttributeError) else ""
        raise InputError(what, f"must be importable; got {path} ({error}).{hint}") from error


def import_class(path: str, where: str) -> Any:
    """Import the class at ``path``; errors call it the class of ``where``."""
    kind = import_member(path, f"class of {where}")
    if not isinstance(kind, type):
        raise InputError(f"class of {where}", f"must be a class; got {path}, a {type(kind).__name__}.")
    return kind


def public_name(kind: type) -> str:
    """Return the dotted name of a class in the outermost package that exports it."""
    parts = kind.__module__.split(".")
    packages = [".".join(parts[:length]) for length in range(1, len(parts) + 1)]
    exporting = (name for name in packages if getattr(sys.modules.get(name), kind.__name__, None) is kind)
    return f"{next(exporting, kind.__module__)}.{kind.__qualname__}"
