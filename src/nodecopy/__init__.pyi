from nodecopy import datasets as datasets
from nodecopy import interop as interop
from nodecopy._core.saving import load as load
from nodecopy.conversion import as_graph as as_graph
from nodecopy.conversion import as_interactions as as_interactions
from nodecopy.conversion import from_igraph as from_igraph
from nodecopy.conversion import from_networkx as from_networkx
from nodecopy.conversion import from_pyg as from_pyg
from nodecopy.copying import Balanced as Balanced
from nodecopy.copying import Jaccard as Jaccard
from nodecopy.copying import KeepByDegree as KeepByDegree
from nodecopy.copying import NearestNeighbours as NearestNeighbours
from nodecopy.copying import NodeCopying as NodeCopying
from nodecopy.copying import SameLabel as SameLabel
from nodecopy.copying import Weighted as Weighted
from nodecopy.features import graph_from_features as graph_from_features
from nodecopy.graph import Graph as Graph
from nodecopy.interactions import Interactions as Interactions
from nodecopy.interop.igraph import to_igraph as to_igraph
from nodecopy.interop.pandas import to_pandas as to_pandas
from nodecopy.interop.pyg import to_pyg as to_pyg
from nodecopy.io import read_graph as read_graph
from nodecopy.io import read_interactions as read_interactions
from nodecopy.io import to_networkx as to_networkx
from nodecopy.io import write_graph as write_graph
from nodecopy.io import write_interactions as write_interactions
from nodecopy.metrics import compare as compare
from nodecopy.metrics import statistics as statistics
from nodecopy.models import GraphModel as GraphModel

__all__: list[str]
__version__: str
