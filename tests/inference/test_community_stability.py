"""Stability of communities."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from nodecopy import Graph, NodeCopying, SameLabel, datasets
from nodecopy.errors import DataWarning, InputError
from nodecopy.generators import ErdosRenyi
from nodecopy.inference import DegreeClasses, community_stability
from nodecopy.io import to_networkx
from nodecopy.io.igraph import to_igraph

CLUB = datasets.load("karate")
LAW = SameLabel(CLUB.labels)


def factions(graph: Graph) -> list[int]:
    assert graph.labels is not None
    return list(graph.labels)


def test_communities_that_do_not_depend_on_edges_are_stable() -> None:
    result = community_stability(CLUB, factions, model=LAW, n=5, rng=0)
    assert result.together.tolist() == [1, 1]
    assert result.nodes.tolist() == [1] * 34
    assert result.sizes.sum() == 34
    assert result.pair_share(CLUB.node_ids[0], CLUB.node_ids[33]) == 0


def test_shares_are_those_of_all_pairs() -> None:
    result = community_stability(CLUB, model=ErdosRenyi(), n=6, rng=1)
    is_same = result.memberships[:, :, None] == result.memberships[:, None, :]
    share = is_same.mean(axis=0)
    for community, together in enumerate(result.together):
        members = np.flatnonzero(result.communities == community)
        pairs = share[np.ix_(members, members)]
        size = len(members)
        assert together == pytest.approx((pairs.sum() - size) / (size * (size - 1)))
        assert result.nodes[members[0]] == pytest.approx((pairs[0].sum() - 1) / (size - 1))
    assert result.all_pairs == pytest.approx((share.sum() - 34) / (34 * 33))
    assert result.pair_share(*CLUB.node_ids[[2, 3]]) == pytest.approx(share[2, 3])


def test_communities_of_other_libraries() -> None:
    network = to_networkx(CLUB)
    result = community_stability(network, nx.community.louvain_communities, n=3, model=LAW, rng=0)
    assert len(result.to_pandas()) == 34
    other = to_igraph(CLUB)
    walks = community_stability(
        other, lambda graph: graph.community_walktrap().as_clustering(), n=3, model=LAW, rng=0
    )
    assert walks.sizes.sum() == 34
    assert walks.plot().get_xlabel() == "community"


def test_samples_of_directed_graphs_are_those_of_bootstrap() -> None:
    edges = np.random.default_rng(0).random((40, 40)) < 0.2
    with pytest.warns(DataWarning, match="have them whether they exist or not"):
        result = community_stability(Graph(edges, directed=True), n=2, rng=0)
    assert result.model.startswith("DirectedCopying")
    assert len(result.problems) == 1


def test_few_donors_are_a_warning() -> None:
    with pytest.warns(DataWarning, match="fewer than 3 donors"):
        result = community_stability(CLUB, model=DegreeClasses("labels"), n=2, rng=0)
    assert len(result.problems) == 1


def test_what_is_refused() -> None:
    with pytest.raises(InputError, match="communities must be a function"):
        community_stability(CLUB, [0, 1], n=3)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="must return one per node; got 0"):
        community_stability(CLUB, lambda graph: 0, n=3)
    with pytest.raises(InputError, match="must return one per node, 34 in all"):
        community_stability(CLUB, lambda graph: [0, 1], n=3, model=NodeCopying(SameLabel()))
