"""Graphs and interactions of other libraries, wherever a graph or interactions are taken."""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from math import nan
from types import SimpleNamespace
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

import nodecopy
from nodecopy import (
    Graph,
    Interactions,
    NodeCopying,
    SameLabel,
    as_graph,
    as_interactions,
    datasets,
    read_graph,
)
from nodecopy.errors import DataWarning, InputError
from nodecopy.generators import SBM
from nodecopy.io import convert_data, convert_graph, convert_interactions, training_nodes
from nodecopy.io.pyg import to_numpy
from nodecopy.recommend import EASE

igraph = pytest.importorskip("igraph")
CLUB = datasets.load("karate").replace(node_ids=None)
FEATURES = CLUB.adjacency.toarray() + np.eye(34, dtype=np.float32)


@pytest.fixture(scope="module")
def pyg() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("torch_geometric.data")


def labels_of(graph: Graph) -> list[Any]:
    return list(np.asarray(graph.labels).tolist())


def network() -> Any:
    """The karate club with text ids in another order, labels and features as attributes."""
    club = nx.Graph()
    for node in reversed(range(34)):
        club.add_node(f"member {node}", label="ab"[node % 2], age=node, x=[node, 1.0])
    source, target, _ = CLUB.edges()
    club.add_edges_from(
        (f"member {u}", f"member {v}", {"since": 1}) for u, v in zip(source, target, strict=True)
    )
    return club


def edge_columns() -> dict[str, Any]:
    source, target, _ = CLUB.edges()
    return {"from": source, "to": target}


HOLDERS: dict[str, Any] = {
    "networkx": lambda: nodecopy.to_networkx(CLUB),
    "igraph": lambda: nodecopy.to_igraph(CLUB),
    "pyg": lambda: nodecopy.to_pyg(CLUB),
    "scipy": lambda: CLUB.adjacency,
    "scipy matrix": lambda: sparse.coo_matrix(CLUB.adjacency),
    "pandas": lambda: pd.DataFrame(edge_columns()),
    "pandas adjacency": lambda: pd.DataFrame(CLUB.adjacency.toarray()),
    "series": lambda: pd.Series(1, index=pd.MultiIndex.from_arrays(list(edge_columns().values()))),
    "polars": lambda: pl.DataFrame(edge_columns()),
    "arrow": lambda: pa.table(edge_columns()),
}


@pytest.mark.parametrize("holder", HOLDERS)
def test_every_holder_is_taken_wherever_a_graph_is(holder: str, caplog: Any, pyg: Any) -> None:
    data = HOLDERS[holder]()
    graph = as_graph(data)
    np.testing.assert_array_equal(graph.adjacency.toarray(), CLUB.adjacency.toarray())
    np.testing.assert_array_equal(graph.node_ids, CLUB.node_ids)
    assert "was converted to Graph(34 nodes, 78 undirected edges" in caplog.text
    assert NodeCopying(SameLabel(CLUB.label_codes)).fit(data).sample(rng=0).n_nodes == 34
    assert SBM().fit(data, rng=0).sample(rng=0).n_nodes == 34
    assert nodecopy.statistics(data, observed=data)["edge_overlap"] == 1
    assert nodecopy.compare(data, [data, data])["triangles"].mean == 45


@pytest.mark.parametrize("holder", ["networkx", "igraph", "pyg"])
def test_models_with_torch_take_every_holder(holder: str, pyg: Any) -> None:
    import torch

    from nodecopy.attacks import DICE
    from nodecopy.classify import GCN
    from nodecopy.defend import CopyingDefence

    data = HOLDERS[holder]()
    if holder == "networkx":
        nx.set_node_attributes(data, dict(enumerate(FEATURES)), "x")
    elif holder == "igraph":
        data.vs["x"] = FEATURES.tolist()
    else:
        data.x = torch.from_numpy(FEATURES)
    expected = as_graph(data).replace(features=FEATURES)
    perturbation = DICE().attack(data, [0], budget=2, rng=0)
    np.testing.assert_array_equal(perturbation.flips, DICE().attack(expected, [0], budget=2, rng=0).flips)
    assert perturbation.apply(data).n_nodes == 34
    fitted, same = (GCN(n_epochs=20).fit(graph, [0, 33], rng=0) for graph in (data, expected))
    np.testing.assert_allclose(fitted.predict_proba(data), same.predict_proba(), atol=1e-6)
    assert fitted.score(graph=data) == same.score(graph=expected)
    defence = CopyingDefence(GCN(n_epochs=20)).fit(data, [0, 33], rng=0)
    assert defence.predict().shape == defence.predict(data).shape == (34,)


def test_ids_labels_features_and_what_is_ignored(caplog: Any) -> None:
    graph = convert_graph(network(), "graph of GCN")
    assert graph.node_ids.tolist() == [f"member {node}" for node in reversed(range(34))]
    assert labels_of(graph) == ["ab"[node % 2] for node in reversed(range(34))]
    np.testing.assert_array_equal(graph.features, [[node, 1] for node in reversed(range(34))])
    (message,) = caplog.messages
    assert message.startswith("graph of GCN: networkx.Graph was converted to Graph(34 nodes, 78")
    assert "node attributes used: label, x; ignored: age, since." in message
    graph = as_graph(network(), labels="age", features=["age", "x"], weight="since", directed=True)
    assert graph.directed
    assert labels_of(graph) == list(reversed(range(34)))
    np.testing.assert_array_equal(graph.features, [[n, n, 1] for n in reversed(range(34))])
    path = nx.path_graph(4)  # Gephi and igraph write the name of a node as label; x and y may be coordinates
    nx.set_node_attributes(path, {node: f"city {node}" for node in path}, "label")
    nx.set_node_attributes(path, {node: float(node) for node in path}, "x")
    assert (as_graph(path).label_codes, as_graph(path).features) == (None, None)
    assert as_graph(nx.path_graph([5, 3, 9])).node_ids.tolist() == [5, 3, 9]
    assert "integers choose nodes by position" in caplog.text


class Ours(nx.DiGraph):  # type: ignore[misc]
    """A subclass in another module."""


def test_special_cases(caplog: Any) -> None:
    log = Interactions(np.eye(2))
    assert as_graph(CLUB) is convert_data(CLUB, "graph") is CLUB
    assert as_interactions(log) is convert_data(log, "graph") is log
    assert as_graph(Ours([(0, 1)])).directed
    arrow, names = sparse.csr_array([[0, 2], [0, 0]]), ["a", "b"]
    assert as_graph(arrow).n_edges == 1
    as_graph(sparse.csr_array([[5, 2], [1, 0]]))
    assert "edges in both directions: 1; the largest weight counts" in caplog.text
    assert "self-loops: 1; they are left out" in caplog.text
    assert as_graph(arrow, directed=True).directed
    assert as_graph(pd.DataFrame([[0, 1], [1, 0]], names, names)).node_ids.tolist() == names
    edges = as_graph(pd.DataFrame([[0, 1], [1, 2]]))  # two edges, index and columns are both 0 and 1
    assert edges.n_nodes == 3


def weighted(weight: Any) -> Any:
    return nx.Graph([(0, 1, {"weight": weight})])


@pytest.mark.parametrize(
    ("call", "fragment"),
    [
        (lambda: nodecopy.compare(CLUB, nx.path_graph(3)), "samples must be several graphs"),
        (lambda: as_graph(sparse.csr_array(np.ones((3, 4)))), "must be square"),
        (lambda: as_interactions(nx.path_graph(3)), r"must be Interactions, .*; got networkx\.Graph"),
        (lambda: as_graph(network(), labels="club"), "labels must name node attributes; got 'club'"),
        (lambda: as_graph(network(), features=["label"]), "features must name attributes with numbers"),
        (lambda: as_graph(network(), weight="money"), "weight must name an edge attribute; got 'money'"),
        (lambda: as_graph(nx.path_graph([1, "1"])), "nodes must have different texts, .*; got '1' twice"),
        (lambda: as_graph(weighted("heavy")), "must be a number; got 'heavy'"),
        (lambda: as_graph(weighted(np.nan)), "finite"),
        (lambda: as_graph(weighted(np.timedelta64(3, "s"))), "weight"),
        (lambda: as_graph(weighted(10**5000)), r"weight of edge \(0, 1\) must be a number; got int"),
        (lambda: as_graph(nx.path_graph([0, 10**400])), "ids of nodes must fit into 64 bits"),
        (lambda: read_graph(pd.DataFrame({"source": [0], "target": [1], "weight": [1j]})), "weight"),
    ],
)
def test_objects_that_are_refused(call: Any, fragment: str) -> None:
    with pytest.raises(InputError, match=fragment):
        call()


def test_nodes_of_any_type_get_their_text_as_id() -> None:
    grid = nx.grid_2d_graph(2, 2)
    grid.edges[(0, 0), (0, 1)]["weight"] = 3
    graph = as_graph(grid, labels={(0, 0): "corner"})
    assert graph.node_ids.tolist() == ["(0, 0)", "(0, 1)", "(1, 0)", "(1, 1)"]
    assert graph.adjacency.toarray()[0].tolist() == [0, 3, 1, 0]
    assert labels_of(graph) == ["corner", "", "", ""]
    assert as_graph(grid) == graph.replace(labels=None)
    assert as_graph(nx.path_graph([1, "a"])).node_ids.tolist() == ["1", "a"]
    assert as_graph(nx.Graph()).n_nodes == 0


@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph])
def test_every_kind_of_networkx_graph(kind: Any) -> None:
    graph = kind()
    for weight in (2.0, 5.0):
        graph.add_edge("a", "b", weight=weight)
    graph.add_edge("a", "a")
    assert as_graph(graph).directed == graph.is_directed()
    assert as_graph(graph).adjacency.toarray()[0].tolist() == [graph.is_directed(), 5]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, "x", None], ["1", "x", ""]),
        ([np.nan, 1.0, None], [-1, 1, -1]),
        (["cat", None, None], ["cat", "", ""]),
    ],
)
def test_labels_of_networkx(values: list[Any], expected: list[Any]) -> None:
    path = nx.path_graph(3)
    nx.set_node_attributes(path, dict(enumerate(values)), "label")
    assert labels_of(as_graph(path, labels="label")) == expected


def test_igraph_with_names_weights_and_labels() -> None:
    graph = igraph.Graph([(0, 1), (1, 2), (0, 1)], directed=True)
    graph.vs["name"], graph.vs["label"] = ["x", "y", "z"], ["a", None, "a"]
    graph.es["weight"], graph.es["since"] = [1.0, None, 4.0], [1, 2, 3]
    expected = Graph([[0, 4, 0], [0, 0, 1], [0, 0, 0]], None, ["a", "", "a"], ["x", "y", "z"], directed=True)
    assert as_graph(graph) == expected
    assert as_graph(graph, weight="since").adjacency.max() == 3
    assert as_graph(igraph.Graph(3)) == Graph(np.zeros((3, 3)))


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta")
def test_transposed_adjacencies_of_pyg(pyg: Any) -> None:
    import torch

    arrows: Any = torch.tensor([[0.0, 2.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]])
    expected = Graph(arrows.numpy(), directed=True)
    transposed = arrows.T.to_sparse_coo().coalesce()
    parts = *transposed.indices(), transposed.values()
    tensor = SimpleNamespace(coo=lambda: parts)  # as torch_sparse.SparseTensor
    for adjacency in (transposed, arrows.T.to_sparse_csr(), tensor):
        data = pyg.Data(adj_t=adjacency, num_nodes=3)
        assert as_graph(data) == expected
    both = pyg.Data(adj_t=(arrows + arrows.T).to_sparse_csr(), num_nodes=3)
    assert not as_graph(both).directed


def test_attributes_of_pyg(pyg: Any, caplog: Any) -> None:
    import torch

    index: Any = torch.tensor([[0, 1], [1, 0]])
    data = pyg.Data(edge_index=index, amount=torch.ones(3), edge_attr=torch.full((2, 1), 7.0), num_nodes=3)
    assert not as_graph(data).is_weighted
    assert as_graph(data, weight="edge_attr").adjacency.max() == 7
    regression, classes = torch.tensor([0.5, 1.5, 2.0]), torch.ones(3, 2)
    for y in (torch.tensor([1]), regression, classes):  # a label of the graph, a regression, several labels
        data = pyg.Data(edge_index=index, y=y, num_nodes=3, edge_attr=torch.ones(2, 4))
        warning = pytest.warns(DataWarning, match="y is not used as labels") if len(y) > 1 else nullcontext()
        with caplog.at_level("INFO", logger="nodecopy"), warning:
            assert as_graph(data).labels is None
        assert set(caplog.messages[-1].split("ignored: ")[1].split(".")[0].split(", ")) == {"y", "edge_attr"}
    cases: list[Any] = [
        ([[0], [1], [0]], [0, 1, 0]),
        ([[0, 1], [0, 0], [1, 0]], [1, -1, 0]),
        ([0.0, nan, 1.0],) * 2,
    ]
    for values, labels in cases:
        data = pyg.Data(edge_index=index, y=torch.tensor(values), num_nodes=3)
        assert labels_of(as_graph(data)) == np.nan_to_num(labels, nan=-1).tolist()
    for weights in (torch.tensor([1.0, 2.0]), torch.tensor([1.0, 1.0])):
        is_symmetric = len(set(weights.tolist())) == 1
        for name in ("edge_weight", "edge_attr"):
            data = pyg.Data(edge_index=index, num_nodes=3, **{name: weights})
            caplog.clear()
            with caplog.at_level("INFO", logger="nodecopy"):
                assert as_graph(data).directed == (not is_symmetric)
            assert ("both directions differ" in caplog.text) == (not is_symmetric)
            assert not as_graph(data, directed=False).directed
    small = torch.tensor([1.5, 1.5], dtype=torch.bfloat16)
    half = pyg.Data(edge_index=index, num_nodes=3, edge_weight=small, x=torch.ones(3, 2).half())
    assert as_graph(half).rows.weights.tolist() == [1.5, 1.5]  # type: ignore[union-attr]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        quantised = torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.quint8)
    several = torch.ones(3, 2)
    for call, fragment in (
        (lambda: to_numpy(quantised), r"tensors of numbers; got torch\.quint8"),
        (lambda: as_graph(pyg.Data(num_nodes=3)), "data must have an edge_index or an adj_t"),
        (lambda: as_graph(pyg.HeteroData()), r"got torch_geometric\.HeteroData"),
        (lambda: as_graph(pyg.Data(edge_index=index, num_nodes=3, y=several), labels="y"), "labels must"),
    ):
        with pytest.raises(InputError, match=fragment):
            call()


def test_the_training_mask_of_the_data_is_the_default(caplog: Any, pyg: Any) -> None:
    import torch

    from nodecopy.classify import GCN

    data = nodecopy.to_pyg(CLUB.replace(features=FEATURES))
    data.train_mask = torch.arange(34) % 3 == 0
    assert np.flatnonzero(np.asarray(training_nodes(data, None))).tolist() == list(range(0, 34, 3))
    assert "train: the nodes in train_mask" in caplog.text
    assert training_nodes(data, [1]) == [1]
    assert training_nodes(CLUB, None) is None
    assert GCN(n_epochs=20).fit(data, rng=0).trial_.train.tolist() == list(range(0, 34, 3))
    data.train_mask = torch.stack([data.train_mask, ~data.train_mask], 1)
    with pytest.warns(DataWarning, match="2 splits, of which the first is used"):
        assert np.flatnonzero(np.asarray(training_nodes(data, None))).tolist() == list(range(0, 34, 3))
    data.train_mask = torch.tensor([0, 3])
    with pytest.raises(InputError, match="train_mask must hold a boolean for each node; got int64"):
        training_nodes(data, None)


# Interactions.

LOG: dict[str, Any] = {"user": ["ann", "ann", "bob"], "item": ["tea", "jam", "tea"], "rating": [5.0, 3, 4]}
EXPECTED = Interactions.from_table(*LOG.values())
OTHER = Interactions.from_table(["ann", "bob", "cleo"], ["ham", "jam", "tea"])
LOGS = {
    "pandas": pd.DataFrame(LOG),
    "polars": pl.DataFrame(LOG),
    "arrow": pa.table(LOG),
    "series": pd.DataFrame(LOG).set_index(["user", "item"])["rating"],
}


@pytest.mark.parametrize("holder", LOGS)
def test_interactions_of_every_holder(holder: str, caplog: Any) -> None:
    assert as_interactions(LOGS[holder]) == EXPECTED
    assert "was converted to Interactions(2 users, 2 items" in caplog.text
    fitted = EASE().fit(LOGS[holder], seen=LOGS[holder])
    assert fitted.interactions_ == EXPECTED.binary()
    other = EASE().fit(OTHER, validation=LOGS[holder])
    ours, theirs = (other.evaluate(test, metrics=["recall@1"]) for test in (LOGS[holder], EXPECTED))
    assert ours == theirs


def test_a_test_frame_gets_the_ids_of_training() -> None:
    """Ids 7 and 12 alone are integers; in training they are texts because of 007."""
    with pytest.warns(DataWarning, match="ids '007' and '7' differ"):
        fitted = EASE().fit(pd.DataFrame({"user": ["007", "7", "12"], "item": ["a", "b", "a"]}))
    test = convert_interactions(pd.DataFrame({"user": [7], "item": ["a"]}), "test", like=fitted.interactions_)
    assert test.user_ids.tolist() == ["7"]
    matrix = sparse.csr_array([[1, 0], [0, 1], [1, 0]])
    assert convert_interactions(matrix, "test", like=fitted.interactions_).item_ids.tolist() == ["a", "b"]
    with pytest.raises(InputError, match="users must hold known ids; got 'eve'"):
        fitted.evaluate(pd.DataFrame({"user": ["eve"], "item": ["a"]}))


def test_node_copying_tells_graphs_from_interactions() -> None:
    for log in (pd.DataFrame(LOG), pa.table(LOG), sparse.csr_array(np.ones((2, 3)))):
        assert isinstance(convert_data(log, "graph"), Interactions)
    for graph in (pd.DataFrame(edge_columns()), sparse.csr_array(np.ones((3, 3)))):
        assert isinstance(convert_data(graph, "graph"), Graph)


# Labels and features by node id, and in the order of the nodes.

EDGES = pd.DataFrame({"from": ["cleo", "bob"], "to": ["ann", "cleo"]})
PATH = pd.DataFrame({"u": [0, 1, 2, 3], "v": [1, 2, 3, 4]})


@pytest.mark.parametrize(
    "labels",
    [
        {"cleo": "x", "ann": "y"},
        pd.Series({"cleo": "x", "ann": "y"}),
        pd.Series(["x", None, "y"], ["cleo", "bob", "ann"]),
        pd.DataFrame({"kind": ["x", "y"]}, ["cleo", "ann"]),
        pd.DataFrame({"id": ["cleo", "ann"], "kind": ["x", "y"]}),
        pd.DataFrame({"node": ["cleo", "ann"], "age": [1, 2], "label": ["x", "y"]}),
        pd.DataFrame({"plan_id": [7, 8], "label": ["x", "y"]}, ["cleo", "ann"]),
        pa.table({"name": ["cleo", "ann"], "kind": ["x", "y"]}),
    ],
    ids=lambda labels: type(labels).__name__,
)
def test_labels_by_id(labels: Any) -> None:
    assert labels_of(as_graph(EDGES, labels=labels)) == ["y", "", "x"]


def test_features_by_id_and_values_in_node_order() -> None:
    frame = pd.DataFrame({"age": [3.0, 1.0, 2.0], "city": ["Oslo", "Rome", "Oslo"]}, ["cleo", "ann", "bob"])
    graph = as_graph(EDGES, features=frame)
    np.testing.assert_array_equal(graph.features, [[1, 0, 1], [2, 1, 0], [3, 1, 0]])
    assert graph.feature_encoder is not None
    np.testing.assert_array_equal(as_graph(EDGES, features=frame["age"]).features, [[1], [2], [3]])
    vectors = {"bob": [2, 0], "cleo": [3, 0], "ann": [1, 0]}
    np.testing.assert_array_equal(as_graph(EDGES, features=vectors).features, [[1, 0], [2, 0], [3, 0]])
    changed = as_graph(Graph.from_edges(["b"], ["a"]), labels={"b": 1}, features=sparse.eye_array(2))
    assert labels_of(changed) == [-1, 1]
    assert sparse.issparse(changed.features)
    missing = pd.Series([3, None], ["ann", "bob"])
    for labels in (missing, missing.astype("Int64")):
        assert labels_of(as_graph(EDGES, labels=labels)) == [3, -1, -1]
    for data in (
        sparse.csr_array([[0, 1, 0], [1, 0, 1], [0, 1, 0]]),
        pd.DataFrame({"u": [0, 1], "v": [1, 2]}),
    ):
        assert labels_of(as_graph(data, labels=[0, 1, 0])) == [0, 1, 0]


@pytest.mark.parametrize(
    ("edges", "values", "fragment"),
    [
        (EDGES, {"labels": [0, 1, 0]}, "labels of an edge list must be a dictionary"),
        (EDGES, {"features": np.eye(3)}, "features of an edge list must be a dictionary"),
        (EDGES, {"labels": {"an": 0, "bo": 1, "cleo": 1}}, "labels: 2 of 3 ids are not nodes"),
        (EDGES, {"labels": pd.Series([0, 1], ["ann", "ann"])}, "labels: node 'ann' is listed more than once"),
        (EDGES, {"features": {"ann": [1], "cleo": [2]}}, "features: there is no row for a node .*: 'bob'"),
        (EDGES, {"labels": pa.table({"kind": ["x"]})}, "must have columns for id and label; it has 1"),
        (EDGES, {"labels": pd.DataFrame({"a": [1], "b": [2]}, ["ann"])}, "a column label or class"),
        (PATH, {"labels": pd.Series([0, 1, 0])}, "labels: node ids must be in a column id or in"),
        (PATH + 1, {"features": pd.DataFrame({"age": [1.0] * 5})}, "features: node ids must be in a column"),
    ],
)
def test_values_that_do_not_fit(edges: Any, values: dict[str, Any], fragment: str) -> None:
    with pytest.raises(InputError, match=fragment):
        as_graph(edges, **values)


@pytest.mark.parametrize("name", ["id", "account_id", "account_no"])
@pytest.mark.parametrize("index", [None, [9, 8, 7, 6, 5]])
def test_frames_are_aligned_as_by_read_graph(name: str, index: Any) -> None:
    ids = [4, 3, 2, 1, 0]
    features = pd.DataFrame({name: ids, "age": [44.5, 33.0, 22.0, 11.0, 0.0]}, index)
    labels = pd.DataFrame({name: ids, "kind": list("xxyyy")}, index)
    graph = as_graph(PATH, labels=labels, features=features)
    assert labels_of(graph) == list("yyyxx")
    np.testing.assert_array_equal(graph.features, [[0], [11], [22], [33], [44.5]])
    assert graph == read_graph(PATH, labels=labels, features=features)
    with pytest.raises(InputError, match=r"labels: id 7 is not a node of the graph"):
        as_graph(PATH, labels=labels.replace({name: {0: 7}}))


def test_the_default_index_is_ids_only_where_nodes_are_numbered() -> None:
    ages = pd.DataFrame({"age": [3.5, 1.0, 2.0, 2.0, 5.0], "n_cars": [0, 1, 1, 1, 0]})
    np.testing.assert_array_equal(as_graph(PATH, features=ages).features, ages)
    named = ages.set_axis([1, 2, 3, 4, 5]).rename_axis("account")
    np.testing.assert_array_equal(as_graph(PATH + 1, features=named).features, ages)
