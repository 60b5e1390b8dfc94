"""Who is chosen as a donor."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.random import SeedSequence

from nodecopy import Graph
from nodecopy.classify import GCN
from nodecopy.defend import CopyingDefence
from nodecopy.defend.donors import search
from nodecopy.errors import InputError
from nodecopy.features.node_embeddings import EMBEDDING_NAMES, NodeEmbeddings
from nodecopy.nn.features import with_features
from tests.contracts.classifiers import planted_graph
from tests.features.test_node_embeddings import plain_connections, wide_graph


def test_edges_of_a_node_do_not_choose_its_donors_by_features() -> None:
    graph = wide_graph()
    adjacency = graph.adjacency.toarray()
    adjacency[:, 5] = adjacency[5] = 0
    adjacency[5, 60:80] = adjacency[60:80, 5] = 1
    attacked = graph.replace(adjacency=adjacency)
    one, other = (_found("features", g, [5]) for g in (graph, attacked))
    assert np.array_equal(one, other)


def _found(donors: Any, graph: Graph, nodes: Any, k: int = 4) -> Any:
    found = search(donors, NodeEmbeddings(graph), seed=SeedSequence(0), device="cpu", owner="test")
    return found.nearest(k, of=np.array(nodes), include_self=False)[1].reshape(len(nodes), k)


@pytest.mark.parametrize("donors", [*EMBEDDING_NAMES, "vgae", "gae"])
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
        with pytest.raises(InputError, match="graph must have features to find similar nodes"):
            _found(donors, planted_graph().replace(features=None), [0])


@pytest.mark.parametrize("features", [None, np.eye(60)], ids=["no features", "identity"])
def test_features_that_nobody_shares_find_no_donors(features: Any) -> None:
    graph = planted_graph().replace(features=features)
    named: Any = {"seed": SeedSequence(0), "device": "cpu", "owner": "test"}
    for donors in ("features", "expected"):
        with pytest.raises(InputError, match="graph must have features to find similar nodes"):
            search(donors, NodeEmbeddings(graph), **named)
    exact = plain_connections(graph)
    found = search("neighbourhoods", NodeEmbeddings(graph), **named)
    apart = ((exact[:, None] - exact[None]) ** 2).sum(axis=2)
    np.fill_diagonal(apart, np.inf)
    _, nearest = found.nearest(1, of=np.arange(60), include_self=False)
    np.testing.assert_allclose(apart[np.arange(60), nearest.ravel()], apart.min(axis=1), atol=1e-9)
    assert search("vgae", NodeEmbeddings(graph), **named).matrix.shape[0] == 60


def test_a_graph_without_features_is_defended() -> None:
    graph = with_features(planted_graph().replace(features=None))
    defence = CopyingDefence(GCN(n_epochs=100), donors="neighbourhoods", n_donors=3)
    defence.fit(graph, np.arange(9), rng=0)
    labels = np.asarray(graph.labels)
    assert (defence.correct(np.arange(60)).argmax(axis=1) == labels).mean() > 0.7
    for wrong in ({"donors": "expected"}, {"donors": "neighbourhoods", "cautious": True}):
        with pytest.raises(InputError, match="graph must have features to find similar nodes"):
            CopyingDefence(GCN(n_epochs=1), n_donors=3, **wrong).fit(graph, np.arange(9), rng=0).correct([4])
    with pytest.raises(InputError, match="graph must have features to find similar nodes"):
        defence.suspects()
