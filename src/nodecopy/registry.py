"""Names for things: a name leads to a dotted path that is imported on use."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from nodecopy.errors import InputError


def known(name: str, names: Iterable[str], what: str) -> str:
    """Return ``name`` if it is one of ``names``; otherwise an error that offers the nearest ones."""
    names = sorted(names)
    if name in names:
        return name
    nearest = get_close_matches(str(name), names, n=3, cutoff=0.5)
    hint = f" Did you mean {' or '.join(nearest)}?" if nearest else ""
    raise InputError(f"{what} must be one of {', '.join(names)}; got {name!r}.{hint}")


def resolve(name: str, paths: Mapping[str, str], what: str) -> Any:
    """Import what ``name`` stands for: ``paths`` maps names to ``module:attribute``."""
    module, _, attribute = paths[known(name, paths, what)].partition(":")
    return getattr(importlib.import_module(module), attribute)
