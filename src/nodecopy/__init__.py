"""nodecopy: sample graphs like the one you observed, by node copying, and learn from them."""

from nodecopy.graph import Graph as Graph
from nodecopy.interactions import Interactions as Interactions
