"""Reading and writing graphs and interactions; the suffix of a file selects the format.

=========================  ==========================================================================
``.csv``, ``.tsv``         edge lists and logs: one row per edge, commas or tabs, with or without a header
``.txt``                   the same, separated by white space; lines that start with # or % are comments
``.csv.gz`` and the like   the same, compressed
``.parquet``               the same as a Parquet table (extra ``tables``)
``.npz``                   everything in a graph; files of SciPy and of the gnn-benchmark can be read
``.graphml``               ids, labels and weights, no features (extra ``data``)
=========================  ==========================================================================
"""

from nodecopy._core.formats import is_table as is_table
from nodecopy.io.feature_tables import FeatureEncoder as FeatureEncoder
from nodecopy.io.graphs import read_graph as read_graph
from nodecopy.io.graphs import read_matrix as read_matrix
from nodecopy.io.graphs import write_graph as write_graph
from nodecopy.io.logs import read_interactions as read_interactions
from nodecopy.io.logs import write_interactions as write_interactions
from nodecopy.io.networkx_graphs import from_networkx as from_networkx
from nodecopy.io.networkx_graphs import to_networkx as to_networkx
