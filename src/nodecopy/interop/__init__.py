"""Conversion to and from NetworkX, PyTorch Geometric and pandas."""

from nodecopy.interop import networkx as networkx
from nodecopy.interop import pandas as pandas
from nodecopy.interop import pyg as pyg
