"""Graphs and interactions from the objects of other libraries, which are recognised without being imported.

Read :mod:`.as_graph` first. :mod:`.library_graphs` converts the graphs of other libraries, and
:mod:`.node_values` brings labels and features into the order of the nodes.
"""

from nodecopy.conversion.as_graph import GraphLike as GraphLike
from nodecopy.conversion.as_graph import InteractionsLike as InteractionsLike
from nodecopy.conversion.as_graph import as_graph as as_graph
from nodecopy.conversion.as_graph import as_interactions as as_interactions
from nodecopy.conversion.as_graph import convert_data as convert_data
from nodecopy.conversion.as_graph import convert_graph as convert_graph
from nodecopy.conversion.as_graph import convert_interactions as convert_interactions
from nodecopy.conversion.as_graph import from_igraph as from_igraph
from nodecopy.conversion.as_graph import from_networkx as from_networkx
from nodecopy.conversion.as_graph import from_pyg as from_pyg
from nodecopy.conversion.as_graph import training_nodes as training_nodes
