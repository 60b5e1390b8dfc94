"""nodecopy: sample graphs like the one you observed, by node copying, and learn from them.

Names are imported when they are used, so that ``import nodecopy`` stays light.
"""

from __future__ import annotations

import importlib
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nodecopy import datasets as datasets
    from nodecopy.copying import Balanced as Balanced
    from nodecopy.copying import Jaccard as Jaccard
    from nodecopy.copying import NearestNeighbours as NearestNeighbours
    from nodecopy.copying import NodeCopying as NodeCopying
    from nodecopy.copying import SameLabel as SameLabel
    from nodecopy.copying import Weighted as Weighted
    from nodecopy.from_features import graph_from as graph_from
    from nodecopy.graph import Graph as Graph
    from nodecopy.interactions import Interactions as Interactions
    from nodecopy.io import from_networkx as from_networkx
    from nodecopy.io import from_pyg as from_pyg
    from nodecopy.io import read_graph as read_graph
    from nodecopy.io import read_interactions as read_interactions
    from nodecopy.io import to_networkx as to_networkx
    from nodecopy.io import to_pandas as to_pandas
    from nodecopy.io import to_pyg as to_pyg
    from nodecopy.io import write_graph as write_graph
    from nodecopy.io import write_interactions as write_interactions
    from nodecopy.metrics import compare as compare
    from nodecopy.metrics import statistics as statistics

HOME_OF = {
    "Balanced": "copying",
    "Graph": "graph",
    "Interactions": "interactions",
    "Jaccard": "copying",
    "NearestNeighbours": "copying",
    "NodeCopying": "copying",
    "SameLabel": "copying",
    "Weighted": "copying",
    "compare": "metrics",
    "from_networkx": "io",
    "from_pyg": "io",
    "graph_from": "from_features",
    "read_graph": "io",
    "read_interactions": "io",
    "statistics": "metrics",
    "to_networkx": "io",
    "to_pandas": "io",
    "to_pyg": "io",
    "write_graph": "io",
    "write_interactions": "io",
}

__all__ = ["datasets", *HOME_OF]
__version__ = version("nodecopy")


def __getattr__(name: str) -> Any:
    if name == "datasets":
        return importlib.import_module("nodecopy.datasets")
    if name in HOME_OF:
        return getattr(importlib.import_module(f"nodecopy.{HOME_OF[name]}"), name)
    raise AttributeError(f"module 'nodecopy' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
