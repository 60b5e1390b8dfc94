"""Graph models to compare node copying with, and splits of a graph for link prediction.

All of them are graph models (:class:`nodecopy.GraphModel`):

- :mod:`.classical` (swaps compiled in :mod:`.swap_kernels`), :mod:`.sbm` and :mod:`.mmsbm` (compiled in
  :mod:`.mmsbm_kernels`) estimate their parameters without training; :mod:`.base` has their common base class
  and :mod:`.block_pairs` samples edges between blocks;
- :mod:`.vgae`, :mod:`.graphite` and :mod:`.dglfrm` are autoencoders. :mod:`.autoencoder` trains them with the
  losses of :mod:`.pair_loss` and :mod:`.presence_loss` and samples from an :mod:`.edge_distribution`, after
  :mod:`.calibration`;
- :mod:`.cell` and :mod:`.netgan` (with :mod:`.walks`) learn random walks. :mod:`.edge_sampling` has their
  common training and draws their edges.

:mod:`.blockwise` computes over all pairs of nodes in blocks of rows, and :mod:`.link_prediction` holds out
edges. Names are imported when they are used, so only the trained models need torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodecopy._core.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from nodecopy.generators.cell import CELL as CELL
    from nodecopy.generators.classical import BarabasiAlbert as BarabasiAlbert
    from nodecopy.generators.classical import ChungLu as ChungLu
    from nodecopy.generators.classical import ConfigurationModel as ConfigurationModel
    from nodecopy.generators.classical import ErdosRenyi as ErdosRenyi
    from nodecopy.generators.dglfrm import DGLFRM as DGLFRM
    from nodecopy.generators.dglfrm import DGLFRMB as DGLFRMB
    from nodecopy.generators.graphite import Graphite as Graphite
    from nodecopy.generators.link_prediction import EdgeSplit as EdgeSplit
    from nodecopy.generators.link_prediction import HeldOutEdges as HeldOutEdges
    from nodecopy.generators.link_prediction import split_edges as split_edges
    from nodecopy.generators.mmsbm import MMSBM as MMSBM
    from nodecopy.generators.netgan import NetGAN as NetGAN
    from nodecopy.generators.sbm import SBM as SBM
    from nodecopy.generators.sbm import DegreeCorrectedSBM as DegreeCorrectedSBM
    from nodecopy.generators.vgae import GAE as GAE
    from nodecopy.generators.vgae import VGAE as VGAE

_MODULES = {
    "BarabasiAlbert": "classical",
    "CELL": "cell",
    "ChungLu": "classical",
    "ConfigurationModel": "classical",
    "DGLFRM": "dglfrm",
    "DGLFRMB": "dglfrm",
    "DegreeCorrectedSBM": "sbm",
    "EdgeSplit": "link_prediction",
    "ErdosRenyi": "classical",
    "GAE": "vgae",
    "Graphite": "graphite",
    "HeldOutEdges": "link_prediction",
    "MMSBM": "mmsbm",
    "NetGAN": "netgan",
    "SBM": "sbm",
    "VGAE": "vgae",
    "split_edges": "link_prediction",
}

__all__ = list(_MODULES)
__getattr__, __dir__ = lazy_exports(__name__, _MODULES)
