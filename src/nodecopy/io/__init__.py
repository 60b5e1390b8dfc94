"""Reading and writing graphs and interactions; the suffix of a file selects the format.

``.mtx``, ``.gexf``, ``.json`` and ``.inter`` files can only be read. See :func:`read_graph` and
:func:`read_interactions` for the formats.
"""

from nodecopy._core.files import is_table as is_table
from nodecopy.io.convert import GraphLike as GraphLike
from nodecopy.io.convert import InteractionsLike as InteractionsLike
from nodecopy.io.convert import as_graph as as_graph
from nodecopy.io.convert import as_interactions as as_interactions
from nodecopy.io.convert import convert_data as convert_data
from nodecopy.io.convert import convert_graph as convert_graph
from nodecopy.io.convert import convert_interactions as convert_interactions
from nodecopy.io.convert import training_nodes as training_nodes
from nodecopy.io.graphs import read_contacts as read_contacts
from nodecopy.io.graphs import read_graph as read_graph
from nodecopy.io.graphs import read_interactions as read_interactions
from nodecopy.io.graphs import write_graph as write_graph
from nodecopy.io.graphs import write_interactions as write_interactions
from nodecopy.io.networks import to_networkx as to_networkx
from nodecopy.io.node_tables import FeatureEncoder as FeatureEncoder
