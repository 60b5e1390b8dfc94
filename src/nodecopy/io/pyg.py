"""Graphs as data of PyTorch Geometric."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from nodecopy._core.checks import check_finite, check_type
from nodecopy._core.imports import import_optional
from nodecopy.graph import Graph


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
    if graph.labels is not None:
        data.y = torch.from_numpy(graph.labels.copy())
    return data


def _as_single(values: NDArray[Any], name: str) -> NDArray[np.float32]:
    """Return numbers in single precision, or raise an error if it cannot hold them."""
    with np.errstate(over="ignore"):
        single = values.astype(np.float32)
    check_finite(single, f"{name} in single precision")
    return single
