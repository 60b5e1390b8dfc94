"""Conversion to NetworkX, igraph, PyTorch Geometric and pandas, and node copying on their graphs.

Modules are imported on first use, so that each needs its own library only.
"""

from __future__ import annotations

from nodecopy._core.lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__, __file__)
