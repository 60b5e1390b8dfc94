"""Sample graphs by node copying and learn from the samples.

Public names are imported on first use, so that ``import nodecopy`` is fast.
"""

from __future__ import annotations

from importlib.metadata import version

from nodecopy._core.imports import lazy_exports

__version__ = version("nodecopy")
__getattr__, __dir__, __all__ = lazy_exports(__name__, __file__)
