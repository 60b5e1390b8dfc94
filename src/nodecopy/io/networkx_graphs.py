"""Conversion to and from NetworkX graphs, and GraphML files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from nodecopy._core.atomic_files import atomic_write
from nodecopy._core.formats import PathLike
from nodecopy._core.ids import deduplicate
from nodecopy._core.optional_imports import import_optional
from nodecopy.errors import InputError
from nodecopy.graph import Graph
from nodecopy.io.table_columns import is_number, unify_ids


def from_networkx(network: Any, *, label: str = "label", weight: str = "weight") -> Graph:
    """Return the :class:`Graph` of a NetworkX graph, with its nodes in the same order.

    Parameters
    ----------
    network
        A NetworkX graph whose nodes are integers or strings, which become the node ids. Of parallel edges
        the largest weight counts.
    label
        Node attribute with labels, ``"label"`` by default.
    weight
        Edge attribute with weights, ``"weight"`` by default; an edge without it has weight one.

    Examples
    --------
    >>> import networkx as nx
    >>> from_networkx(nx.path_graph(["ann", "bob", "cleo"]))
    Graph(3 nodes, 2 undirected edges, binary)
    """
    nodes = list(network.nodes)
    for node in nodes:
        if not isinstance(node, (int, np.integer, str)) or isinstance(node, bool):
            raise InputError(f"nodes of a NetworkX graph must be integers or strings; got {node!r}.")
    position_of = {node: number for number, node in enumerate(nodes)}
    edges = list(network.edges(data=weight, default=1.0))
    for source, target, value in edges:
        if not is_number(value):
            edge = f"({source!r}, {target!r})"
            raise InputError(f"weight of edge {edge} must be a number; got {value!r}.")
    first, second = (np.array([position_of[edge[end]] for edge in edges], np.int64) for end in (0, 1))
    weights = np.array([float(edge[2]) for edge in edges])
    matrix = deduplicate(first, second, weights, (len(nodes), len(nodes)))
    labels = [network.nodes[node].get(label) for node in nodes]
    return Graph(matrix, None, label_array(labels), _ids(nodes), network.is_directed())


def to_networkx(graph: Graph) -> Any:
    """Return a graph as a NetworkX ``Graph`` or ``DiGraph``, without features.

    Labels become the node attribute ``label`` of labelled nodes, weights the edge attribute ``weight``.

    >>> network = to_networkx(Graph.from_edges(["ann", "bob"], ["bob", "cleo"], labels=[0, 1, 0]))
    >>> network.nodes["bob"], list(network.edges)
    ({'label': 1}, [('ann', 'bob'), ('bob', 'cleo')])
    """
    networkx = import_optional("networkx", "to_networkx")
    network = networkx.DiGraph() if graph.directed else networkx.Graph()
    network.add_nodes_from(graph.node_ids.tolist())
    labels = graph.named_labels()
    if labels is not None:
        for node, label in zip(network.nodes, labels.tolist(), strict=True):
            if label not in ("", -1):
                network.nodes[node]["label"] = label
    source, target, weights = graph.edges()
    pairs = zip(source.tolist(), target.tolist(), strict=True)
    if weights is None:
        network.add_edges_from(pairs)
    else:
        network.add_weighted_edges_from((*pair, w) for pair, w in zip(pairs, weights.tolist(), strict=True))
    return network


def read_graphml(path: Path, directed: bool | None) -> Graph:
    """Return the graph in a GraphML file; ids are integers if all are integers in canonical form."""
    networkx = import_optional("networkx", "reading GraphML")
    graph = from_networkx(networkx.read_graphml(path, node_type=str))
    (ids,) = unify_ids([graph.node_ids.tolist()])
    return graph.replace(node_ids=_ids(ids), directed=graph.directed if directed is None else directed)


def write_graphml(graph: Graph, path: PathLike) -> None:
    """Write ids, labels and weights, but no features."""
    networkx = import_optional("networkx", "writing GraphML")
    for value in [*graph.node_ids.tolist(), *(graph.label_names or ())]:
        if any(ord(character) < 32 for character in str(value)):
            raise InputError(f"a .graphml file cannot hold control characters; got {value!r}.")
    with atomic_write(path) as temporary:
        networkx.write_graphml_xml(to_networkx(graph), temporary)


def label_array(labels: Sequence[Any]) -> ArrayLike | None:
    """Return labels, some of them ``None`` or NaN, as an array of integers or strings, or ``None``."""
    labels = [None if label != label else label for label in labels]
    present = [label for label in labels if label is not None]
    if not present:
        return None
    if all(isinstance(label, (int, np.integer)) and not isinstance(label, bool) for label in present):
        return np.array([-1 if label is None else label for label in labels], np.int64)
    return np.array(["" if label is None else str(label) for label in labels])


def _ids(nodes: list[Any]) -> ArrayLike:
    return np.array(nodes) if nodes else np.zeros(0, np.int64)
