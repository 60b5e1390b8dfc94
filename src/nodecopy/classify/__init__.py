"""Node classification (the paper's section 5): the Bayesian GCN, and the methods it is compared with.

Names are imported when they are used, so only :class:`GraphClassifier` needs scikit-learn.
"""

from __future__ import annotations

from nodecopy._core.imports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__, __file__)
