"""Graph models to compare node copying with, and splits of a graph for link prediction.

All of them are graph models (:class:`nodecopy.GraphModel`):

- :mod:`.classical` (swaps compiled in :mod:`.swap_kernels`), :mod:`.sbm`, :mod:`.dot_product` and
  :mod:`.mmsbm` (compiled in :mod:`.mmsbm_kernels`) estimate their parameters without training; :mod:`.base`
  has their common base class and :mod:`.block_pairs` samples edges between blocks;
- :mod:`.vgae`, :mod:`.graphite` and :mod:`.dglfrm` are autoencoders. :mod:`.autoencoder` trains them with
  :mod:`.losses` and samples from an :mod:`.edge_distribution`;
- :mod:`.cell` and :mod:`.netgan` (with :mod:`.walks`) learn random walks. :mod:`.edge_sampling` has their
  common training and draws their edges.

:mod:`.blockwise` computes over all pairs of nodes in blocks of rows, and :mod:`.link_prediction` holds out
edges. Names are imported when they are used, so only the trained models need torch.
"""

from __future__ import annotations

from nodecopy._core.imports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__, __file__)
