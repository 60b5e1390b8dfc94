"""Graphs from and to igraph."""

from __future__ import annotations

from typing import Any

import numpy as np

from nodecopy._core.arrays import check_weights, deduplicate
from nodecopy._core.checks import check_text, check_type
from nodecopy._core.imports import import_optional
from nodecopy.graph import Graph
from nodecopy.io.edge_lists import ConvertedGraph, check_library, name_nodes


def from_igraph(network: Any, *, label: str = "label", weight: str = "weight") -> Graph:
    """Return the :class:`Graph` of an igraph graph, with its vertices in the same order, without features.

    Parameters
    ----------
    network
        An igraph graph. The vertex attribute ``name`` holds the node ids; without it they are 0, 1, 2, ... Of
        parallel edges the largest weight counts.
    label, weight
        Vertex attribute with labels, and edge attribute with weights; an edge without it has weight one.

    Examples
    --------
    >>> import igraph
    >>> from_igraph(igraph.Graph.Ring(5))
    Graph(5 nodes, 5 undirected edges, binary)
    """
    return convert_igraph(network, weight).with_labels(label)


def convert_igraph(network: Any, weight: str) -> ConvertedGraph:
    """Return an igraph graph; the vertex attribute ``name`` holds the ids, if it exists."""
    check_library(network, "igraph", "network")
    check_text(weight, "weight")
    attributes = {name: network.vs[name] for name in network.vs.attributes()}
    n_nodes = network.vcount()
    ids, notes = name_nodes(attributes.pop("name", list(range(n_nodes))))
    ends = np.array(network.get_edgelist(), np.int64).reshape(-1, 2)
    edge_names = network.es.attributes()
    values = np.ones(len(ends))
    if weight in edge_names:
        given = [1.0 if value is None else value for value in network.es[weight]]
        values = check_weights(given, len(ends))
    matrix = deduplicate(ends[:, 0], ends[:, 1], values, (n_nodes, n_nodes))
    graph = Graph(matrix, node_ids=ids, directed=network.is_directed())
    return ConvertedGraph(graph, attributes, edge_names=edge_names, notes=notes)


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
