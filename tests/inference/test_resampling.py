"""Samples of edges and of nodes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.random import SeedSequence

from nodecopy import Graph, NodeCopying, SameLabel, datasets
from nodecopy._core.random import child
from nodecopy.errors import InputError
from nodecopy.generators import SBM, BlockConfigurationModel, DegreeCorrectedSBM
from nodecopy.inference import LatentPositionBootstrap, NodeBootstrap, NodeSubsampling, spectral_communities
from nodecopy.inference.resampling import SAMPLES_SEED, NodeResampler, collect_values, start_sampling
from nodecopy.inference.statistics import prepare_measure
from tests.inference.known_graphs import draw_graph, two_blocks

CLUB = datasets.load("karate")


def test_values_are_those_of_sample_many() -> None:
    observed, measure = prepare_measure("n_edges", CLUB, None)
    model = NodeCopying(SameLabel())
    *_, samples = start_sampling(observed, measure, model, call="bootstrap", n=5, rng=SeedSequence(3))
    values = collect_values(samples, measure(observed), 5)
    seed = child(SeedSequence(3), SAMPLES_SEED)
    expected = [sample.n_edges for sample in model.fit(CLUB).sample_many(5, rng=seed)]
    assert values["n_edges"].tolist() == expected


@pytest.mark.parametrize("model", [SBM(), DegreeCorrectedSBM(), BlockConfigurationModel()])
def test_blocks_without_labels_are_spectral_communities(model: Any, caplog: pytest.LogCaptureFixture) -> None:
    """Label propagation found one block in half of the networks with two blocks."""
    for number in range(5):
        graph = draw_graph(two_blocks(200), np.random.default_rng(number))
        observed, measure = prepare_measure("density", graph, None)
        fitted: Any = start_sampling(observed, measure, model, call="null_test", n=2, rng=0)[0]
        assert np.array_equal(fitted.blocks_, spectral_communities(graph))
        assert caplog.messages[-1].startswith("blocks: 2 communities, estimated from the graph.")


@pytest.mark.parametrize(
    "resampler", [NodeBootstrap(), NodeSubsampling(0.5), LatentPositionBootstrap()], ids=repr
)
@pytest.mark.parametrize("directed", [False, True])
def test_samples_are_graphs_that_depend_on_the_seed_alone(resampler: NodeResampler, directed: bool) -> None:
    fitted = resampler.fit(CLUB.replace(directed=directed))
    first, again, other = (fitted.draw(SeedSequence(seed)) for seed in (0, 0, 1))
    assert first == again
    assert first != other
    assert first.directed == directed
    assert first.label_codes is not None
    assert len(first.label_codes) == first.n_nodes


def test_the_bootstrap_takes_edges_among_drawn_nodes() -> None:
    """Of two linked nodes, a sample has an edge only if it has one copy of each."""
    pair = NodeBootstrap().fit(Graph([[0, 1], [1, 0]]))
    n_edges = [pair.draw(SeedSequence(seed)).n_edges for seed in range(400)]
    assert set(n_edges) == {0, 1}
    assert np.mean(n_edges) == pytest.approx(0.5, abs=0.1)  # four standard errors


def test_a_subsample_is_an_induced_subgraph() -> None:
    graph = CLUB.replace(labels=np.arange(34))
    sample = NodeSubsampling(0.4).fit(graph).draw(SeedSequence(3))
    assert sample.label_codes is not None
    assert len(set(sample.label_codes.tolist())) == 14
    induced = graph.adjacency[sample.label_codes][:, sample.label_codes]
    assert np.array_equal(sample.adjacency.toarray(), induced.toarray())
    assert NodeSubsampling(0.5).fit(graph).deviation_factor == pytest.approx(1.0)
    with pytest.raises(InputError, match=r"share of NodeSubsampling must be a number between 0.01 and 0.99"):
        NodeSubsampling(1.0).fit(CLUB)


def test_latent_positions_keep_the_density() -> None:
    fitted = LatentPositionBootstrap().fit(CLUB)
    mean = np.mean([fitted.draw(SeedSequence(seed)).n_edges for seed in range(200)])
    assert mean == pytest.approx(78, rel=0.15)
