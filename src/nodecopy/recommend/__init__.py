"""Recommendation (the paper's section 7): items for users, from a table of their interactions.

Read :mod:`.base` first, the contract of all recommenders. The models of :mod:`.ease` have a closed form,
computed by :mod:`.algebra` or, for many items, :mod:`.sparse_ridge`. Networks trained by pairs, and
node copying for them (Algorithms 3 and 4), are in :mod:`.bpr`. Names are imported on first use, so that only
networks need torch.
"""

from __future__ import annotations

from nodecopy._core.imports import lazy_exports

RECOMMENDERS = {  # names of the command line, and of parameters that take a recommender
    name: f"{__name__}.{kind}"
    for name, kind in {
        "popularity": "Popularity",
        "item-knn": "ItemKNN",
        "ease": "EASE",
        "copy-ease": "CopyEASE",
        "ials": "IALS",
        "bprmf": "BPRMF",
        "lightgcn": "LightGCN",
        "mgccf": "MGCCF",
    }.items()
}
__getattr__, __dir__, __all__ = lazy_exports(__name__, __file__)
