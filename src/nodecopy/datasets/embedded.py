"""Two graphs that need no files: a small one to look at and one on which copying shows its effect."""

from __future__ import annotations

import numpy as np

from nodecopy import extras
from nodecopy.graph import Graph
from nodecopy.neighbours import knn_graph

# Zachary (1977), "An information flow model for conflict and fission in small groups": each member
# and those of higher number that he or she met outside the club.
KARATE = """
1: 2 3 4 5 6 7 8 9 11 12 13 14 18 20 22 32
2: 3 4 8 14 18 20 22 31
3: 4 8 9 10 14 28 29 33
4: 8 13 14
5: 7 11
6: 7 11 17
7: 17
9: 31 33 34
10: 34
14: 34
15: 33 34
16: 33 34
19: 33 34
20: 34
21: 33 34
23: 33 34
24: 26 28 30 33 34
25: 26 28 32
26: 32
27: 30 34
28: 34
29: 32 34
30: 33 34
31: 33 34
32: 33 34
33: 34
"""
MR_HI = (1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 17, 18, 20, 22)


def karate() -> Graph:
    """Zachary's karate club; the label is the club a member joined after the split."""
    edges = []
    for line in KARATE.split("\n")[1:-1]:
        member, others = line.split(":")
        edges += [(int(member), int(other)) for other in others.split()]
    source, target = np.array(edges).T
    members = np.arange(1, 35)
    labels = np.where(np.isin(members, MR_HI), "Mr. Hi", "Officer")
    return Graph.from_edges(source, target, node_ids=members, labels=labels)


def digits() -> Graph:
    """Scikit-learn's handwritten digits, each joined with the five nearest by their 64 pixels."""
    data = extras.optional("sklearn.datasets", "The digits dataset").load_digits()
    return knn_graph(data.data.astype(np.float32), 5, labels=data.target)
