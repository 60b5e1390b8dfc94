"""Node copying with torch operations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from nodecopy import Graph, Jaccard, NodeCopying, SameLabel
from nodecopy._core.random import seed_sequence, threefry
from nodecopy.copying.distributions import DonorDistribution
from nodecopy.copying.model import EdgeTrackingSampler
from tests.strategies import graphs

torch = pytest.importorskip("torch")

from nodecopy.nn.pyg import DeviceSampler, _threefry  # noqa: E402


def test_random_words_are_those_of_numpy() -> None:
    first, second = np.arange(100), np.arange(100)[::-1].copy()
    expected = threefry((2**32 - 1, 12345), first, second)
    words = _threefry((2**32 - 1, 12345), torch.from_numpy(first), torch.from_numpy(second))
    for ours, theirs in zip(words, expected, strict=True):
        np.testing.assert_array_equal(ours.numpy(), theirs)


@settings(max_examples=60, deadline=None)
@given(graph=graphs())
@pytest.mark.parametrize("donors", [Jaccard(), SameLabel()], ids=lambda donors: type(donors).__name__)
@pytest.mark.parametrize("symmetrise", ["maximum", "one-endpoint", "none"])
@pytest.mark.parametrize("keep", [0.0, 0.3, 1.0])
def test_samples_are_those_of_the_model(donors: Any, symmetrise: str, keep: float, graph: Graph) -> None:
    graph = graph.replace(labels=np.arange(graph.n_nodes) % 2)
    model = NodeCopying(donors, keep, symmetrise).fit(graph)
    first, second = graph.rows.row_numbers.astype(np.int64), graph.rows.indices.astype(np.int64)
    weights = np.ones(len(first)) if graph.rows.weights is None else graph.rows.weights
    expected = EdgeTrackingSampler(model, first, second, weights).sample(rng=seed_sequence(3))
    edge_index = torch.from_numpy(np.stack([first, second]))
    rule = None if model.graph_.directed else symmetrise
    weight = None if graph.rows.weights is None else torch.from_numpy(weights.copy())
    sampler = DeviceSampler(model.distribution_, edge_index, weight, keep=keep, rule=rule)
    sampled, origins = sampler.sample(seed_sequence(3))
    np.testing.assert_array_equal(sampled.numpy(), np.stack(expected[:2]))
    np.testing.assert_array_equal(origins.numpy(), expected[2])


class Cyclic(DonorDistribution):
    """A distribution of a user's own: the donor of a node is the next one."""

    n_nodes = 3

    def draw(self, uniforms: Any, keep: float, *, compiled: bool = False) -> Any:
        return (np.arange(3) + 1) % 3

    def mean_rows(self, matrix: Any) -> Any:
        raise NotImplementedError

    def match_probabilities(self, group_of: Any, wanted: Any) -> Any:
        raise NotImplementedError


def test_distributions_of_other_classes_draw_on_the_cpu() -> None:
    sampler = DeviceSampler(Cyclic(), torch.tensor([[0, 1], [1, 2]]), None, keep=0.0, rule=None)
    sampled, origins = sampler.sample(seed_sequence(0))
    assert (sampled.tolist(), origins.tolist()) == ([[0, 2], [2, 1]], [1, 0])
