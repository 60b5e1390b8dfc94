"""GNNGuard and Soft Median against direct computations."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch

from nodecopy.defend import GNNGuard, SoftMedianGCN
from nodecopy.defend.robust_networks import (
    NETWORKS,
    GuardedNetwork,
    RobustNetwork,
    SoftMedianNetwork,
    WeightedEdges,
    _sparse_features,
    weighted_median,
)
from tests.contracts.defences import DefenceContract


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


def test_median_of_ties_negative_values_and_targets_without_edges() -> None:
    values = torch.tensor(
        [[-0.0, -3.0], [0.0, -1.0], [-torch.inf, -2.0], [5.0, torch.inf]], requires_grad=True
    )
    target = torch.tensor([2, 2, 2, 0], dtype=torch.int32)
    total = torch.tensor([1.0, 0.0, 3.0])
    median = weighted_median(values, torch.ones(4), target, total)
    assert median[2].tolist() == [0.0, -2.0]
    assert median[0].tolist() == [5.0, torch.inf]
    (gradient,) = torch.autograd.grad(median[2, 0], values)
    assert gradient[:, 0].tolist() == [1.0, 0.0, 0.0, 0.0]  # the first of equal values


def test_outlier_counts_less_by_the_soft_median() -> None:
    network = SoftMedianNetwork(2, 2)
    values = torch.tensor([[1.0, 1.0]] * 6 + [[100.0, 100.0]])
    edges = WeightedEdges.with_loops(torch.tensor([[*range(1, 7)], [0] * 6]), None, 7)
    robust = network.combine(network.weigh(torch.ones(13), edges), values, edges)[0]
    weight = 6 / 7**0.5 + 1 / 7  # of the six neighbours, which have a loop only, and of the loop
    np.testing.assert_allclose(robust.numpy(), weight, rtol=1e-4)


def test_edges_that_the_first_layer_of_the_guard_removes_are_not_in_the_second() -> None:
    network = GuardedNetwork(2, 2).eval()
    x = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    with torch.no_grad():  # all hidden units are alike, so that the second layer alone would remove nothing
        network.first.weight.fill_(1.0)
        network.biases[0].fill_(1.0)
    edges = torch.tensor([[1, 0, 2, 0], [0, 1, 0, 2]])
    torch.testing.assert_close(network(x, edges), network(x, edges[:, :2]))


def test_the_guard_compares_without_dropout() -> None:
    """All features and hidden units are alike, but would not be after dropout."""
    network = GuardedNetwork(50, 2).train()
    similarities: list[torch.Tensor] = []

    class Recorder(GuardedNetwork):
        def compare(self, inputs: torch.Tensor, edges: WeightedEdges) -> torch.Tensor:
            similarities.append(super().compare(inputs, edges))
            return similarities[-1]

    network.__class__ = Recorder
    with torch.no_grad():
        network.biases[0].fill_(100.0)
    network(torch.ones(12, 50), ring_network("guarded")[2])
    assert len(similarities) == 2
    torch.testing.assert_close(similarities[0], torch.ones(36))
    assert (similarities[1] > 0.99).all()


def test_features_are_compared_again_if_they_or_the_edges_change() -> None:
    network, x, edges = ring_network("guarded")
    before = network(x, edges)
    assert torch.equal(network(x, edges), before)
    x[0] = torch.tensor([0.0, 0.0, 0.0, 0.0, 1.0])
    assert torch.equal(network(x, edges), network(x.clone(), edges))
    assert not torch.equal(network(x, edges), before)
    edges[:, 0] = torch.tensor([0, 5])
    assert torch.equal(network(x, edges), network(x, edges.clone()))


def test_sparse_features_are_multiplied_like_dense_ones() -> None:
    torch.manual_seed(0)
    network = RobustNetwork(30, 3).double().eval()
    x = torch.rand(12, 30).double() * (torch.rand(12, 30) < 0.1)
    weight, coefficients = network.first.weight, torch.rand(12, 16).double()
    products = network.transform(x), network.drop_and_multiply(x)
    torch.testing.assert_close(*products)
    assert _sparse_features[x][1] is not None
    torch.testing.assert_close(
        *(torch.autograd.grad((product * coefficients).sum(), weight)[0] for product in products)
    )
    x[0, 0] = 7.0
    torch.testing.assert_close(network.transform(x), network.drop_and_multiply(x))
    x[:] = 1.0  # no longer sparse
    torch.testing.assert_close(network.transform(x), network.drop_and_multiply(x))
    assert _sparse_features[x][1] is None


def test_gradients_know_which_sparse_features_were_dropped() -> None:
    torch.manual_seed(0)
    network, x = RobustNetwork(30, 3).train(), torch.eye(30)
    product = network.transform(x)  # the weights of each feature, doubled or dropped
    (gradient,) = torch.autograd.grad(product.sum(), network.first.weight)
    torch.testing.assert_close(product, (gradient * network.first.weight).T)
    assert set(gradient[0].tolist()) == {0.0, 2.0}


def test_entries_are_kept_as_long_as_the_features() -> None:
    network, x = RobustNetwork(30, 3), torch.eye(30)
    network.transform(x)
    before = len(_sparse_features)
    copy.deepcopy(network).transform(x)  # networks share the entries
    assert len(_sparse_features) == before
    del x
    assert len(_sparse_features) == before - 1


def test_dropout_of_sparse_features() -> None:
    """An entry is 0 or 2 with probability 1/2: the mean of 2,000 is off by 0.1 with probability 8e-6."""
    network, x = RobustNetwork(200, 3).train(), torch.zeros(2000, 200)
    x[torch.arange(2000), torch.arange(2000) % 200] = 1.0
    with torch.no_grad():
        network.first.weight.fill_(1.0)
    torch.manual_seed(0)
    first, second = (network.transform(x)[:, 0].detach() for _ in range(2))
    assert set(first.tolist()) == {0.0, 2.0}
    assert abs(float(first.mean()) - 1.0) < 0.1
    assert not torch.equal(first, second)


def ring_network(name: str) -> tuple[RobustNetwork, torch.Tensor, torch.Tensor]:
    """An untrained network, the features of 12 nodes in a ring, and its edges."""
    torch.manual_seed(0)
    following = torch.arange(12).roll(-1)
    edges = torch.stack([torch.arange(12), following])
    return NETWORKS[name](5, 3).eval(), torch.rand(12, 5), torch.cat([edges, edges.flip(0)], dim=1)


# The logits of the first node, computed before edges had weights; stored results depend on them.
EXPECTED: dict[str, list[float]] = {
    "guarded": [0.1446755, -0.0376444, -0.1578765],
    "soft-median": [0.1495062, -0.0338898, -0.1604577],
}


@pytest.mark.parametrize("name", NETWORKS)
def test_weights_of_one_change_no_bit(name: str) -> None:
    network, x, edges = ring_network(name)
    for mode in (True, False):
        outputs = []
        for weights in (None, torch.ones(24)):
            torch.manual_seed(1)
            outputs.append(network.train(mode)(x, edges, weights))
        assert torch.equal(*outputs)
    assert network(x, edges)[0].tolist() == pytest.approx(EXPECTED[name], abs=1e-6)


@pytest.mark.parametrize("name", NETWORKS)
def test_edges_of_weight_zero_count_for_nothing(name: str) -> None:
    network, x, edges = ring_network(name)
    absent = torch.tensor([[0, 5, 3, 0], [5, 0, 0, 3]])
    both, weights = torch.cat([edges, absent], dim=1), torch.cat([torch.ones(24), torch.zeros(4)])
    weights.requires_grad_()
    logits = network(x, both, weights)
    torch.testing.assert_close(logits, network(x, edges))
    (gradient,) = torch.autograd.grad(logits[0].sum(), weights)
    assert gradient.isfinite().all()
    assert (gradient[-4:].view(2, 2) != 0).any(dim=1).all()


@pytest.mark.parametrize("name", NETWORKS)
def test_gradients_of_weights_are_differences(name: str) -> None:
    """Of edges between zero and one, where no median moves."""
    network, x, edges = ring_network(name)
    network, x = network.double(), x.double()
    weights = torch.full((24,), 0.9, dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(network(x, edges, weights)[0, 1], weights)
    for edge in (0, 11, 12, 23):
        step = torch.zeros(24, dtype=torch.float64)
        step[edge] = 1e-6
        with torch.no_grad():
            ends = [network(x, edges, weights + sign * step)[0, 1] for sign in (1, -1)]
        assert float(ends[0] - ends[1]) / 2e-6 == pytest.approx(float(gradient[edge]), abs=1e-6)


@pytest.mark.parametrize("name", NETWORKS)
def test_logits_of_a_node_need_few_messages(name: str) -> None:
    network, x, edge_index = ring_network(name)
    edges = WeightedEdges.with_loops(edge_index, None, 12)
    arguments = network.compare(x, edges), network.first(x), edges
    complete, restricted = network.propagate(*arguments), {}
    for n_hops in (network.n_hops - 1, network.n_hops):
        near = torch.arange(-n_hops, n_hops + 1) % 12
        sent = torch.isin(edges.target, near), edges.target == 0
        restricted[n_hops] = network.propagate(*arguments, sent)[0]
    torch.testing.assert_close(restricted[network.n_hops], complete[0])
    assert not torch.allclose(restricted[network.n_hops - 1], complete[0])


class TestRobustNetworks(DefenceContract):
    classifiers = tuple(kind(n_epochs=60, learning_rate=0.05) for kind in (GNNGuard, SoftMedianGCN))
