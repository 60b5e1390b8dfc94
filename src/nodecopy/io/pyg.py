"""Graphs from and to data of PyTorch Geometric."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from nodecopy._core.arrays import Array, Bools, Singles, check_weights, deduplicate
from nodecopy._core.checks import as_array, check_finite, check_indices, check_integer, check_type
from nodecopy._core.imports import import_optional
from nodecopy._core.messages import log_decision, warn_about_data
from nodecopy.errors import InputError
from nodecopy.graph import UNLABELLED, Graph
from nodecopy.io.edge_lists import ConvertedGraph, check_library, is_asymmetric, merge_directions


def convert_pyg(data: Any, weight: str, directed: bool | None) -> ConvertedGraph:
    """Return a ``Data`` of PyTorch Geometric with its attributes."""
    check_library(data, "torch_geometric", "data")
    graph = _read_edges(data, directed, weight)
    used = {"edge_index", "adj_t", weight, "num_nodes", "batch", "ptr"}
    edge_names = [name for name in data.keys() if data.is_edge_attr(name)]  # noqa: SIM118
    names = [name for name in data.keys() if name not in used]  # noqa: SIM118
    of_nodes = [name for name in names if name in ("x", "y") and data.is_node_attr(name)]
    attributes = {name: to_numpy(data[name]) for name in of_nodes}
    if "y" in attributes:
        attributes["y"] = read_classes(attributes["y"])
    ignored = [name for name in names if name not in attributes and name not in edge_names]
    return ConvertedGraph(graph, attributes, ("y",), ("x",), edge_names, ignored)


def _read_edges(data: Any, directed: bool | None, weight_name: str) -> Graph:
    has_index = getattr(data, "edge_index", None) is not None
    if has_index:
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
    whole = Graph(deduplicate(first, second, values, (n_nodes, n_nodes)), directed=True)
    if directed is None:
        directed = is_asymmetric(whole.adjacency) or (has_index and not data.is_undirected())
        if has_index and directed and not is_asymmetric(whole.adjacency.astype(bool)):
            differ = "the weights or attributes of both directions differ"
            log_decision(f"{differ}, so that the graph is directed.", "directed")
    return merge_directions(whole, directed, file="data", n_repeated=len(first) - whole.n_edges)


def _read_transpose(adjacency: Any) -> tuple[Array, Any]:
    if hasattr(adjacency, "coo"):  # torch_sparse.SparseTensor
        target, source, weight = adjacency.coo()
    else:
        coordinates = adjacency.to_sparse_coo().coalesce()
        (target, source), weight = coordinates.indices(), coordinates.values()
    return np.stack([to_numpy(source), to_numpy(target)]), weight


def read_classes(values: Array) -> Array:
    """Return the classes of a single column or of one-hot rows, -1 for a row of zeros; others as they are."""
    if values.ndim != 2 or values.shape[1] < 2:
        return values[:, 0] if values.ndim == 2 and values.shape[1] else values
    is_one_hot = np.isin(values, (0, 1)).all() and (np.count_nonzero(values, axis=1) <= 1).all()
    return np.where(values.any(axis=1), values.argmax(axis=1), UNLABELLED) if is_one_hot else values


def read_mask(data: Any, name: str) -> Bools:
    """Return a mask of nodes; of several, one per split, the first, with a warning."""
    mask, n = to_numpy(getattr(data, name)), data.num_nodes
    if mask.ndim not in (1, 2) or len(mask) != n or mask.size < n or not np.isin(mask, (0, 1)).all():
        got = f"{mask.dtype}, {list(mask.shape)}"
        raise InputError(f"data.{name}", f"must hold a boolean for each node; got {got}.")
    if mask.size > n:
        problem = f"data.{name} holds {mask.shape[1]} splits, of which the first is used"
        warn_about_data(f"{problem}. Set data.{name} = data.{name}[:, k] to use another.")
    return mask.reshape(n, -1)[:, 0].astype(bool)


def to_numpy(tensor: Any) -> Array:
    """Return a tensor of any layout and device as an array."""
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


def to_pyg(graph: Graph) -> Any:
    """Return a graph as a ``Data``, with undirected edges in both directions.

    Features and weights are in single precision, as networks expect, and sparse features become dense. Node
    ids and label names are lost; nodes are numbered from 0.

    >>> to_pyg(Graph.from_edges([0, 1], [1, 2], labels=[0, 1, 0]))
    Data(num_nodes=3, edge_index=[2, 4], y=[3])
    """
    check_type(graph, Graph, "graph", "a Graph")
    torch = import_optional("torch", "to_pyg")
    data = import_optional("torch_geometric.data", "to_pyg").Data(num_nodes=graph.n_nodes)
    rows, features = graph.rows, graph.features
    data.edge_index = torch.from_numpy(np.stack([rows.row_numbers, rows.indices]).astype(np.int64))
    if rows.weights is not None:
        data.edge_weight = torch.from_numpy(_as_single(rows.weights, "weights"))
    if features is not None:
        dense = features.toarray() if isinstance(features, sparse.csr_array) else features
        data.x = torch.from_numpy(_as_single(dense, "features"))
    if graph.label_codes is not None:
        data.y = torch.from_numpy(graph.label_codes.copy())
    return data


def _as_single(values: Array, name: str) -> Singles:
    with np.errstate(over="ignore"):
        single = values.astype(np.float32)
    check_finite(single, f"{name} in single precision")
    return single
