"""Graphs of NetworkX, igraph and PyTorch Geometric, read by their own methods; nothing is imported."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nodecopy._core.ids import check_weights, deduplicate
from nodecopy._core.validation import check_indices, check_integer
from nodecopy.conversion.node_values import plain_labels
from nodecopy.errors import InputError
from nodecopy.graph import Graph
from nodecopy.io.networkx_graphs import from_networkx


@dataclass(frozen=True)
class ForeignGraph:
    """A graph without labels and features, its node attributes, and what is said about the conversion.

    ``label_names`` and ``feature_names`` are the attributes that are labels and features by default, and
    ``edge_names`` those of edges.
    """

    graph: Graph
    attributes: dict[str, Any]
    label_names: tuple[str, ...] = ("label", "class")
    feature_names: tuple[str, ...] = ("features", "x")
    edge_names: list[str] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def read_networkx(network: Any, weight: str) -> ForeignGraph:
    """Return a NetworkX graph; nodes that are neither integers nor strings have their text as ids."""
    nodes = list(network)
    ids, notes = _ids(nodes)
    edges, plain = list(network.edges(data=True)), network
    if notes:  # from_networkx reads integers and strings
        position_of = {node: number for number, node in enumerate(nodes)}
        plain = network.__class__()
        plain.add_nodes_from(range(len(nodes)))
        plain.add_edges_from((position_of[first], position_of[second], data) for first, second, data in edges)
    names = dict.fromkeys(name for _, data in network.nodes(data=True) for name in data)
    return ForeignGraph(
        from_networkx(plain, weight=weight).replace(node_ids=ids, labels=None),
        {name: [network.nodes[node].get(name) for node in nodes] for name in names},
        edge_names=list(dict.fromkeys(name for *_, data in edges for name in data)),
        notes=notes,
    )


def read_igraph(network: Any, weight: str) -> ForeignGraph:
    """Return an igraph graph; the vertex attribute ``name`` holds the ids, if it exists."""
    attributes = {name: network.vs[name] for name in network.vs.attributes()}
    n_nodes = network.vcount()
    ids, notes = _ids(attributes.pop("name", list(range(n_nodes))))
    ends = np.array(network.get_edgelist(), np.int64).reshape(-1, 2)
    edge_names = network.es.attributes()
    values = np.ones(len(ends))
    if weight in edge_names:
        given = [1.0 if value is None else value for value in network.es[weight]]
        values = check_weights(given, len(ends))
    matrix = deduplicate(ends[:, 0], ends[:, 1], values, (n_nodes, n_nodes))
    graph = Graph(matrix, node_ids=ids, directed=network.is_directed())
    return ForeignGraph(graph, attributes, edge_names=edge_names, notes=notes)


def read_pyg(data: Any, weight: str, directed: bool | None) -> ForeignGraph:
    """Return a ``Data`` of PyTorch Geometric, given by ``edge_index`` or ``adj_t``."""
    graph = _read_pyg_edges(data, directed, weight)
    used = {"edge_index", "adj_t", weight, "num_nodes", "batch", "ptr"}
    edge_names = [name for name in data.keys() if data.is_edge_attr(name)]  # noqa: SIM118
    names = [name for name in data.keys() if name not in used]  # noqa: SIM118
    attributes = {
        name: to_numpy(data[name]) for name in names if name in ("x", "y") and data.is_node_attr(name)
    }
    if "y" in attributes and attributes["y"].shape == (graph.n_nodes, 1):
        attributes["y"] = attributes["y"][:, 0]
    ignored = [name for name in names if name not in attributes and name not in edge_names]
    return ForeignGraph(graph, attributes, ("y",), ("x",), edge_names, ignored)


def from_igraph(network: Any, *, label: str = "label", weight: str = "weight") -> Graph:
    """Return the :class:`Graph` of an igraph graph, with its vertices in the same order.

    Parameters
    ----------
    network
        An igraph graph. The vertex attribute ``name`` holds the node ids; without it they are 0, 1, 2, ... Of
        parallel edges the largest weight counts.
    label
        Vertex attribute with labels, ``"label"`` by default.
    weight
        Edge attribute with weights, ``"weight"`` by default; an edge without it has weight one.

    Examples
    --------
    >>> import igraph
    >>> from_igraph(igraph.Graph.Ring(5))
    Graph(5 nodes, 5 undirected edges, binary)
    """
    foreign = read_igraph(network, weight)
    if label not in foreign.attributes:
        return foreign.graph
    return foreign.graph.replace(labels=plain_labels(foreign.attributes[label]))


def from_pyg(data: Any, *, directed: bool | None = None) -> Graph:
    """Return the :class:`Graph` of a ``Data``: ``edge_index`` or ``adj_t``, ``edge_weight``, ``x`` and ``y``.

    The graph is directed as given, by default if ``data.is_undirected()`` is false. An edge that is listed
    twice has the largest of its weights. Nodes with label -1 are unlabelled.

    >>> import torch
    >>> from torch_geometric.data import Data
    >>> from_pyg(Data(edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), num_nodes=3))
    Graph(3 nodes, 2 undirected edges, binary)
    """
    graph = _read_pyg_edges(data, directed)
    features, labels = getattr(data, "x", None), getattr(data, "y", None)
    labels = None if labels is None else to_numpy(labels)
    if labels is not None and labels.shape == (graph.n_nodes, 1):
        labels = labels[:, 0]
    return graph.replace(features=None if features is None else to_numpy(features), labels=labels)


def _read_pyg_edges(data: Any, directed: bool | None, weight_name: str = "edge_weight") -> Graph:
    if getattr(data, "edge_index", None) is not None:
        index, weight = to_numpy(data.edge_index), getattr(data, weight_name, None)
    elif getattr(data, "adj_t", None) is not None:
        index, weight = _read_transpose(data.adj_t)
    else:
        raise InputError("data must have an edge_index or an adj_t.")
    n_nodes = check_integer(data.num_nodes, "num_nodes of data", low=0)
    if index.ndim != 2 or len(index) != 2:
        raise InputError(f"edge_index must have shape (2, n_edges); got {index.shape}.")
    first, second = (check_indices(row, "edge_index", size=n_nodes) for row in index)
    values = np.ones(len(first))
    if weight is not None:
        given = to_numpy(weight)
        values = check_weights(given[:, 0] if given.shape == (len(first), 1) else given, len(first))
    matrix = deduplicate(first, second, values, (n_nodes, n_nodes))
    if directed is None:
        has_index = getattr(data, "edge_index", None) is not None
        directed = not data.is_undirected() if has_index else is_asymmetric(matrix)
    return Graph(matrix, directed=directed)


def is_asymmetric(matrix: Any) -> bool:
    """Return whether a square sparse matrix differs from its transpose."""
    return bool((matrix != matrix.T).nnz)


def _read_transpose(adjacency: Any) -> tuple[NDArray[Any], Any]:
    """Return edges and weights of a transposed adjacency, a sparse tensor of torch or of torch-sparse."""
    if hasattr(adjacency, "coo"):  # torch_sparse.SparseTensor
        target, source, weight = adjacency.coo()
        return np.stack([to_numpy(source), to_numpy(target)]), weight
    coordinates = adjacency.to_sparse_coo().coalesce()
    target, source = coordinates.indices()
    return np.stack([to_numpy(source), to_numpy(target)]), coordinates.values()


def to_numpy(tensor: Any) -> NDArray[Any]:
    """Return a tensor, dense or sparse, on any device, as an array."""
    is_dense = str(getattr(tensor, "layout", "torch.strided")) == "torch.strided"
    return np.asarray((tensor if is_dense else tensor.to_dense()).detach().cpu().numpy())


def _ids(nodes: list[Any]) -> tuple[Any, list[str]]:
    """Return integers or strings as ids, and a note where they are the texts of other objects."""
    if all(isinstance(node, (int, np.integer)) and not isinstance(node, bool) for node in nodes):
        return np.array(nodes, np.int64), []
    texts = [str(node) for node in nodes]
    if len(set(texts)) < len(texts):
        twice = next(text for text in texts if texts.count(text) > 1)
        raise InputError(f"nodes must have different texts, which are their ids; got {twice!r} twice.")
    if all(isinstance(node, str) for node in nodes):
        return np.array(texts), []
    return np.array(texts), [f"node ids are texts, such as {texts[0]!r}"]
