"""PyTorch Geometric in and out."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from scipy import sparse

from nodecopy import Graph
from nodecopy.errors import InputError
from nodecopy.interop.pyg import from_pyg, to_pyg
from tests.strategies import graphs

with warnings.catch_warnings():  # torch_geometric uses what torch has deprecated
    warnings.simplefilter("ignore")
    torch = pytest.importorskip("torch")
    Data = pytest.importorskip("torch_geometric.data").Data


@settings(max_examples=40, deadline=None)
@given(graph=graphs())
def test_all_but_ids_and_names_come_back(graph: Graph) -> None:
    features = graph.features.toarray() if isinstance(graph.features, sparse.csr_array) else graph.features
    expected = Graph(graph.adjacency, features, graph.labels, directed=graph.directed)
    data = to_pyg(graph)
    assert data.num_nodes == graph.n_nodes
    assert data.edge_index.shape == (2, graph.rows.n_entries)
    assert from_pyg(data, directed=graph.directed) == expected


def test_symmetry_decides_direction() -> None:
    both = Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=3)
    one = Data(edge_index=torch.tensor([[0], [1]]), num_nodes=3)
    assert not from_pyg(both).directed
    assert from_pyg(one).directed
    assert from_pyg(one, directed=False) == from_pyg(both)


def test_duplicates_take_the_largest_weight() -> None:
    data = Data(
        edge_index=torch.tensor([[0, 0, 1], [1, 1, 0]]),
        edge_weight=torch.tensor([1.0, 3.0, 2.0]),
        num_nodes=2,
    )
    assert from_pyg(data, directed=True).adjacency.toarray().tolist() == [[0, 3], [2, 0]]


def test_labels_stay_unknown_and_lose_a_second_dimension() -> None:
    data = Data(edge_index=torch.zeros((2, 0), dtype=torch.long), y=torch.tensor([[-1], [2]]), num_nodes=2)
    labels = from_pyg(data).labels
    assert labels is not None
    assert labels.tolist() == [-1, 2]


def test_sparse_features_come_in() -> None:
    data = Data(edge_index=torch.tensor([[0], [1]]), x=torch.eye(2).to_sparse(), num_nodes=2)
    np.testing.assert_array_equal(from_pyg(data, directed=True).features, np.eye(2))


def test_the_tensors_are_copies() -> None:
    graph = Graph([[0, 2.0], [2.0, 0]], np.ones((2, 1)), [0, 1])
    data = to_pyg(graph)
    for tensor in (data.edge_weight, data.x, data.y):
        tensor.zero_()
    assert graph == Graph([[0, 2.0], [2.0, 0]], np.ones((2, 1)), [0, 1])


@pytest.mark.parametrize(
    ("index", "message"),
    [
        (None, "must have an edge_index"),
        ([[0], [5]], "between 0 and 1; got 5"),
        ([[0, -1]], "shape"),
        ([[0.5], [1.0]], "must hold integers"),
    ],
)
def test_bad_edges(index: list[list[float]] | None, message: str) -> None:
    data = Data(edge_index=None if index is None else torch.tensor(index), num_nodes=2)
    with pytest.raises(InputError, match=message):
        from_pyg(data, directed=True)


def test_bad_weights() -> None:
    data = Data(edge_index=torch.tensor([[0], [1]]), edge_weight=torch.tensor([-1.0]), num_nodes=2)
    with pytest.raises(InputError, match="must not be negative"):
        from_pyg(data)
