"""The datasets of the paper's experiments and three embedded ones, and splits of nodes and interactions.

>>> from nodecopy import datasets
>>> datasets.load("karate")
Graph(34 nodes, 78 undirected edges, binary, 2 classes)
"""

from nodecopy.datasets.catalogue import describe as describe
from nodecopy.datasets.catalogue import fetch as fetch
from nodecopy.datasets.catalogue import load as load
from nodecopy.datasets.catalogue import load_split as load_split
from nodecopy.datasets.catalogue import names as names
from nodecopy.datasets.catalogue import verify as verify
from nodecopy.datasets.splits import Split as Split
from nodecopy.datasets.splits import fixed_split as fixed_split
from nodecopy.datasets.splits import interaction_split as interaction_split
from nodecopy.datasets.splits import label_split as label_split
from nodecopy.datasets.splits import last_item_split as last_item_split
from nodecopy.datasets.splits import read_split as read_split
from nodecopy.datasets.splits import time_split as time_split
from nodecopy.datasets.splits import user_split as user_split
from nodecopy.datasets.splits import without_test_edges as without_test_edges
