"""Sample graphs by node copying and learn from the samples.

Public names are imported on first use, so that ``import nodecopy`` is fast.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING

from nodecopy._core.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from nodecopy import datasets as datasets
    from nodecopy import interop as interop
    from nodecopy._core.saving import load as load
    from nodecopy.copying import Balanced as Balanced
    from nodecopy.copying import Jaccard as Jaccard
    from nodecopy.copying import NearestNeighbours as NearestNeighbours
    from nodecopy.copying import NodeCopying as NodeCopying
    from nodecopy.copying import SameLabel as SameLabel
    from nodecopy.copying import Weighted as Weighted
    from nodecopy.features import graph_from_features as graph_from_features
    from nodecopy.graph import Graph as Graph
    from nodecopy.interactions import Interactions as Interactions
    from nodecopy.interop.pandas import to_pandas as to_pandas
    from nodecopy.interop.pyg import from_pyg as from_pyg
    from nodecopy.interop.pyg import to_pyg as to_pyg
    from nodecopy.io import from_networkx as from_networkx
    from nodecopy.io import read_graph as read_graph
    from nodecopy.io import read_interactions as read_interactions
    from nodecopy.io import to_networkx as to_networkx
    from nodecopy.io import write_graph as write_graph
    from nodecopy.io import write_interactions as write_interactions
    from nodecopy.metrics import compare as compare
    from nodecopy.metrics import statistics as statistics
    from nodecopy.models import GraphModel as GraphModel

_MODULES = {
    "datasets": "datasets",
    "interop": "interop",
    "Balanced": "copying",
    "Graph": "graph",
    "Interactions": "interactions",
    "Jaccard": "copying",
    "NearestNeighbours": "copying",
    "NodeCopying": "copying",
    "load": "_core.saving",
    "GraphModel": "models",
    "SameLabel": "copying",
    "Weighted": "copying",
    "compare": "metrics",
    "from_networkx": "io",
    "from_pyg": "interop.pyg",
    "graph_from_features": "features",
    "read_graph": "io",
    "read_interactions": "io",
    "statistics": "metrics",
    "to_networkx": "io",
    "to_pandas": "interop.pandas",
    "to_pyg": "interop.pyg",
    "write_graph": "io",
    "write_interactions": "io",
}

__all__ = list(_MODULES)
__version__ = version("nodecopy")
__getattr__, __dir__ = lazy_exports(__name__, _MODULES)
