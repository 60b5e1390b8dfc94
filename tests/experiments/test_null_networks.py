from __future__ import annotations

import numpy as np
import pytest
from numpy.random import SeedSequence

from nodecopy.experiments.data import NULL_NETWORKS, StubMatching, draw_null_network, factored_odds
from nodecopy.metrics.structure import select_statistics


@pytest.mark.parametrize("name", NULL_NETWORKS)
def test_networks_depend_on_their_seeds_alone(name: str) -> None:
    first, again, other = (draw_null_network(name, 80, 8, SeedSequence(seed)) for seed in (0, 0, 1))
    assert first == again
    assert first != other
    assert first.labels is not None
    assert first.labels.max() == 1
    assert 5 < first.degrees.mean() < 16


def test_odds_factor_within_pairs_of_blocks() -> None:
    network = factored_odds(200, 15, SeedSequence(1))
    p, blocks = network.probabilities, network.blocks
    odds = p / (1 - p)
    assert odds.max() > 1  # a limit of probabilities would be seen
    for first, second in ((0, 0), (0, 1), (1, 1)):
        part = odds[np.ix_(blocks == first, blocks == second)]
        assert part == pytest.approx(np.outer(part[:, 0], part[0]) / part[0, 0])


def test_planted_triangles_are_there() -> None:
    plain, planted = (
        select_statistics(draw_null_network(name, 200, 6, SeedSequence(3)), ["triangles"])["triangles"]
        for name in ("configuration", "planted-triangles")
    )
    assert planted > plain + 50


def test_stub_matching_is_that_of_networkx() -> None:
    """The means of edges and triangles of 300 samples each; five standard errors of the difference."""
    nx = pytest.importorskip("networkx")
    graph = draw_null_network("configuration", 60, 10, SeedSequence(0))
    model, names = StubMatching().fit(graph), ["n_edges", "triangles"]
    ours = np.array(
        [list(select_statistics(sample, names).values()) for sample in model.sample_many(300, rng=0)]
    )
    theirs = []
    for seed in range(300):
        network = nx.Graph(nx.configuration_model(graph.degrees.tolist(), seed=seed))
        network.remove_edges_from(list(nx.selfloop_edges(network)))
        theirs.append([network.number_of_edges(), sum(nx.triangles(network).values()) // 3])
    difference = ours.mean(axis=0) - np.mean(theirs, axis=0)
    assert (np.abs(difference) < 5 * ours.std(axis=0) * np.sqrt(2 / 300)).all()
