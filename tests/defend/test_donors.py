"""Who is chosen as a donor."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.random import SeedSequence
from scipy import sparse

from nodecopy import Graph
from nodecopy.classify import GCN
from nodecopy.defend import CopyingDefence
from nodecopy.defend.donors import (
    NAMES,
    Places,
    connections,
    expected_neighbourhoods,
    feature_embedding,
    neighbourhoods,
    search,
)
from nodecopy.errors import InputError
from nodecopy.nn.features import with_features
from tests.contracts.classifiers import planted_graph


def wide_graph(seed: int = 0, n: int = 120, width: int = 90) -> Graph:
    draw = np.random.default_rng(seed)
    upper = np.triu(draw.random((n, n)) < 0.05, 1)
    return Graph(upper | upper.T, (draw.random((n, width)) < 0.1).astype(float))


def test_features_become_weighted_directions() -> None:
    """Two of three nodes have the first feature, one the second: log(4/3) + 1 and log(4/2) + 1."""
    graph = Graph(np.zeros((3, 3)), [[2.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
    common, rare = np.log(4 / 3) + 1, np.log(4 / 2) + 1
    length = np.hypot(common, rare)
    expected = [[1, 0], [common / length, rare / length], [0, 0]]
    np.testing.assert_allclose(feature_embedding(graph), expected)


def test_wide_features_are_reduced() -> None:
    graph = wide_graph()
    found, exact = feature_embedding(graph), feature_embedding(graph, rank=90)
    assert found.shape == (120, 64)
    assert exact.shape == (120, 90)
    u, s, _ = np.linalg.svd(exact)
    reduced = (u * np.pad(s, (0, 30)))[:, :64]
    reduced /= np.linalg.norm(reduced, axis=1, keepdims=True)
    np.testing.assert_allclose(found @ found.T, reduced @ reduced.T, atol=1e-8)
    assert np.array_equal(found, feature_embedding(graph))
    features: Any = graph.features
    same = feature_embedding(graph.replace(features=sparse.csr_array(features)))
    np.testing.assert_allclose(found @ found.T, same @ same.T, atol=1e-9)


def test_neighbourhoods_by_hand() -> None:
    """A pair and a single node: each of the pair has (1, 1) around it."""
    graph = Graph.from_edges([0], [1], node_ids=[0, 1, 2])
    found = neighbourhoods(graph, np.eye(3)[:, :2] + [[0, 0], [0, 0], [0, 1]])
    half = np.sqrt(0.5)
    np.testing.assert_allclose(found, [[half, half], [half, half], [0, 1]])


def test_what_is_expected_of_a_node_is_learned_from_the_others() -> None:
    """The closed form against a regression without the node, one for each."""
    graph = wide_graph()
    own = feature_embedding(graph)
    around = neighbourhoods(graph, own)
    found = expected_neighbourhoods(graph, own, around)
    taught = graph.degrees > 0
    for node in range(10):
        others = taught & (np.arange(graph.n_nodes) != node)
        x, y = own[others], around[others]
        expected = own[node] @ np.linalg.solve(x.T @ x + np.eye(64), x.T @ y)
        np.testing.assert_allclose(found[node], expected / np.linalg.norm(expected), atol=1e-9)


def test_edges_of_a_node_do_not_choose_its_donors_by_features() -> None:
    graph = wide_graph()
    adjacency = graph.adjacency.toarray()
    adjacency[:, 5] = adjacency[5] = 0
    adjacency[5, 60:80] = adjacency[60:80, 5] = 1
    attacked = graph.replace(adjacency=adjacency)
    one, other = (_found("features", g, [5]) for g in (graph, attacked))
    assert np.array_equal(one, other)


def _found(donors: Any, graph: Graph, nodes: Any, k: int = 4) -> Any:
    found = search(donors, Places(graph), seed=SeedSequence(0), device="cpu", owner="test")
    return found.nearest(k, of=np.array(nodes), include_self=False)[1].reshape(len(nodes), k)


@pytest.mark.parametrize("donors", NAMES)
def test_nobody_is_its_own_donor(donors: str) -> None:
    graph = planted_graph()
    nodes = np.arange(graph.n_nodes)
    found = _found(donors, graph, nodes)
    assert (found != nodes[:, None]).all()
    assert all(len(set(row)) == 4 for row in found.tolist())
    assert np.array_equal(found[[9, 2]], _found(donors, graph, [9, 2]))


def test_an_array_or_a_function_decides() -> None:
    graph = planted_graph()
    line = np.arange(60.0)[:, None]
    for donors in (line, lambda seen: line * seen.n_nodes, line.tolist()):
        assert _found(donors, graph, [0, 30], 2).tolist() == [[1, 2], [29, 31]]


def test_all_other_nodes_may_be_donors() -> None:
    graph = planted_graph()
    defence = CopyingDefence(n_donors=59).fit(graph, [0, 1, 2], rng=0)
    assert sorted(defence.nearest_donors([4])[0].tolist()) == [n for n in range(60) if n != 4]
    assert np.isfinite(defence.correct([4])).all()


def test_features_are_needed() -> None:
    for donors in ("features", "expected"):
        with pytest.raises(InputError, match="a graph must have features to tell by them"):
            _found(donors, planted_graph().replace(features=None), [0])


def test_many_features_of_few_nodes_are_reduced() -> None:
    """As many directions as nodes are enough, and nothing between nodes changes."""
    draw = np.random.default_rng(0)
    wide = Graph(np.zeros((9, 9)), draw.random((9, 500)))
    found = feature_embedding(wide)
    assert found.shape == (9, 9)
    few = feature_embedding(wide, rank=500)
    np.testing.assert_allclose(found @ found.T, few @ few.T, atol=1e-8)


def plain_connections(graph: Graph) -> Any:
    """The neighbourhoods of nodes whose features are the identity, nothing reduced."""
    return neighbourhoods(graph, np.eye(graph.n_nodes))


def test_connections_are_neighbourhoods_of_the_nodes_themselves() -> None:
    draw = np.random.default_rng(1)
    upper = np.triu(draw.random((50, 50)) < 0.1, 1)
    graph = Graph(upper | upper.T)
    exact = plain_connections(graph)
    np.testing.assert_allclose(connections(graph) @ connections(graph).T, exact @ exact.T, atol=1e-9)
    reduced = connections(wide_graph(), rank=30)
    assert reduced.shape == (120, 30)
    np.testing.assert_allclose(np.linalg.norm(reduced, axis=1), 1)


@pytest.mark.parametrize("features", [None, np.eye(60)], ids=["no features", "identity"])
def test_features_that_nobody_shares_find_no_donors(features: Any) -> None:
    graph = planted_graph().replace(features=features)
    named: Any = {"seed": SeedSequence(0), "device": "cpu", "owner": "test"}
    for donors in ("features", "expected"):
        with pytest.raises(InputError, match="a graph must have features to tell by them which nodes"):
            search(donors, Places(graph), **named)
    exact = plain_connections(graph)
    found = search("neighbourhoods", Places(graph), **named)
    apart = ((exact[:, None] - exact[None]) ** 2).sum(axis=2)
    np.fill_diagonal(apart, np.inf)
    _, nearest = found.nearest(1, of=np.arange(60), include_self=False)
    np.testing.assert_allclose(apart[np.arange(60), nearest.ravel()], apart.min(axis=1), atol=1e-9)
    assert search("vgae", Places(graph), **named).matrix.shape[0] == 60


def test_a_graph_without_features_is_defended() -> None:
    graph = with_features(planted_graph().replace(features=None))
    defence = CopyingDefence(GCN(epochs=100), donors="neighbourhoods", n_donors=3)
    defence.fit(graph, np.arange(9), rng=0)
    labels = np.asarray(graph.labels)
    assert (defence.correct(np.arange(60)).argmax(axis=1) == labels).mean() > 0.7
    for wrong in ({"donors": "expected"}, {"donors": "neighbourhoods", "cautious": True}):
        with pytest.raises(InputError, match="a graph must have features to tell by them which nodes"):
            CopyingDefence(GCN(epochs=1), n_donors=3, **wrong).fit(graph, np.arange(9), rng=0).correct([4])
    with pytest.raises(InputError, match="a graph must have features to tell by them which nodes"):
        defence.suspects()
