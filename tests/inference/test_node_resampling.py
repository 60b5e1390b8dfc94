from __future__ import annotations

import numpy as np
import pytest
from numpy.random import SeedSequence

from nodecopy import Graph, datasets
from nodecopy.errors import InputError
from nodecopy.inference import LatentPositionBootstrap, NodeBootstrap, NodeResampler, NodeSubsampling

CLUB = datasets.load("karate")
RESAMPLERS = [NodeBootstrap(), NodeSubsampling(0.5), LatentPositionBootstrap(2)]


@pytest.mark.parametrize("resampler", RESAMPLERS, ids=repr)
@pytest.mark.parametrize("directed", [False, True])
def test_samples_are_graphs_that_depend_on_the_seed_alone(resampler: NodeResampler, directed: bool) -> None:
    fitted = resampler.fit(CLUB.replace(directed=directed))
    first, again, other = (fitted.draw(SeedSequence(seed)) for seed in (0, 0, 1))
    assert first == again
    assert first != other
    assert first.directed == directed
    assert first.labels is not None
    assert len(first.labels) == first.n_nodes


def test_the_bootstrap_takes_edges_among_drawn_nodes() -> None:
    """Of two linked nodes, a sample has an edge only if it has one copy of each."""
    pair = NodeBootstrap().fit(Graph([[0, 1], [1, 0]]))
    n_edges = [pair.draw(SeedSequence(seed)).n_edges for seed in range(400)]
    assert set(n_edges) == {0, 1}
    assert np.mean(n_edges) == pytest.approx(0.5, abs=0.1)  # four standard errors


def test_a_subsample_is_an_induced_subgraph() -> None:
    labels = np.arange(34)
    graph = CLUB.replace(labels=labels)
    sample = NodeSubsampling(0.4).fit(graph).draw(SeedSequence(3))
    assert sample.labels is not None
    assert len(set(sample.labels.tolist())) == 14
    induced = graph.adjacency[sample.labels][:, sample.labels]
    assert np.array_equal(sample.adjacency.toarray(), induced.toarray())
    assert NodeSubsampling(0.5).fit(graph).deviation_factor == pytest.approx(1.0)


def test_latent_positions_keep_the_density() -> None:
    fitted = LatentPositionBootstrap(2).fit(CLUB)
    mean = np.mean([fitted.draw(SeedSequence(seed)).n_edges for seed in range(200)])
    assert mean == pytest.approx(78, rel=0.15)


def test_wrong_shares_are_an_error() -> None:
    with pytest.raises(InputError, match=r"share of NodeSubsampling must be a number between 0.01 and 0.99"):
        NodeSubsampling(1.0).fit(CLUB)
