from __future__ import annotations

import numpy as np
import pytest
from numpy.random import SeedSequence

from nodecopy.experiments.known_networks import KNOWN_NETWORKS, KnownNetwork


@pytest.mark.parametrize("name", KNOWN_NETWORKS)
def test_networks_depend_on_their_seeds_alone(name: str) -> None:
    first, again = (KnownNetwork.by_name(name, 60, SeedSequence(0)) for _ in range(2))
    assert np.array_equal(first.probabilities, again.probabilities)
    assert first.draw(SeedSequence(1)) == again.draw(SeedSequence(1))
    assert first.draw(SeedSequence(1)) != first.draw(SeedSequence(2))
    assert first.draw(SeedSequence(1)).directed == (name == "directed")


@pytest.mark.parametrize("name", KNOWN_NETWORKS)
def test_edges_occur_with_their_probabilities(name: str) -> None:
    """The number of edges of 200 networks; five standard errors of its mean."""
    network = KnownNetwork.by_name(name, 100, SeedSequence(0))
    pairs = ~np.eye(100, dtype=bool) if network.directed else np.triu(np.ones((100, 100), bool), 1)
    p = network.probabilities[pairs]
    assert 0 <= p.min() <= p.max() <= 1
    mean = np.mean([network.draw(SeedSequence(seed)).n_edges for seed in range(200)])
    assert mean == pytest.approx(p.sum(), abs=5 * np.sqrt((p * (1 - p)).sum() / 200))


@pytest.mark.parametrize("name", KNOWN_NETWORKS)
def test_the_mean_degree_does_not_depend_on_the_number_of_nodes(name: str) -> None:
    degrees = [KnownNetwork.by_name(name, n, SeedSequence(0)).probabilities.sum() / n for n in (200, 600)]
    assert degrees[0] == pytest.approx(degrees[1], rel=0.15)


def test_a_bipartite_network_has_no_edges_inside() -> None:
    graph = KnownNetwork.by_name("bipartite", 80, SeedSequence(0)).draw(SeedSequence(0))
    side = np.arange(80) % 2
    assert (side[graph.rows.row_numbers] != side[graph.rows.indices]).all()
