"""Graph models to compare node copying with, and splits of a graph for link prediction.

Models in :mod:`.classical` and :mod:`.blocks` estimate their parameters without training. Names are imported
when they are used, so only the trained models need torch.
"""

from __future__ import annotations

from nodecopy._core.imports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__, __file__)
