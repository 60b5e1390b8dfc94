from nodecopy import datasets as datasets
from nodecopy._core.estimator import load as load
from nodecopy.copying import Balanced as Balanced
from nodecopy.copying import Jaccard as Jaccard
from nodecopy.copying import KeepByDegree as KeepByDegree
from nodecopy.copying import NearestNeighbours as NearestNeighbours
from nodecopy.copying import NodeCopying as NodeCopying
from nodecopy.copying import SameLabel as SameLabel
from nodecopy.copying import Weighted as Weighted
from nodecopy.copying import sample_like as sample_like
from nodecopy.features import graph_from_features as graph_from_features
from nodecopy.graph import Graph as Graph
from nodecopy.interactions import Interactions as Interactions
from nodecopy.io import as_graph as as_graph
from nodecopy.io import as_interactions as as_interactions
from nodecopy.io import read_contacts as read_contacts
from nodecopy.io import read_graph as read_graph
from nodecopy.io import read_interactions as read_interactions
from nodecopy.io import to_networkx as to_networkx
from nodecopy.io import write_graph as write_graph
from nodecopy.io import write_interactions as write_interactions
from nodecopy.io.networks import to_igraph as to_igraph
from nodecopy.io.pandas import to_pandas as to_pandas
from nodecopy.io.pyg import to_pyg as to_pyg
from nodecopy.metrics import compare as compare
from nodecopy.metrics import statistics as statistics
from nodecopy.models import GraphModel as GraphModel

__all__: list[str]
__version__: str
