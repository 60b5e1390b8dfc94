"""Names for things: a name leads to a dotted path that is imported on use."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from nodecopy.errors import InputError


def check_name(name: str, names: Iterable[str], what: str) -> str:
    """Return ``name`` if it is one of ``names``; otherwise an error that offers the nearest ones."""
    names = sorted(names)
    if name in names:
        return name
    nearest = get_close_matches(str(name), names, n=3, cutoff=0.5)
    hint = f" Did you mean {' or '.join(nearest)}?" if nearest else ""
    raise InputError(f"{what} must be one of {', '.join(names)}; got {name!r}.{hint}")


def import_by_name(name: str, paths: Mapping[str, str], what: str) -> Any:
    """Import what ``name`` stands for: ``paths`` maps names to ``module.attribute``."""
    module, _, attribute = paths[check_name(name, paths, what)].rpartition(".")
    return getattr(importlib.import_module(module), attribute)


def import_class(path: str, where: str) -> Any:
    """The class at ``path`` (``module.Class``); errors say ``where`` it was asked for."""
    try:
        return import_by_name("class", {"class": path}, "name")
    except (ImportError, AttributeError, SyntaxError) as error:
        raise InputError(f"class of {where} must be importable; got {path} ({error}).") from error


def instantiate(name: str, path: str, settings: Mapping[str, Any], where: str) -> Any:
    """Import the class at ``path`` (``module.Class``) and make one; errors say ``where`` it was asked for."""
    make = import_class(path, where)
    try:
        return make(**settings)
    except TypeError as error:
        raise InputError(
            f"settings of {where} must be keywords of {path}; got {dict(settings)} ({error})."
        ) from error
