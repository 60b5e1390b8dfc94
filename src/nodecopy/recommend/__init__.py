"""Recommendation (the paper's section 7): what a user may like, from who took what.

Read :mod:`.base` first, the contract of all recommenders. Closed forms: :mod:`.simple`, :mod:`.linear`
and, with node copying inside, :mod:`.copy_ease`. Trained by pairs: :mod:`.bpr` and the networks on it;
:mod:`.copied_graphs` puts node copying on top of them (Algorithms 3 and 4). Names are imported when they
are used, so that nothing but the trained ones needs torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodecopy._core.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from nodecopy.recommend.base import Recommender as Recommender
    from nodecopy.recommend.copied_graphs import EnsembleBPR as EnsembleBPR
    from nodecopy.recommend.copied_graphs import SampledGraphBPR as SampledGraphBPR
    from nodecopy.recommend.copy_ease import CopyEASE as CopyEASE
    from nodecopy.recommend.ease import EASE as EASE
    from nodecopy.recommend.fusion import Fusion as Fusion
    from nodecopy.recommend.ials import IALS as IALS
    from nodecopy.recommend.networks import BPRMF as BPRMF
    from nodecopy.recommend.networks import MGCCF as MGCCF
    from nodecopy.recommend.networks import LightGCN as LightGCN
    from nodecopy.recommend.saving import load as load
    from nodecopy.recommend.simple import ItemKNN as ItemKNN
    from nodecopy.recommend.simple import Popularity as Popularity

_MODULES = {
    "BPRMF": "networks",
    "CopyEASE": "copy_ease",
    "EASE": "ease",
    "EnsembleBPR": "copied_graphs",
    "Fusion": "fusion",
    "IALS": "ials",
    "ItemKNN": "simple",
    "LightGCN": "networks",
    "MGCCF": "networks",
    "Popularity": "simple",
    "Recommender": "base",
    "SampledGraphBPR": "copied_graphs",
    "load": "saving",
}

__all__ = list(_MODULES)
__getattr__, __dir__ = lazy_exports(__name__, _MODULES)
