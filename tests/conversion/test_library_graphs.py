"""Graphs of NetworkX, igraph and PyTorch Geometric."""

from __future__ import annotations

import warnings
from types import SimpleNamespace
from typing import Any

import networkx as nx
import numpy as np
import pytest

from nodecopy import Graph, as_graph, from_igraph, from_networkx, from_pyg
from nodecopy.errors import InputError
from nodecopy.io.pyg import to_numpy

igraph = pytest.importorskip("igraph")


@pytest.fixture(scope="module")
def pyg() -> Any:
    pytest.importorskip("torch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("torch_geometric.data")


def test_nodes_of_any_type_get_their_text_as_id() -> None:
    grid = nx.grid_2d_graph(2, 2)
    grid.edges[(0, 0), (0, 1)]["weight"] = 3
    graph = as_graph(grid, labels={(0, 0): "corner"})
    assert graph.node_ids.tolist() == ["(0, 0)", "(0, 1)", "(1, 0)", "(1, 1)"]
    assert graph.adjacency.toarray()[0].tolist() == [0, 3, 1, 0]
    assert np.asarray(graph.named_labels()).tolist() == ["corner", "", "", ""]
    assert from_networkx(grid) == graph.replace(labels=None)
    mixed = as_graph(nx.path_graph([1, "a"]))
    assert mixed.node_ids.tolist() == ["1", "a"]
    with pytest.raises(InputError, match=r"nodes must have different texts, .*; got '1' twice"):
        as_graph(nx.path_graph([1, "1"]))


@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph])
def test_every_kind_of_networkx_graph(kind: Any) -> None:
    network = kind()
    network.add_edge("a", (1, 2), weight=2.0)
    network.add_edge("a", (1, 2), weight=5.0)
    graph = as_graph(network)
    assert graph.directed == network.is_directed()
    assert graph.adjacency.toarray()[0].tolist() == [0, 5]


def test_igraph_with_names_weights_and_labels() -> None:
    network = igraph.Graph([(0, 1), (1, 2), (0, 1)], directed=True)
    network.vs["name"], network.vs["label"] = ["x", "y", "z"], ["a", None, "a"]
    network.es["weight"], network.es["since"] = [1.0, None, 4.0], [1, 2, 3]
    expected = Graph([[0, 4, 0], [0, 0, 1], [0, 0, 0]], None, ["a", "", "a"], ["x", "y", "z"], directed=True)
    assert from_igraph(network) == expected
    plain = from_igraph(network, label="none", weight="none")
    assert plain == expected.replace(labels=None, adjacency=expected.adjacency > 0)
    assert as_graph(igraph.Graph(3)) == Graph(np.zeros((3, 3)))


class SparseTensor:
    """The part of torch_sparse.SparseTensor that is used: row, column and value."""

    def __init__(self, *parts: Any) -> None:
        self.parts = parts

    def coo(self) -> Any:
        return self.parts


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta")
def test_transposed_adjacencies_of_pyg(pyg: Any) -> None:
    import torch

    arrows: Any = torch.tensor([[0.0, 2.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]])
    expected = Graph(arrows.numpy(), directed=True)
    transposed = arrows.T.to_sparse_coo().coalesce()
    tensor = SparseTensor(*transposed.indices(), transposed.values())
    for adjacency in (transposed, arrows.T.to_sparse_csr(), tensor):
        data = pyg.Data(adj_t=adjacency, num_nodes=3)
        assert as_graph(data) == from_pyg(data) == expected
    both = pyg.Data(adj_t=(arrows + arrows.T).to_sparse_csr(), num_nodes=3)
    assert not as_graph(both).directed


def test_weights_by_name(pyg: Any) -> None:
    import torch

    index = torch.tensor([[0, 1], [1, 0]])
    data = pyg.Data(edge_index=index, amount=torch.ones(3), edge_attr=torch.full((2, 1), 7.0), num_nodes=3)
    assert not as_graph(data).is_weighted
    assert as_graph(data, weight="edge_attr").adjacency.max() == 7
    network, other = nx.Graph(), igraph.Graph([(0, 1)])
    network.add_edge(0, 1, amount=7)
    other.es["amount"] = [7]
    for graph in (network, other):
        assert as_graph(graph, weight="amount").adjacency.max() == 7
    for graph in (data, network, other):
        with pytest.raises(InputError, match="weight must name an edge attribute; got 'money', where there"):
            as_graph(graph, weight="money")


def test_data_without_edges_and_of_several_kinds(pyg: Any) -> None:
    with pytest.raises(InputError, match="data must have an edge_index or an adj_t"):
        as_graph(pyg.Data(num_nodes=3))
    with pytest.raises(InputError, match=r"got torch_geometric\.HeteroData"):
        as_graph(pyg.HeteroData())
    with pytest.raises(InputError, match=r"got types\.SimpleNamespace"):
        as_graph(SimpleNamespace(edge_index=None, num_nodes=3))


def test_labels_of_graphs_and_targets_of_regression_are_ignored(pyg: Any, caplog: Any) -> None:
    import torch

    index = torch.tensor([[0, 1], [1, 0]])
    for y in (torch.tensor([1]), torch.tensor([0.5, 1.5, 2.0])):
        data = pyg.Data(edge_index=index, y=y, num_nodes=3, edge_attr=torch.ones(2, 4))
        with caplog.at_level("INFO", logger="nodecopy"):
            assert as_graph(data).labels is None
        ignored = caplog.messages[-1].split("ignored: ")[1].split(".")[0].split(", ")
        assert set(ignored) == {"y", "edge_attr"}
    column = pyg.Data(edge_index=index, y=torch.tensor([[0], [1], [0]]), num_nodes=3)
    assert np.asarray(as_graph(column).labels).tolist() == [0, 1, 0]


def test_order_labels_and_weights() -> None:
    network = nx.Graph()
    network.add_node("b", label="cat")
    network.add_node("a")
    network.add_edge("a", "b", weight=2.5)
    network.add_edge("b", "c")
    graph = from_networkx(network)
    assert graph.node_ids.tolist() == ["b", "a", "c"]
    assert graph.named_labels().tolist() == ["cat", "", ""]  # type: ignore[union-attr]
    assert graph.adjacency.toarray().tolist() == [[0, 2.5, 1], [2.5, 0, 0], [1, 0, 0]]


@pytest.mark.parametrize("kind", [nx.MultiGraph, nx.MultiDiGraph])
def test_parallel_edges_take_the_largest_weight(kind: Any) -> None:
    network = kind([(0, 1, {"weight": 1.0}), (0, 1, {"weight": 4.0}), (0, 1, {"weight": 2.0})])
    graph = from_networkx(network)
    assert graph.adjacency[0, 1] == 4
    assert graph.directed is network.is_directed()


def test_self_loops_stay_where_edges_have_a_direction() -> None:
    assert from_networkx(nx.DiGraph([(0, 0)])).n_edges == 1
    assert from_networkx(nx.Graph([(0, 0)])).n_edges == 0


def test_nothing_at_all() -> None:
    assert from_networkx(nx.Graph()).n_nodes == 0


def test_labels_of_several_kinds_become_strings() -> None:
    network = nx.Graph()
    network.add_node(0, label=1)
    network.add_node(1, label="x")
    assert from_networkx(network).label_names == ("1", "x")


@pytest.mark.parametrize(
    ("weight", "message"),
    [("heavy", "must be a number; got 'heavy'"), (None, "got None"), (-1, "negative"), (np.nan, "finite")],
)
def test_bad_weights(weight: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        from_networkx(nx.Graph([(0, 1, {"weight": weight})]))


def test_a_label_that_is_not_a_number_is_unknown() -> None:
    network = nx.path_graph(3)
    nx.set_node_attributes(network, {0: np.nan, 1: 1.0}, "label")
    assert from_networkx(network).named_labels().tolist() == [-1, 1, -1]  # type: ignore[union-attr]


@pytest.mark.parametrize("digits", [400, 5000])
def test_large_integers_are_errors(digits: int) -> None:
    network, large = nx.path_graph(2), 10**digits
    network.nodes[0]["label"] = large
    with pytest.raises(InputError, match="labels must fit into 64 bits with a sign; got int"):
        from_networkx(network)
    network.edges[0, 1]["weight"] = large
    with pytest.raises(InputError, match=r"weight of edge \(0, 1\) must be a number; got int"):
        from_networkx(network)
    with pytest.raises(InputError, match="ids of nodes must fit into 64 bits with a sign; got int"):
        from_networkx(nx.path_graph([0, large]))


def test_integers_of_more_than_64_bits_are_shown() -> None:
    with pytest.raises(InputError, match=f"ids of nodes must fit into 64 bits with a sign; got {2**70}"):
        from_networkx(nx.path_graph([0, 2**70]))


def test_tensors_that_numpy_has_no_type_for(pyg: Any) -> None:
    import torch

    edges = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    small = torch.tensor([1.0, 1.0, 2.0, 2.0], dtype=torch.bfloat16)
    graph = from_pyg(pyg.Data(edge_index=edges, num_nodes=3, edge_weight=small, x=torch.ones(3, 2).half()))
    assert graph.rows.weights.tolist() == [1, 1, 2, 2]  # type: ignore[union-attr]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        quantised = torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.quint8)
    with pytest.raises(InputError, match=r"tensors of numbers; got torch\.quint8"):
        to_numpy(quantised)


@pytest.mark.parametrize("y", [np.eye(3, 2), np.eye(3, 2, dtype=int), np.array([0.5, 1.0, 0.0])])
def test_several_labels_per_node_and_fractions_are_no_classes(pyg: Any, y: Any) -> None:
    import torch

    edges = torch.tensor([[0, 1], [1, 0]])
    with pytest.raises(InputError, match="labels must"):
        from_pyg(pyg.Data(edge_index=edges, num_nodes=3, y=torch.from_numpy(y)))
    network = nx.Graph([(0, 1)])
    network.nodes[0]["kinds"] = ["a", "b"]
    with pytest.raises(InputError, match="labels must hold one class for every node; got"):
        as_graph(network, labels="kinds")
