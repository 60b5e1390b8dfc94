from nodecopy.interop import igraph as igraph
from nodecopy.interop import networkx as networkx
from nodecopy.interop import pandas as pandas
from nodecopy.interop import pyg as pyg

__all__: list[str]
