"""Graphs and interactions from the objects of other libraries, which are recognised without being imported.

Read :mod:`.dispatch` first. :mod:`.foreign_graphs` reads the graphs of other libraries, and
:mod:`.node_values` brings labels and features into the order of the nodes.
"""

from nodecopy.conversion.dispatch import GraphLike as GraphLike
from nodecopy.conversion.dispatch import InteractionsLike as InteractionsLike
from nodecopy.conversion.dispatch import as_data as as_data
from nodecopy.conversion.dispatch import as_graph as as_graph
from nodecopy.conversion.dispatch import as_interactions as as_interactions
from nodecopy.conversion.dispatch import training_nodes as training_nodes
from nodecopy.conversion.foreign_graphs import from_igraph as from_igraph
from nodecopy.conversion.foreign_graphs import from_pyg as from_pyg
