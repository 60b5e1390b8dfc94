"""Graphs as igraph graphs."""

from __future__ import annotations

from typing import Any

import numpy as np

from nodecopy._core.checks import check_type
from nodecopy._core.imports import import_optional
from nodecopy.graph import Graph


def to_igraph(graph: Graph) -> Any:
    """Return a graph as an igraph ``Graph``, without features.

    Ids other than 0, 1, 2, ... become the vertex attribute ``name``, labels the vertex attribute ``label``
    (``None`` for unlabelled nodes), weights the edge attribute ``weight``.

    >>> network = to_igraph(Graph.from_edges(["ann", "bob"], ["bob", "cleo"], labels=[0, 1, 0]))
    >>> network.vs["name"], network.vs["label"], network.get_edgelist()
    (['ann', 'bob', 'cleo'], [0, 1, 0], [(0, 1), (1, 2)])
    """
    check_type(graph, Graph, "graph", "a Graph")
    igraph = import_optional("igraph", "to_igraph")
    source, target, weights = graph.replace(node_ids=None).edges()
    edges = list(zip(source.tolist(), target.tolist(), strict=True))
    network = igraph.Graph(n=graph.n_nodes, edges=edges, directed=graph.directed)
    if weights is not None:
        network.es["weight"] = weights.tolist()
    if not np.array_equal(graph.node_ids, np.arange(graph.n_nodes)):
        network.vs["name"] = graph.node_ids.tolist()
    labels = graph.named_labels()
    if labels is not None:
        network.vs["label"] = [None if label in ("", -1) else label for label in labels.tolist()]
    return network
