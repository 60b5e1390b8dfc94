from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest
from numpy.random import SeedSequence

from nodecopy import Graph, NodeCopying, SameLabel, datasets
from nodecopy.generators import SBM, BlockConfigurationModel, DegreeCorrectedSBM
from nodecopy.inference import DegreeClasses, NodeBootstrap, spectral_communities
from nodecopy.inference.resampling import choose_sampler, collect_values, measure_samples, start_sampling
from nodecopy.inference.statistics import prepare_measure
from nodecopy.models import GraphModel
from tests.inference.known_graphs import draw_graph, two_blocks

CLUB = datasets.load("karate")


def test_defaults_by_target() -> None:
    assert isinstance(choose_sampler(None, "nodes"), NodeBootstrap)
    model = choose_sampler(None, "edges")
    assert isinstance(model, NodeCopying)
    assert isinstance(model.donors, DegreeClasses)
    assert model.symmetrise == "one-endpoint"


def test_values_are_those_of_sample_many() -> None:
    model = NodeCopying(SameLabel()).fit(CLUB)
    _, measure = prepare_measure("n_edges", CLUB, None)
    values = collect_values(measure_samples(model, measure, 5, SeedSequence(3)), {"n_edges": ()}, 5)
    expected = [sample.n_edges for sample in model.sample_many(5, rng=SeedSequence(3))]
    assert values["n_edges"].tolist() == expected


@pytest.mark.parametrize("model", [SBM(), DegreeCorrectedSBM(), BlockConfigurationModel()])
def test_blocks_without_labels_are_spectral_communities(
    model: GraphModel[Graph], caplog: pytest.LogCaptureFixture
) -> None:
    """Those of label propagation were one in half of the networks with two blocks."""
    for number in range(5):
        graph = draw_graph(two_blocks(200), np.random.default_rng(number)).replace(labels=None)
        observed, measure = prepare_measure("density", graph, None)
        with caplog.at_level(logging.INFO, "nodecopy"):
            sampling = start_sampling(observed, measure, measure(observed), model, call="test", n=2, rng=0)
        fitted: Any = sampling.sampler
        assert np.array_equal(fitted.blocks_, spectral_communities(graph))
        assert caplog.messages[-1] == "blocks: 2 communities, estimated from the graph. labels names them."
