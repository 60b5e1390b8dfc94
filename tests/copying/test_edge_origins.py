"""Origins of sampled edges against the donors of the same samples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodecopy import Graph, NodeCopying, SameLabel
from nodecopy.copying.model import EdgeTrackingSampler

EDGES = st.lists(
    st.tuples(st.integers(0, 7), st.integers(0, 7), st.sampled_from([0.5, 1.0, 2.0])), min_size=1, max_size=25
)


def fit(
    edges: list[tuple[int, int, float]], directed: bool, symmetrise: str = "maximum"
) -> tuple[NodeCopying[Graph], EdgeTrackingSampler]:
    first, second, weights = (np.array(column) for column in zip(*edges, strict=True))
    graph = Graph.from_edges(first, second, weights, node_ids=np.arange(8), directed=directed)
    model = NodeCopying(SameLabel(np.arange(8) % 2), keep=0.2, symmetrise=symmetrise).fit(graph)
    return model, EdgeTrackingSampler(model, first, second, weights)


@settings(deadline=None)
@given(EDGES, st.booleans(), st.sampled_from(["maximum", "one-endpoint"]), st.integers(0, 99))
def test_sampled_edges_are_those_of_the_model_with_the_weights_of_their_origins(
    edges: list[tuple[int, int, float]], directed: bool, symmetrise: str, seed: int
) -> None:
    model, sampler = fit(edges, directed, symmetrise)
    for sample, (first, second, origin) in zip(
        model.sample_many(3, rng=seed), sampler.sample_many(3, rng=seed), strict=True
    ):
        assert np.array_equal(first, sample.rows.row_numbers)
        assert np.array_equal(second, sample.rows.indices)
        weights = np.ones(len(first)) if sample.rows.weights is None else sample.rows.weights
        assert [edges[number][2] for number in origin] == weights.tolist()


@settings(deadline=None)
@given(EDGES, st.integers(0, 99))
def test_the_origin_of_a_directed_edge_is_an_edge_of_the_donor(
    edges: list[tuple[int, int, float]], seed: int
) -> None:
    model, sampler = fit(edges, directed=True)
    donors = model.draw_donors(rng=seed)
    for node, target, number in zip(*sampler.sample(rng=seed), strict=True):
        assert edges[number][:2] == (donors[node], target)


def test_of_parallel_edges_the_heaviest_and_then_the_last_is_the_origin() -> None:
    edges: Any = [(0, 1, 2.0), (0, 1, 0.5), (0, 1, 2.0), (0, 3, 1.0)]
    model, _ = fit(edges, directed=True)
    model.set_params(keep=1.0).fit(model.graph_)
    first, second, weights = (np.array(column) for column in zip(*edges, strict=True))
    origin = EdgeTrackingSampler(model, first, second, weights).sample(rng=0)[2]
    assert origin.tolist() == [2, 3]


@pytest.mark.parametrize("workers", [1, 2])
def test_a_stream_does_not_depend_on_workers(workers: int) -> None:
    _, sampler = fit([(0, 1, 1.0), (1, 2, 2.0), (3, 4, 0.5)], directed=False)
    stream = list(sampler.sample_many(4, rng=3, workers=workers))
    assert np.array_equal(stream[0][2], sampler.sample(rng=3)[2])
    for sample, again in zip(stream, sampler.sample_many(4, rng=3), strict=True):
        assert [part.tolist() for part in sample] == [part.tolist() for part in again]
