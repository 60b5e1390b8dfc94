"""GNNGuard and Soft Median against direct computations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from nodecopy.defend import Defence, GNNGuard, SoftMedianGCN
from nodecopy.defend.robust_networks import GuardedNetwork, SoftMedianNetwork, weighted_median
from tests.contracts.classifiers import planted_graph
from tests.contracts.defences import DefenceContract

TRAIN = np.arange(9)
DEFENCES: dict[str, Any] = {"guard": GNNGuard, "soft-median": SoftMedianGCN}


@pytest.mark.parametrize("name", DEFENCES)
def test_planted_classes_are_learned(name: str) -> None:
    fitted: Defence = DEFENCES[name](n_epochs=60, learning_rate=0.05).fit(planted_graph(), TRAIN, rng=0)
    assert fitted.score() > 0.7
    assert np.array_equal(fitted.correct_proba(np.arange(60)), fitted.predict_proba())


def test_median_of_every_column() -> None:
    draws = np.random.default_rng(0)
    target = np.sort(np.append(np.arange(6), draws.integers(6, size=40)))
    values, weight = draws.normal(size=(46, 3)), draws.uniform(0.5, 2.0, size=46)
    order = draws.permutation(46)
    total = np.bincount(target, weight)
    shuffled = [torch.tensor(part[order]) for part in (values, weight, target)]
    median = weighted_median(shuffled[0], shuffled[1], shuffled[2], torch.tensor(total))
    for node in range(6):
        own = target == node
        for column in range(3):
            by_value = np.argsort(values[own, column])
            reached = np.cumsum(weight[own][by_value]) >= total[node] / 2 - 1e-9
            expected = values[own, column][by_value][reached.argmax()]
            assert median[node, column].item() == pytest.approx(expected)


def test_outlier_counts_less_by_the_soft_median() -> None:
    network = SoftMedianNetwork(2, 2)
    values = torch.tensor([[1.0, 1.0]] * 6 + [[100.0, 100.0]])
    source, target = torch.tensor([*range(1, 7), *range(7)]), torch.tensor([0] * 6 + list(range(7)))
    robust = network.aggregate(values, values, source, target)[0]
    weight = 6 / 7**0.5 + 1 / 7  # of the six neighbours, which have a loop only, and of the loop
    np.testing.assert_allclose(robust.numpy(), weight, rtol=1e-4)


def test_dissimilar_neighbours_are_cut_by_the_guard() -> None:
    network = GuardedNetwork(2, 2)
    inputs = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    source, target = torch.tensor([1, 2, 0, 1, 2]), torch.tensor([0, 0, 0, 1, 2])
    out = network.aggregate(inputs, torch.eye(3), source, target)[0]
    assert out[2] == 0
    assert out[0] > 0
    assert out[1] > 0


@pytest.mark.filterwarnings("ignore:the weights of the graph are not used")
class TestRobustNetworks(DefenceContract):
    @pytest.fixture(scope="class", params=DEFENCES)
    @classmethod
    def classifier(cls, request: pytest.FixtureRequest) -> Defence:
        defence: Defence = DEFENCES[request.param](n_epochs=60, learning_rate=0.05)
        return defence
