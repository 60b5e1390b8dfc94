"""Recommendation (the paper's section 7): items for users, from a table of their interactions.

Read :mod:`.base` first, the contract of all recommenders. Models with a closed form are :mod:`.popularity`,
:mod:`.item_knn`, :mod:`.ease` and, with node copying, :mod:`.copy_ease`; :mod:`.ials` alternates least
squares. Networks trained by pairs build on :mod:`.bpr`; :mod:`.ensemble_bpr` adds node copying to them
(Algorithms 3 and 4). Names are imported on first use, so that only networks need torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodecopy._core.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from nodecopy.recommend.base import Recommender as Recommender
    from nodecopy.recommend.bpr import BPRMF as BPRMF
    from nodecopy.recommend.bpr import BPRRecommender as BPRRecommender
    from nodecopy.recommend.bpr import EmbeddingNetwork as EmbeddingNetwork
    from nodecopy.recommend.copy_ease import CopyEASE as CopyEASE
    from nodecopy.recommend.ease import EASE as EASE
    from nodecopy.recommend.embeddings import EmbeddingRecommender as EmbeddingRecommender
    from nodecopy.recommend.ensemble_bpr import EnsembleBPR as EnsembleBPR
    from nodecopy.recommend.ensemble_bpr import SampledGraphBPR as SampledGraphBPR
    from nodecopy.recommend.fusion import Fusion as Fusion
    from nodecopy.recommend.ials import IALS as IALS
    from nodecopy.recommend.item_knn import ItemKNN as ItemKNN
    from nodecopy.recommend.lightgcn import LightGCN as LightGCN
    from nodecopy.recommend.mgccf import MGCCF as MGCCF
    from nodecopy.recommend.popularity import Popularity as Popularity

_MODULES = {
    "BPRMF": "bpr",
    "BPRRecommender": "bpr",
    "CopyEASE": "copy_ease",
    "EASE": "ease",
    "EmbeddingNetwork": "bpr",
    "EmbeddingRecommender": "embeddings",
    "EnsembleBPR": "ensemble_bpr",
    "Fusion": "fusion",
    "IALS": "ials",
    "ItemKNN": "item_knn",
    "LightGCN": "lightgcn",
    "MGCCF": "mgccf",
    "Popularity": "popularity",
    "Recommender": "base",
    "SampledGraphBPR": "ensemble_bpr",
}

__all__ = list(_MODULES)
__getattr__, __dir__ = lazy_exports(__name__, _MODULES)
