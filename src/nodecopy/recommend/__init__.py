"""Recommendation (the paper's section 7): items for users, from a table of their interactions.

Read :mod:`.base` first, the contract of all recommenders. Every other recommender has a module of its own.
Networks trained by pairs build on :mod:`.bpr`; :mod:`.ensemble_bpr` and :mod:`.sampled_graph_bpr` add node
copying to them (Algorithms 3 and 4), and :mod:`.copy_ease` adds it to EASE. Names are imported on first use,
so that only networks need torch.
"""

from __future__ import annotations

from nodecopy._core.imports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__, __file__)
