"""Compiled code for input of any size with numba's bounds checks, where ``NUMBA_BOUNDSCHECK=1`` is set."""

from __future__ import annotations

import pkgutil
from contextlib import suppress
from importlib import import_module
from typing import Any

import numba

import nodecopy


def force_checked_kernels() -> None:
    """Compute small input by compiled code, too, if numba checks bounds.

    Code with and without checks has the same name in a cache, so that each needs a cache of its own.
    """
    config: Any = numba.config
    if not config.BOUNDSCHECK:
        return
    if not config.CACHE_DIR:
        raise SystemExit("NUMBA_BOUNDSCHECK needs a folder of its own in NUMBA_CACHE_DIR.")
    for found in pkgutil.walk_packages(nodecopy.__path__, "nodecopy."):
        with suppress(ImportError):  # of an optional package
            module = import_module(found.name)
            for name in vars(module):
                if name.startswith("MIN_COMPILED_"):
                    setattr(module, name, 0)
