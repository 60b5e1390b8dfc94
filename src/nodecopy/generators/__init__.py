"""Graph models and embeddings to compare node copying with.

They answer like node copying does. Read :mod:`.base` first, the contract; then one file a model:
:mod:`.classical` (compiled: :mod:`.swaps`), :mod:`.sbm` (drawn by :mod:`.block_pairs`) and :mod:`.mmsbm`
(compiled: :mod:`.pulls`); the autoencoders :mod:`.vgae`, :mod:`.graphite` and :mod:`.dglfrm`, whose losses
are in :mod:`.pairs`, over all pairs of nodes, and :mod:`.presence`, and whose samplers are in
:mod:`.edge_model`, made to fit by :mod:`.calibration`; :mod:`.cell` and :mod:`.netgan` (with :mod:`.walks`),
which learn walks and are assembled by :mod:`.assembling`. :mod:`.links` tells how well edges are predicted
that a model has not seen.
Names are imported when they are used, so that nothing but the trained ones needs torch.
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
    from nodecopy.generators.link_prediction import Links as Links
    from nodecopy.generators.link_prediction import LinkSplit as LinkSplit
    from nodecopy.generators.link_prediction import link_split as link_split
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
    "ErdosRenyi": "classical",
    "GAE": "vgae",
    "Graphite": "graphite",
    "LinkSplit": "link_prediction",
    "Links": "link_prediction",
    "MMSBM": "mmsbm",
    "NetGAN": "netgan",
    "SBM": "sbm",
    "VGAE": "vgae",
    "link_split": "link_prediction",
}

__all__ = list(_MODULES)
__getattr__, __dir__ = lazy_exports(__name__, _MODULES)
