"""Graphs from and to NetworkX and igraph, and GraphML, GEXF and node-link JSON files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from nodecopy._core.arrays import check_weights
from nodecopy._core.checks import as_array, check_text, check_type, show
from nodecopy._core.files import PathLike, atomic_write
from nodecopy._core.imports import import_optional
from nodecopy._core.messages import log_decision
from nodecopy.errors import InputError
from nodecopy.graph import Graph
from nodecopy.io.columns import is_number, unify_ids
from nodecopy.io.edge_lists import ConvertedGraph, Duplicates, build_graph, check_library, name_nodes
from nodecopy.io.node_tables import label_array


def convert_networkx(network: Any, weight: str) -> ConvertedGraph:
    """Return a NetworkX graph with its attributes."""
    check_library(network, "networkx", "network")
    check_text(weight, "weight")
    ids, notes = name_nodes(list(network))
    graph = _build(network, ids, weight, "max")
    return ConvertedGraph(graph, _node_values(network), edge_names=_edge_names(network), notes=notes)


def _node_values(network: Any) -> dict[str, list[Any]]:
    nodes = [attributes for _, attributes in network.nodes(data=True)]
    names = dict.fromkeys(name for attributes in nodes for name in attributes)
    return {name: [attributes.get(name) for attributes in nodes] for name in names}


def _edge_names(network: Any) -> list[str]:
    return list(dict.fromkeys(name for *_, attributes in network.edges(data=True) for name in attributes))


def _build(network: Any, node_ids: ArrayLike, weight: str, duplicates: Duplicates) -> Graph:
    position_of = {node: number for number, node in enumerate(network)}
    edges = list(network.edges(data=weight, default=1.0))
    for source, target, value in edges:
        if not is_number(value):
            raise InputError(f"weight of edge {source, target} must be a number; got {show(value)}.")
    first, second = (np.array([position_of[edge[end]] for edge in edges], np.int64) for end in (0, 1))
    weights = check_weights([float(edge[2]) for edge in edges], len(edges))
    kind: dict[str, Any] = {"directed": network.is_directed(), "duplicates": duplicates}
    return build_graph(first, second, weights, as_array(node_ids, "node_ids"), **kind, file="the network")


def to_networkx(graph: Graph) -> Any:
    """Return a graph as a NetworkX ``Graph`` or ``DiGraph``, without features.

    Labels become the node attribute ``label`` of labelled nodes, weights the edge attribute ``weight``.

    >>> network = to_networkx(Graph.from_edges(["ann", "bob"], ["bob", "cleo"], labels=[0, 1, 0]))
    >>> network.nodes["bob"], list(network.edges)
    ({'label': 1}, [('ann', 'bob'), ('bob', 'cleo')])
    """
    check_type(graph, Graph, "graph", "a Graph")
    networkx = import_optional("networkx", "to_networkx")
    network = networkx.DiGraph() if graph.directed else networkx.Graph()
    network.add_nodes_from(graph.node_ids.tolist())
    labels = graph.labels
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


def read_network(
    path: Path, directed: bool | None, label: str | None, weight: str | None, duplicates: Duplicates
) -> Graph:
    """Return the graph in a GraphML, GEXF or node-link JSON file."""
    suffix = path.suffix.lower()
    networkx = import_optional("networkx", f"reading {suffix}")
    if suffix == ".json":
        network = _read_json(path, networkx)
    else:
        network = getattr(networkx, f"read_{suffix[1:]}")(path, node_type=str)
    values = _node_values(network)
    if label is not None and label not in values:
        listed = ", ".join(sorted(values)) or "none"
        raise InputError(f"there is no node attribute {label!r}; there are {listed}.")
    others = ", ".join(sorted(values.keys() - {label or "label", "viz"}))
    if label is None and _holds_names(values, suffix):
        decision = "the node attribute label holds names, not classes, and is not read"
        log_decision(f"{path.name}: {decision}; others are: {others or 'none'}.", "label")
        label = ""
    elif others:
        unset = () if label else ("label",)
        log_decision(f"{path.name}: node attributes that are not read: {others}.", *unset)
    edge_names = _edge_names(network)
    if weight is None and suffix == ".json" and "weight" not in edge_names and "value" in edge_names:
        weight = "value"  # as D3 writes it
    (ids,) = unify_ids([list(network)])
    node_ids = as_array(ids or np.zeros(0, np.int64), "ids")
    graph = _build(network, node_ids, "weight" if weight is None else weight, duplicates)
    labels = label_array(values.get("label" if label is None else label, []))
    return graph.replace(labels=labels, directed=graph.directed if directed is None else directed)


def _read_json(path: Path, networkx: Any) -> Any:
    content = json.loads(path.read_text(encoding="utf-8"))
    edges = next((name for name in ("edges", "links") if name in content), "")
    if not isinstance(content, dict) or "nodes" not in content or not edges:
        raise InputError("the file must hold node-link data, as networkx.node_link_data returns it.")
    return networkx.node_link_graph(content, edges=edges)


def _holds_names(values: dict[str, list[Any]], suffix: str) -> bool:
    """Return whether labels are names of nodes: in files of Gephi, if most of them are different."""
    is_of_gephi = suffix == ".gexf" or values.keys() >= {"r", "g", "b"}
    labels = values.get("label", [])
    return is_of_gephi and 2 * len(set(labels)) > len(labels)


def write_graphml(graph: Graph, path: PathLike) -> None:
    """Write ids, labels and weights, but no features."""
    networkx = import_optional("networkx", "writing GraphML")
    for value in [*graph.node_ids.tolist(), *(graph.label_names or ())]:
        if any(ord(character) < 32 for character in str(value)):
            raise InputError(f"a .graphml file cannot hold control characters; got {value!r}.")
    with atomic_write(path) as temporary:
        networkx.write_graphml_xml(to_networkx(graph), temporary)


def convert_igraph(network: Any, weight: str) -> ConvertedGraph:
    """Return an igraph graph with its attributes."""
    check_library(network, "igraph", "network")
    check_text(weight, "weight")
    attributes = {name: network.vs[name] for name in network.vs.attributes()}
    n_nodes = network.vcount()
    ids, notes = name_nodes(attributes.pop("name", list(range(n_nodes))))
    ends = np.array(network.get_edgelist(), np.int64).reshape(-1, 2)
    edge_names = network.es.attributes()
    given = network.es[weight] if weight in edge_names else [None] * len(ends)
    values = check_weights([1.0 if value is None else value for value in given], len(ends))
    options: dict[str, Any] = {"directed": network.is_directed(), "duplicates": "max", "file": "the network"}
    graph = build_graph(ends[:, 0], ends[:, 1], values, as_array(ids, "ids"), **options)
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
    labels = graph.labels
    if labels is not None:
        network.vs["label"] = [None if label in ("", -1) else label for label in labels.tolist()]
    return network
