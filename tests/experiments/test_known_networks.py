from __future__ import annotations

import numpy as np
import pytest
from numpy.random import SeedSequence

from nodecopy.experiments.data import KNOWN_NETWORKS, KnownNetwork


@pytest.mark.parametrize("name", KNOWN_NETWORKS)
def test_networks_depend_on_their_seeds_alone(name: str) -> None:
    first, again = (KnownNetwork.by_name(name, 60, 10, SeedSequence(0)) for _ in range(2))
    assert np.array_equal(first.probabilities, again.probabilities)
    assert first.draw(SeedSequence(1)) == again.draw(SeedSequence(1))
    assert first.draw(SeedSequence(1)) != first.draw(SeedSequence(2))
    assert first.draw(SeedSequence(1)).directed == (name == "directed")


@pytest.mark.parametrize("name", KNOWN_NETWORKS)
def test_edges_occur_with_their_probabilities(name: str) -> None:
    """The number of edges of 200 networks; five standard errors of its mean."""
    network = KnownNetwork.by_name(name, 100, 10, SeedSequence(0))
    pairs = ~np.eye(100, dtype=bool) if network.directed else np.triu(np.ones((100, 100), bool), 1)
    p = network.probabilities[pairs]
    assert 0 <= p.min() <= p.max() <= 1
    mean = np.mean([network.draw(SeedSequence(seed)).n_edges for seed in range(200)])
    assert mean == pytest.approx(p.sum(), abs=5 * np.sqrt((p * (1 - p)).sum() / 200))


@pytest.mark.parametrize("name", KNOWN_NETWORKS)
def test_the_mean_degree_is_as_given(name: str) -> None:
    """Nodes are drawn; the mean of 20 times 300 Pareto activities has a standard error of 1 %."""
    networks = [KnownNetwork.by_name(name, 300, 12, SeedSequence(seed)) for seed in range(20)]
    assert np.mean([network.probabilities.sum() / 300 for network in networks]) == pytest.approx(12, rel=0.05)


@pytest.mark.parametrize("name", KNOWN_NETWORKS)
def test_other_seeds_have_other_nodes(name: str) -> None:
    networks = [KnownNetwork.by_name(name, 60, 10, SeedSequence(seed)) for seed in range(2)]
    assert not np.array_equal(networks[0].blocks, networks[1].blocks)
    assert not np.array_equal(networks[0].probabilities, networks[1].probabilities)


def test_blocks_are_the_labels() -> None:
    network = KnownNetwork.by_name("dot-product", 90, 10, SeedSequence(0))
    labels = network.draw(SeedSequence(0)).labels
    assert labels is not None
    assert np.array_equal(labels, network.blocks)
    assert np.unique(labels).tolist() == [0, 1, 2]


def test_a_bipartite_network_has_no_edges_inside() -> None:
    network = KnownNetwork.by_name("bipartite", 80, 10, SeedSequence(0))
    graph, side = network.draw(SeedSequence(0)), network.blocks
    assert (side[graph.rows.row_numbers] != side[graph.rows.indices]).all()
