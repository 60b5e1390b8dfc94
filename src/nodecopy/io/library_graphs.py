"""Graphs of NetworkX, igraph and PyTorch Geometric, read by their own methods; nothing is imported."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nodecopy._core.arrays import check_weights, deduplicate
from nodecopy._core.checks import as_array, as_integers, check_indices, check_integer, check_text, type_name
from nodecopy.errors import InputError
from nodecopy.graph import Graph
from nodecopy.io.edge_lists import Duplicates
from nodecopy.io.networkx import build_network_graph
from nodecopy.io.node_tables import label_array


@dataclass(frozen=True)
class ConvertedGraph:
    """A graph without labels and features, its node attributes, and what is said about the conversion."""

    graph: Graph
    attributes: dict[str, Any] = field(default_factory=dict)
    label_names: tuple[str, ...] = ("label", "class")
    """Attributes that are labels by default."""
    feature_names: tuple[str, ...] = ("features", "x")
    """Attributes that are features by default."""
    edge_names: list[str] = field(default_factory=list)
    """Attributes of edges."""
    ignored: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    is_ordered: bool = True
    """Whether the nodes are in the order of the object."""

    def find_attribute(self, names: Sequence[str], is_suitable: Callable[[Any], bool]) -> str | None:
        """Return the first node attribute that exists and is suitable."""
        present = (name for name in names if name in self.attributes)
        return next((name for name in present if is_suitable(self.attributes[name])), None)

    def attribute(self, name: str, role: str) -> Any:
        """Return the values of a node attribute that the caller names."""
        if name not in self.attributes:
            names = ", ".join(self.attributes) or "none"
            raise InputError(role, f"must name node attributes; got {name!r}, where there are {names}.")
        return self.attributes[name]

    def with_labels(self, name: str) -> Graph:
        """Return the graph with the labels in a node attribute, if it exists."""
        if check_text(name, "label") not in self.attributes:
            return self.graph
        return self.graph.replace(labels=label_array(self.attributes[name]))


LIBRARIES = {"networkx": "Graph", "igraph": "Graph", "torch_geometric": "Data"}
"""Packages, and the base classes of their graphs."""


def find_library(data: Any) -> str | None:
    """Return which of the supported libraries the class of a graph comes from."""
    for kind in type(data).__mro__:
        package = kind.__module__.partition(".")[0]
        if LIBRARIES.get(package) == kind.__name__:
            return package
    return None


def _check_library(data: Any, library: str, name: str) -> None:
    if find_library(data) != library:
        raise InputError(name, f"must be a {library}.{LIBRARIES[library]}; got {type_name(data)}.")


def convert_networkx(network: Any, weight: str, duplicates: Duplicates = "max") -> ConvertedGraph:
    """Return a NetworkX graph; nodes that are neither integers nor strings have their text as ids."""
    _check_library(network, "networkx", "network")
    check_text(weight, "weight")
    ids, notes = _ids(list(network))
    nodes = [attributes for _, attributes in network.nodes(data=True)]
    names = dict.fromkeys(name for attributes in nodes for name in attributes)
    edge_names = dict.fromkeys(name for *_, attributes in network.edges(data=True) for name in attributes)
    return ConvertedGraph(
        build_network_graph(network, ids, weight, duplicates),
        {name: [attributes.get(name) for attributes in nodes] for name in names},
        edge_names=list(edge_names),
        notes=notes,
    )


def convert_igraph(network: Any, weight: str) -> ConvertedGraph:
    """Return an igraph graph; the vertex attribute ``name`` holds the ids, if it exists."""
    _check_library(network, "igraph", "network")
    check_text(weight, "weight")
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
    return ConvertedGraph(graph, attributes, edge_names=edge_names, notes=notes)


def convert_pyg(data: Any, weight: str, directed: bool | None) -> ConvertedGraph:
    """Return a ``Data`` of PyTorch Geometric, given by ``edge_index`` or ``adj_t``."""
    _check_library(data, "torch_geometric", "data")
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
    return ConvertedGraph(graph, attributes, ("y",), ("x",), edge_names, ignored)


def _read_pyg_edges(data: Any, directed: bool | None, weight_name: str = "edge_weight") -> Graph:
    if getattr(data, "edge_index", None) is not None:
        index, weight = to_numpy(data.edge_index), getattr(data, weight_name, None)
    elif getattr(data, "adj_t", None) is not None:
        index, weight = _read_transpose(data.adj_t)
    else:
        raise InputError("data", "must have an edge_index or an adj_t.")
    n_nodes = check_integer(data.num_nodes, "num_nodes of data", low=0)
    if index.ndim != 2 or len(index) != 2:
        raise InputError("edge_index", f"must have shape (2, n_edges); got {index.shape}.")
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
    if not hasattr(tensor, "detach"):
        return as_array(tensor, "attributes of data")
    is_dense = str(getattr(tensor, "layout", "torch.strided")) == "torch.strided"
    dense = (tensor if is_dense else tensor.to_dense()).detach().cpu()
    if dense.is_floating_point() and dense.dtype.itemsize < 4:  # NumPy has no type for bfloat16
        dense = dense.float()
    try:
        return np.asarray(dense.numpy())
    except (TypeError, RuntimeError) as error:  # such as quantised tensors
        raise InputError(f"attributes of data must be tensors of numbers; got {dense.dtype}.") from error


def _ids(nodes: list[Any]) -> tuple[Any, list[str]]:
    """Return integers or strings as ids, and a note where they are the texts of other objects."""
    if all(isinstance(node, (int, np.integer)) and not isinstance(node, bool) for node in nodes):
        return as_integers(nodes, "ids of nodes"), []
    texts = [str(node) for node in nodes]
    if len(set(texts)) < len(texts):
        twice = next(text for text in texts if texts.count(text) > 1)
        raise InputError("nodes", f"must have different texts, which are their ids; got {twice!r} twice.")
    if all(isinstance(node, str) for node in nodes):
        return np.array(texts), []
    return np.array(texts), [f"node ids are texts, such as {texts[0]!r}"]
