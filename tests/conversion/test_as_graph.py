"""Graphs and interactions of other libraries, wherever a graph or interactions are taken."""

from __future__ import annotations

import logging
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
from nodecopy import Graph, Interactions, NodeCopying, SameLabel, as_graph, as_interactions, datasets
from nodecopy.errors import InputError
from nodecopy.generators import CELL, GAE, SBM
from nodecopy.io import convert_data, convert_graph, convert_interactions, training_nodes
from nodecopy.recommend import EASE

igraph = pytest.importorskip("igraph")
CLUB = datasets.load("karate").replace(node_ids=None)
FEATURES = CLUB.adjacency.toarray() + np.eye(34, dtype=np.float32)


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


def pyg_data(graph: Graph) -> Any:
    pytest.importorskip("torch_geometric")
    return nodecopy.to_pyg(graph)


def edge_columns() -> dict[str, Any]:
    source, target, _ = CLUB.edges()
    return {"from": source, "to": target}


HOLDERS: dict[str, Any] = {
    "networkx": lambda: nodecopy.to_networkx(CLUB),
    "igraph": lambda: nodecopy.to_igraph(CLUB),
    "pyg": lambda: pyg_data(CLUB),
    "scipy": lambda: CLUB.adjacency,
    "scipy matrix": lambda: sparse.coo_matrix(CLUB.adjacency),
    "pandas": lambda: pd.DataFrame(edge_columns()),
    "pandas adjacency": lambda: pd.DataFrame(CLUB.adjacency.toarray()),
    "series": lambda: pd.Series(1, index=pd.MultiIndex.from_arrays(list(edge_columns().values()))),
    "polars": lambda: pl.DataFrame(edge_columns()),
    "arrow": lambda: pa.table(edge_columns()),
}


@pytest.mark.parametrize("holder", HOLDERS)
def test_every_holder_of_the_same_edges_is_the_same_graph(holder: str, caplog: Any) -> None:
    with caplog.at_level(logging.INFO, logger="nodecopy"):
        graph = as_graph(HOLDERS[holder]())
    np.testing.assert_array_equal(graph.adjacency.toarray(), CLUB.adjacency.toarray())
    np.testing.assert_array_equal(graph.node_ids, CLUB.node_ids)
    assert "was converted to Graph(34 nodes, 78 undirected edges" in caplog.text


@pytest.mark.parametrize("holder", HOLDERS)
def test_everything_that_takes_a_graph_takes_every_holder(holder: str) -> None:
    """Before, each of them raised "must be a Graph; got Graph" or an AttributeError."""
    data = HOLDERS[holder]()
    assert NodeCopying(SameLabel(CLUB.labels)).fit(data).sample(rng=0).n_nodes == 34
    assert SBM().fit(data, rng=0).sample(rng=0).n_nodes == 34
    values = nodecopy.statistics(data, observed=data)
    assert values["triangles"] == 45
    assert values["edge_overlap"] == 1
    assert nodecopy.compare(data, [data, data])["triangles"].mean == 45


@pytest.mark.parametrize("holder", ["networkx", "igraph", "pyg"])
def test_models_with_torch_take_every_holder(holder: str) -> None:
    pytest.importorskip("torch")
    from nodecopy.attacks import DICE, GlobalDICE
    from nodecopy.classify import GCN
    from nodecopy.defend import CopyingDefence
    from nodecopy.report import draw_graphs

    data = HOLDERS[holder]()
    expected = as_graph(data).replace(features=FEATURES)
    assert len(draw_graphs({"observed": data, "same": expected})) == 2
    perturbation = DICE().attack(data, [0], budget=2, rng=0)
    np.testing.assert_array_equal(perturbation.flips, DICE().attack(expected, [0], budget=2, rng=0).flips)
    assert perturbation.apply(data).n_nodes == 34
    assert len(GlobalDICE().attack(data, budget=3, rng=0).flips) == 3
    for model in (GAE(n_epochs=2), CELL(n_steps=2)):
        assert model.fit(data, rng=0).graph_.n_edges == 78
    if holder == "networkx":
        for node in data:
            data.nodes[node]["x"] = FEATURES[node]
    elif holder == "igraph":
        data.vs["x"] = FEATURES.tolist()
    else:
        import torch

        data.x = torch.from_numpy(FEATURES)
    fitted, same = (GCN(n_epochs=20).fit(graph, [0, 33], rng=0) for graph in (data, expected))
    np.testing.assert_allclose(fitted.predict_proba(data), same.predict_proba(), atol=1e-6)
    assert fitted.score(graph=data) == same.score(graph=expected)
    defence = CopyingDefence(GCN(n_epochs=20)).fit(data, [0, 33], rng=0)
    assert defence.predict().shape == defence.predict(data).shape == (34,)
    assert CopyingDefence().from_classifier(fitted, data, rng=0).predict().shape == (34,)


def test_a_graph_is_returned_as_it_is() -> None:
    log = Interactions(np.eye(2))
    assert as_graph(CLUB) is convert_data(CLUB, "graph") is CLUB
    assert as_interactions(log) is convert_data(log, "graph") is log


def test_ids_labels_features_and_what_is_ignored(caplog: Any) -> None:
    with caplog.at_level(logging.INFO, logger="nodecopy"):
        graph = convert_graph(network(), "graph of GCN")
    assert graph.node_ids.tolist() == [f"member {node}" for node in reversed(range(34))]
    assert np.asarray(graph.named_labels()).tolist() == ["ab"[node % 2] for node in reversed(range(34))]
    np.testing.assert_array_equal(graph.features, [[node, 1] for node in reversed(range(34))])
    (message,) = caplog.messages
    assert message.startswith("graph of GCN: networkx.Graph was converted to Graph(34 nodes, 78")
    assert "node attributes used: label, x; ignored: age, since." in message
    assert "as_graph(..., labels=, features=, weight=, directed=)" in message


def test_attributes_by_name_overrule() -> None:
    graph = as_graph(network(), labels="age", features=["age", "x"], weight="since", directed=True)
    assert graph.directed
    assert np.asarray(graph.labels).tolist() == list(reversed(range(34)))
    np.testing.assert_array_equal(graph.features, [[n, n, 1] for n in reversed(range(34))])
    with pytest.raises(InputError, match="labels must name node attributes; got 'club'"):
        as_graph(network(), labels="club")
    with pytest.raises(InputError, match="features must name attributes with numbers"):
        as_graph(network(), features=["label"])


def test_names_and_coordinates_are_no_labels() -> None:
    """Gephi and igraph write the name of a node as ``label``; x and y are often coordinates."""
    path = nx.path_graph(4)
    nx.set_node_attributes(path, {node: f"city {node}" for node in path}, "label")
    nx.set_node_attributes(path, {node: float(node) for node in path}, "x")
    nx.set_node_attributes(path, {node: node for node in path}, "y")
    graph = as_graph(path)
    assert graph.labels is None
    assert graph.features is None


def test_integer_ids_that_are_no_positions_are_pointed_out(caplog: Any) -> None:
    with caplog.at_level(logging.INFO, logger="nodecopy"):
        assert as_graph(nx.path_graph([5, 3, 9])).node_ids.tolist() == [5, 3, 9]
    assert "integers choose nodes by position, np.isin(graph.node_ids, ids) by id" in caplog.text


def test_an_asymmetric_matrix_is_undirected_unless_the_caller_says_so(caplog: Any) -> None:
    arrow = sparse.csr_array([[0, 2], [0, 0]])
    with caplog.at_level(logging.INFO, logger="nodecopy"):
        assert as_graph(arrow).n_edges == 1
    assert "not symmetric, so each pair has the larger" in caplog.text
    assert as_graph(arrow, directed=True).directed


def test_a_square_frame_is_an_adjacency_by_its_index_only() -> None:
    names = ["a", "b"]
    assert as_graph(pd.DataFrame([[0, 1], [1, 0]], names, names)).node_ids.tolist() == names
    edges = as_graph(pd.DataFrame([[0, 1], [1, 2]]))  # two edges, index and columns are both 0 and 1
    assert edges.n_nodes == 3


class Ours(nx.DiGraph):  # type: ignore[misc]
    """A subclass in another module."""


def test_subclasses_are_recognised() -> None:
    assert as_graph(Ours([(0, 1)])).directed


@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        (None, "NoneType"),
        (np.eye(3), "numpy.ndarray"),
        ([[0, 1]], "list"),
        (Interactions(np.eye(2)), "nodecopy.Interactions"),
        (pd.Series([1, 2]), "pandas.Series"),
        (SimpleNamespace(), "types.SimpleNamespace"),
    ],
)
def test_a_wrong_type_is_named_with_its_package(wrong: Any, name: str) -> None:
    """Before: "must be a Graph; got Graph" for the graphs of other libraries."""
    with pytest.raises(InputError, match=rf"graph of SBM must be a Graph, .*; got {name}\."):
        SBM().fit(wrong)


def test_several_graphs_are_not_one() -> None:
    with pytest.raises(InputError, match=r"samples must be several graphs.*; got one networkx\.Graph"):
        nodecopy.compare(CLUB, nx.path_graph(3))


LOG: dict[str, Any] = {
    "user": ["ann", "ann", "bob"],
    "item": ["tea", "jam", "tea"],
    "rating": [5.0, 3.0, 4.0],
}
EXPECTED = Interactions.from_table(LOG["user"], LOG["item"], LOG["rating"])
OTHER = Interactions.from_table(["ann", "bob", "cleo"], ["ham", "jam", "tea"])
LOGS = {
    "pandas": pd.DataFrame(LOG),
    "polars": pl.DataFrame(LOG),
    "arrow": pa.table(LOG),
    "series": pd.DataFrame(LOG).set_index(["user", "item"])["rating"],
}


@pytest.mark.parametrize("holder", LOGS)
def test_interactions_of_every_holder(holder: str, caplog: Any) -> None:
    with caplog.at_level(logging.INFO, logger="nodecopy"):
        assert as_interactions(LOGS[holder]) == EXPECTED
    assert "was converted to Interactions(2 users, 2 items" in caplog.text
    fitted = EASE().fit(LOGS[holder], seen=LOGS[holder])
    assert fitted.interactions_ == EXPECTED.binary()
    other = EASE().fit(OTHER, validation=LOGS[holder])
    ours, theirs = (other.evaluate(test, metrics=["recall@1"]) for test in (LOGS[holder], EXPECTED))
    assert ours == theirs


def test_a_test_frame_gets_the_ids_of_training() -> None:
    """Ids 7 and 12 alone are integers; in training they are texts because of 007."""
    train = pd.DataFrame({"user": ["007", "7", "12"], "item": ["a", "b", "a"]})
    fitted = EASE().fit(train)
    test = convert_interactions(pd.DataFrame({"user": [7], "item": ["a"]}), "test", like=fitted.interactions_)
    assert test.user_ids.tolist() == ["7"]
    matrix = convert_interactions(
        sparse.csr_array([[1, 0], [0, 1], [1, 0]]), "test", like=fitted.interactions_
    )
    assert matrix.item_ids.tolist() == ["a", "b"]
    with pytest.raises(InputError, match="users must hold known ids; got 'eve'"):
        fitted.evaluate(pd.DataFrame({"user": ["eve"], "item": ["a"]}))


def test_node_copying_tells_graphs_from_interactions() -> None:
    assert isinstance(convert_data(pd.DataFrame(LOG), "graph"), Interactions)
    assert isinstance(convert_data(pa.table(LOG), "graph"), Interactions)
    assert isinstance(convert_data(pd.DataFrame(edge_columns()), "graph"), Graph)
    assert isinstance(convert_data(sparse.csr_array(np.ones((2, 3))), "graph"), Interactions)
    assert isinstance(convert_data(sparse.csr_array(np.ones((3, 3))), "graph"), Graph)
    with pytest.raises(InputError, match=r"must be Interactions, .*; got networkx\.Graph"):
        as_interactions(nx.path_graph(3))


def test_the_training_mask_of_the_data_is_the_default(caplog: Any) -> None:
    """If the mask were ignored, the labels of test nodes would be trained on."""
    torch = pytest.importorskip("torch")
    from nodecopy.classify import GCN

    data = pyg_data(CLUB.replace(features=FEATURES))
    data.train_mask = torch.arange(34) % 3 == 0
    with caplog.at_level(logging.INFO, logger="nodecopy"):
        assert np.flatnonzero(np.asarray(training_nodes(data, None))).tolist() == list(range(0, 34, 3))
    assert "train: the nodes in train_mask" in caplog.text
    assert training_nodes(data, [1]) == [1]
    assert training_nodes(CLUB, None) is None
    fitted = GCN(n_epochs=20).fit(data, rng=0)
    assert fitted.trial_.train.tolist() == list(range(0, 34, 3))


def test_graphs_of_matrices_are_square() -> None:
    for convert in (as_graph, nodecopy.statistics):
        with pytest.raises(InputError, match=r"must be square, .*got shape \(3, 4\)"):
            convert(sparse.csr_array(np.ones((3, 4))))


@pytest.mark.parametrize("weight", [1j, np.complex128(1 + 2j), np.timedelta64(3, "s")])
def test_weights_that_are_no_real_numbers(weight: Any) -> None:
    network = nx.Graph()
    network.add_edge(0, 1, weight=weight)
    frame = pd.DataFrame({"source": [0, 1], "target": [1, 2], "weight": [weight, weight]})
    for data in (network, frame):
        with pytest.raises(InputError, match="weight"):
            as_graph(data, weight="weight")
