"""Classes by dotted name, and names that must be among given ones."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from nodecopy.errors import InputError


def check_name(name: str, names: Iterable[str], what: str) -> str:
    """Return ``name`` if it is one of ``names``; otherwise raise an error with the most similar ones."""
    names = sorted(names)
    if name in names:
        return name
    if not names:
        raise InputError(f"{what} must be left out: there is nothing to choose from; got {name!r}.")
    nearest = get_close_matches(str(name), names, n=3, cutoff=0.5)
    hint = f" Did you mean {' or '.join(nearest)}?" if nearest else ""
    raise InputError(f"{what} must be one of {', '.join(names)}; got {name!r}.{hint}")


def import_by_name(name: str, paths: Mapping[str, str], what: str) -> Any:
    """Import and return the object of a name; ``paths`` maps names to ``module.attribute``."""
    module, _, attribute = paths[check_name(name, paths, what)].rpartition(".")
    return getattr(importlib.import_module(module), attribute)


def import_class(path: str, where: str) -> Any:
    """Import and return the class at ``path`` (``module.Class``); ``where`` names its place in errors."""
    try:
        kind = import_by_name("class", {"class": path}, "name")
    except (ImportError, AttributeError, SyntaxError) as error:
        module, _, name = path.rpartition(".")
        names = [entry for entry in dir(sys.modules.get(module)) if entry[:1].isupper()]
        nearest = get_close_matches(name, names, n=3, cutoff=0.5) if isinstance(error, AttributeError) else []
        hint = f" Did you mean {' or '.join(nearest)}?" if nearest else ""
        raise InputError(f"class of {where} must be importable; got {path} ({error}).{hint}") from error
    if not isinstance(kind, type):
        raise InputError(f"class of {where} must be a class; got {path}, a {type(kind).__name__}.")
    return kind


def public_name(kind: type) -> str:
    """Return the dotted name of a class in the outermost package that exports it.

    >>> public_name(InputError)
    'nodecopy.errors.InputError'
    """
    parts = kind.__module__.split(".")
    packages = [".".join(parts[:length]) for length in range(1, len(parts) + 1)]
    exporting = (name for name in packages if getattr(sys.modules.get(name), kind.__name__, None) is kind)
    return f"{next(exporting, kind.__module__)}.{kind.__qualname__}"
