"""Experiments: protocols with published numbers, a runner, a store of results and tables."""

from __future__ import annotations

from nodecopy._core.imports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__, __file__)
