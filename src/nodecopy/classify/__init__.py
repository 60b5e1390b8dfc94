"""Node classification (the paper's section 5): the Bayesian GCN, and the methods it is compared with.

Names are imported when they are used, so only :class:`GraphClassifier` needs scikit-learn.
"""

from __future__ import annotations

from nodecopy._core.imports import lazy_exports

CLASSIFIERS = {  # names of the command line, and of parameters that take a classifier
    name: f"{__name__}.{kind}"
    for name, kind in {
        "self-training": "SelfTraining",
        "bgcn-copy": "BayesianGCN",
        "gcn": "GCN",
        "appnp": "APPNP",
        "sbm-gcn": "SBMGCN",
        "dfnet": "DFNet",
        "mlp": "MLP",
        "label-propagation": "LabelPropagation",
        "dgi": "DGI",
        "sgc": "SGC",
    }.items()
}
__getattr__, __dir__, __all__ = lazy_exports(__name__, __file__)
