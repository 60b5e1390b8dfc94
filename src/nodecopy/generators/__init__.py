"""Graph models to compare node copying with, and splits of a graph for link prediction.

All of them are graph models (:class:`nodecopy.GraphModel`):

- :mod:`.classical` and :mod:`.blocks` estimate their parameters without training; :mod:`.base` has their
  base class and the splits, :mod:`.kernels` their compiled parts;
- :mod:`.autoencoders` and :mod:`.dglfrm` are autoencoders, :mod:`.walks` learns random walks. :mod:`.edges`
  draws the edges of both.

Names are imported when they are used, so only the trained models need torch.
"""

from __future__ import annotations

from nodecopy._core.imports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__, __file__)
