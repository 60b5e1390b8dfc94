"""PyTorch Geometric's ``Data`` in and out."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from nodecopy import checks
from nodecopy.entries import edge_weights, without_duplicates
from nodecopy.errors import InputError
from nodecopy.extras import optional
from nodecopy.graph import Graph


def from_pyg(data: Any, *, directed: bool | None = None) -> Graph:
    """Turn a ``Data`` into a :class:`Graph`: ``edge_index``, ``edge_weight``, ``x`` and ``y``.

    Where ``directed`` is ``None``, ``data.is_undirected()`` decides. An edge that is listed twice takes
    the largest of its weights; a label of -1 stays unknown.

    >>> import torch
    >>> from torch_geometric.data import Data
    >>> from_pyg(Data(edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), num_nodes=3))
    Graph(3 nodes, 2 undirected edges, binary)
    """
    if getattr(data, "edge_index", None) is None:
        raise InputError("data must have an edge_index.")
    n_nodes = checks.integer(data.num_nodes, "num_nodes of data", low=0)
    index = _numpy(data.edge_index)
    if index.ndim != 2 or len(index) != 2:
        raise InputError(f"edge_index must have shape (2, n_edges); got {index.shape}.")
    first, second = (checks.indices(row, "edge_index", size=n_nodes) for row in index)
    weight = getattr(data, "edge_weight", None)
    values = np.ones(len(first)) if weight is None else edge_weights(_numpy(weight), len(first))
    features, labels = getattr(data, "x", None), getattr(data, "y", None)
    labels = None if labels is None else _numpy(labels)
    if labels is not None and labels.shape == (n_nodes, 1):
        labels = labels[:, 0]
    return Graph(
        without_duplicates(first, second, values, (n_nodes, n_nodes)),
        None if features is None else _numpy(features),
        labels,
        directed=not data.is_undirected() if directed is None else directed,
    )


def to_pyg(graph: Graph) -> Any:
    """Turn a graph into a ``Data``; an undirected edge stands there in both directions.

    Sparse features become dense. Nodes are known by their numbers: ids and label names stay behind.

    >>> to_pyg(Graph.from_edges([0, 1], [1, 2], labels=[0, 1, 0]))
    Data(num_nodes=3, edge_index=[2, 4], y=[3])
    """
    torch = optional("torch", "to_pyg")
    data = optional("torch_geometric.data", "to_pyg").Data(num_nodes=graph.n_nodes)
    rows, features = graph.rows, graph.features
    data.edge_index = torch.from_numpy(np.stack([rows.row_numbers, rows.indices]).astype(np.int64))
    if rows.weights is not None:
        data.edge_weight = torch.from_numpy(rows.weights.copy())
    if features is not None:
        dense = features.toarray() if isinstance(features, sparse.csr_array) else features.copy()
        data.x = torch.from_numpy(dense)
    if graph.labels is not None:
        data.y = torch.from_numpy(graph.labels.copy())
    return data


def _numpy(tensor: Any) -> NDArray[Any]:
    dense = tensor.to_dense() if tensor.layout != optional("torch", "from_pyg").strided else tensor
    return np.asarray(dense.detach().cpu().numpy())
