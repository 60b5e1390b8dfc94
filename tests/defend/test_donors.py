"""Who is chosen as a donor."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.random import SeedSequence

from nodecopy import Graph
from nodecopy.classify import GCN
from nodecopy.defend import CopyingDefence
from nodecopy.defend.copying import DONOR_NAMES, DonorFinder, build_donor_search
from nodecopy.errors import InputError
from nodecopy.features.embeddings import NodeEmbeddings
from nodecopy.nn.networks import add_identity_features
from tests.contracts.classifiers import planted_graph
from tests.features.test_node_embeddings import plain_connections, wide_graph


def test_edges_of_a_node_do_not_choose_its_donors_by_features() -> None:
    graph = wide_graph()
    adjacency = graph.adjacency.toarray()
    adjacency[:, 5] = adjacency[5] = 0
    adjacency[5, 60:80] = adjacency[60:80, 5] = 1
    attacked = graph.replace(adjacency=adjacency)
    donors, after = (find("features", g, [5]) for g in (graph, attacked))
    assert np.array_equal(donors, after)


def find(donors: Any, graph: Graph, nodes: Any, n_donors: int = 4) -> Any:
    search = build_donor_search(
        donors, NodeEmbeddings(graph), seed=SeedSequence(0), device="cpu", caller="test"
    )
    return DonorFinder(search, n_donors).find(np.array(nodes))


@pytest.mark.parametrize("donors", DONOR_NAMES)
def test_no_node_is_its_own_donor(donors: str) -> None:
    graph = planted_graph()
    nodes = np.arange(graph.n_nodes)
    own = find(donors, graph, nodes)
    assert (own != nodes[:, None]).all()
    assert all(len(set(row)) == 4 for row in own.tolist())
    assert np.array_equal(own[[9, 2]], find(donors, graph, [9, 2]))


def test_donors_by_an_array_or_a_function() -> None:
    graph = planted_graph()
    line = np.arange(60.0)[:, None]
    for donors in (line, lambda graph: line * graph.n_nodes, line.tolist()):
        assert find(donors, graph, [0, 30], 2).tolist() == [[1, 2], [29, 31]]


def test_all_other_nodes_can_be_donors() -> None:
    graph = planted_graph()
    defence = CopyingDefence(n_donors=59).fit(graph, [0, 1, 2], rng=0)
    assert sorted(defence.nearest_donors([4])[0].tolist()) == [n for n in range(60) if n != 4]
    assert np.allclose(defence.correct_proba([4]).sum(), 1)


def test_features_are_required() -> None:
    for donors in ("features", "expected"):
        with pytest.raises(InputError, match="graph must have features to find similar nodes"):
            find(donors, planted_graph().replace(features=None), [0])


@pytest.mark.parametrize("features", [None, np.eye(60)], ids=["no features", "identity"])
def test_features_of_single_nodes_find_no_donors(features: Any) -> None:
    graph = planted_graph().replace(features=features)
    named: Any = {"seed": SeedSequence(0), "device": "cpu", "caller": "test"}
    for donors in ("features", "expected"):
        with pytest.raises(InputError, match=r"graph must have features .* Donors can be chosen by 'neigh"):
            build_donor_search(donors, NodeEmbeddings(graph), **named)
    exact = plain_connections(graph)
    by_neighbourhoods = build_donor_search("neighbourhoods", NodeEmbeddings(graph), **named)
    distances = ((exact[:, None] - exact[None]) ** 2).sum(axis=2)
    np.fill_diagonal(distances, np.inf)
    _, nearest = by_neighbourhoods.nearest(1, of=np.arange(60), include_self=False)
    np.testing.assert_allclose(distances[np.arange(60), nearest.ravel()], distances.min(axis=1), atol=1e-9)
    assert build_donor_search("vgae", NodeEmbeddings(graph), **named).matrix.shape[0] == 60


@pytest.mark.filterwarnings("ignore:the classifier has learned almost nothing")  # after so few epochs
def test_a_graph_without_features_is_defended() -> None:
    graph = add_identity_features(planted_graph().replace(features=None))
    defence = CopyingDefence(GCN(n_epochs=100), donors="neighbourhoods", n_donors=3)
    defence.fit(graph, np.arange(9), rng=0)
    labels = np.asarray(graph.labels)
    assert (defence.correct_proba(np.arange(60)).argmax(axis=1) == labels).mean() > 0.7
    for wrong in ({"donors": "expected"}, {"donors": "neighbourhoods", "trust_edges": True}):
        with pytest.raises(InputError, match="graph must have features to find similar nodes"):
            CopyingDefence(GCN(n_epochs=1), n_donors=3, **wrong).fit(
                graph, np.arange(9), rng=0
            ).correct_proba([4])
    with pytest.raises(InputError, match="graph must have features to find similar nodes"):
        defence.score_suspicion()
