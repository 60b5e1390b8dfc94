"""Embeddings of nodes against direct computations."""

from __future__ import annotations

import gc
from typing import Any
from weakref import ref

import numpy as np
import pytest
from scipy import sparse

from nodecopy import Graph
from nodecopy.errors import InputError
from nodecopy.features import embeddings as node_embeddings
from nodecopy.features.embeddings import (
    GraphCache,
    NodeEmbeddings,
    embed_connections,
    embed_neighbourhoods,
    expected_neighbourhoods,
    shared_neighbourhoods,
)


def wide_graph(seed: int = 0, n: int = 120, width: int = 90) -> Graph:
    draw = np.random.default_rng(seed)
    upper = np.triu(draw.random((n, n)) < 0.05, 1)
    return Graph(upper | upper.T, (draw.random((n, width)) < 0.1).astype(float))


def test_features_are_weighted_by_tf_idf() -> None:
    """Two of three nodes have the first feature, one the second: log(4/3) + 1 and log(4/2) + 1."""
    graph = Graph(np.zeros((3, 3)), [[1, 0, 0], [1, 1, 0], [0, 0, 0]])
    common, rare = np.log(4 / 3) + 1, np.log(4 / 2) + 1
    length = np.hypot(common, rare)
    expected = [[1, 0, 0], [common / length, rare / length, 0], [0, 0, 0]]
    np.testing.assert_allclose(NodeEmbeddings(graph).features, expected)


def test_measurements_are_standardised() -> None:
    """A column in the thousands that says nothing hid the others before."""
    draw = np.random.default_rng(0)
    group, amount = np.repeat([0.0, 1.0], 30), draw.normal(5e4, 1e4, 60)
    graph = Graph(np.zeros((60, 60)), np.column_stack([group, 1 - group, amount]))
    search = NodeEmbeddings(graph).search("features", parameter="donors", owner="test")
    _, nearest = search.nearest(5, include_self=False)
    assert (group[nearest].reshape(60, 5) == group[:, None]).all()


def test_wide_features_are_reduced() -> None:
    graph = wide_graph()
    embedding, exact = NodeEmbeddings(graph).features, NodeEmbeddings(graph, 90).features
    assert embedding.shape == (120, 64)
    assert exact.shape == (120, 90)
    u, s, _ = np.linalg.svd(exact)
    reduced = (u * np.pad(s, (0, 30)))[:, :64]
    reduced /= np.linalg.norm(reduced, axis=1, keepdims=True)
    np.testing.assert_allclose(embedding @ embedding.T, reduced @ reduced.T, atol=1e-8)
    assert np.array_equal(embedding, NodeEmbeddings(graph).features)
    features: Any = graph.features
    same = NodeEmbeddings(graph.replace(features=sparse.csr_array(features))).features
    np.testing.assert_allclose(embedding @ embedding.T, same @ same.T, atol=1e-9)


def test_neighbourhoods_of_a_pair_and_an_isolated_node() -> None:
    """A pair and a single node: each of the pair has the neighbourhood (1, 1)."""
    graph = Graph.from_edges([0], [1], node_ids=[0, 1, 2])
    embedding = embed_neighbourhoods(graph, np.eye(3)[:, :2] + [[0, 0], [0, 0], [0, 1]])
    half = np.sqrt(0.5)
    np.testing.assert_allclose(embedding, [[half, half], [half, half], [0, 1]])


def test_expected_neighbourhoods_leave_the_node_out() -> None:
    """The closed form against a regression without the node, one for each."""
    graph = wide_graph()
    features = NodeEmbeddings(graph).features
    neighbourhoods = embed_neighbourhoods(graph, features)
    embedding = expected_neighbourhoods(graph, features, neighbourhoods)
    has_edges = graph.degrees > 0
    for node in range(10):
        others = has_edges & (np.arange(graph.n_nodes) != node)
        x, y = features[others], neighbourhoods[others]
        expected = features[node] @ np.linalg.solve(x.T @ x + np.eye(64), x.T @ y)
        np.testing.assert_allclose(embedding[node], expected / np.linalg.norm(expected), atol=1e-9)


def plain_connections(graph: Graph) -> Any:
    """The neighbourhoods of nodes whose features are the identity, nothing reduced."""
    return embed_neighbourhoods(graph, np.eye(graph.n_nodes))


def test_connections_are_neighbourhoods_of_the_nodes_themselves() -> None:
    draw = np.random.default_rng(1)
    upper = np.triu(draw.random((50, 50)) < 0.1, 1)
    graph = Graph(upper | upper.T)
    exact = plain_connections(graph)
    np.testing.assert_allclose(
        embed_connections(graph, 64) @ embed_connections(graph, 64).T, exact @ exact.T, atol=1e-9
    )
    reduced = embed_connections(wide_graph(), rank=30)
    assert reduced.shape == (120, 30)
    np.testing.assert_allclose(np.linalg.norm(reduced, axis=1), 1)


def test_search_by_expected_neighbourhood_and_features() -> None:
    """The query of a node is its expected neighbourhood beside half its features."""
    embeddings = NodeEmbeddings(wide_graph())
    search = embeddings.search("expected", parameter="donors", owner="a test")
    rows = np.hstack([embeddings.neighbourhoods, 0.5 * embeddings.features])
    queries = np.hstack([embeddings.expected, 0.5 * embeddings.features])
    distances = ((queries[:, None] - rows[None]) ** 2).sum(axis=2)
    np.fill_diagonal(distances, np.inf)
    _, nearest = search.nearest(1, include_self=False)
    assert nearest.tolist() == distances.argmin(axis=1).tolist()
    with pytest.raises(InputError, match="donors of a test must be one of 'expected', 'features', 'neigh"):
        embeddings.search("vgae", parameter="donors", owner="a test")


def test_features_of_single_nodes_leave_neighbourhoods_only() -> None:
    graph = wide_graph().replace(features=np.eye(120))
    embeddings = NodeEmbeddings(graph)
    np.testing.assert_array_equal(embeddings.neighbourhoods, embed_connections(graph, 64))
    with pytest.raises(InputError, match="in this one no two nodes share any"):
        _ = embeddings.features


@pytest.mark.parametrize("has_features", [True, False])
def test_shared_neighbourhoods_live_as_long_as_their_graph(has_features: bool) -> None:
    features = np.eye(4)[[0, 0, 1, 1]] if has_features else None
    graph = Graph.from_edges([0, 1, 2], [1, 2, 3], features=features)
    embedding = shared_neighbourhoods(graph)
    np.testing.assert_allclose(embedding, NodeEmbeddings(graph).neighbourhoods, atol=1e-8)
    assert shared_neighbourhoods(graph.replace(labels=[0, 1, 0, 1])) is embedding
    references: list[Any] = [ref(embedding), ref(graph.features if has_features else graph.rows)]
    del graph, embedding, features
    gc.collect()
    assert [reference() for reference in references] == [None, None]


def test_shared_neighbourhoods_do_not_show_errors_of_rounding(monkeypatch: pytest.MonkeyPatch) -> None:
    exact, graph = embed_neighbourhoods, wide_graph()
    noise = 1e-15 * np.random.default_rng(0).standard_normal((120, 64))  # as of another number of threads
    monkeypatch.setattr(
        node_embeddings, "embed_neighbourhoods", lambda graph, features: exact(graph, features) + noise
    )
    with_noise = shared_neighbourhoods(graph)
    monkeypatch.undo()
    assert np.array_equal(shared_neighbourhoods(wide_graph()), with_noise)


def test_a_cache_keeps_the_results_of_the_last_graphs() -> None:
    cache, plain = GraphCache[object](2), Graph(1 - np.eye(3))
    graph = plain.replace(features=np.eye(3), labels=[0, 1, 0])
    first = cache.find(graph, 0, object)
    assert cache.find(graph.replace(labels=[1, 1, 0]), 0, object) is first
    assert cache.find(graph, 1, object) is not first
    for other in (graph.replace(features=np.ones((3, 1))), graph.replace(adjacency=np.zeros((3, 3))), plain):
        assert cache.find(other, 0, object) is not first
        assert cache.find(other, 0, object) is cache.find(other, 0, object)
    assert cache.find(graph, 0, object) is not first  # two others were seen since
    *_, result = cache._entries[-1]
    assert result
    del graph, plain, other
    gc.collect()
    assert not result
