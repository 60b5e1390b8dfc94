"""FGA against autograd on a dense adjacency."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from nodecopy import Graph
from nodecopy.attacks import FGA, TargetedAttack
from nodecopy.errors import InputError
from tests.attacks.oracles import dense_gcn
from tests.attacks.test_gradients import WEIGHTS, dense_with, features_of, use_doubles
from tests.contracts.attacks import TARGETS, TRAIN, AttackContract, with_isolated
from tests.contracts.classifiers import planted_graph

__all__ = ["use_doubles"]
DRAWS = np.random.default_rng(1)
SURROGATE = DRAWS.normal(size=(12, 4)), DRAWS.normal(size=(4, 3))
"""Weights of a GCN for the contract: training one in each test would take long."""


class TestFGA(AttackContract):
    budget = 3

    def build(self, *, together: bool = True) -> TargetedAttack:
        return FGA(surrogate=SURROGATE, together=together)


class TestFGAAsRunByTheAuthors(AttackContract):
    budget = 3
    connects_isolated = False

    def build(self, *, together: bool = True) -> TargetedAttack:
        return FGA(loss="training-set", surrogate=SURROGATE, together=together)

    def test_every_flip_is_at_node_zero(self, graph: Graph) -> None:
        assert (self.run(graph).flips == 0).any(axis=1).all()

    def test_isolated_target(self, graph: Graph) -> None:
        """The attack does not look at the target, which stays isolated."""
        isolated = with_isolated(graph, 4)
        assert self.run(isolated, [4]).apply(isolated).degrees[4] == 0


def planted() -> Graph:
    draws = np.random.default_rng(6)
    upper = np.triu(draws.random((30, 30)) < 0.15, 1)
    return Graph(upper | upper.T, draws.integers(0, 2, (30, 5)).astype(float), np.arange(30) % 3)


def dense_loss(graph: Graph, target: int) -> float:
    first, second = map(torch.from_numpy, WEIGHTS)
    logits = dense_gcn(
        torch.from_numpy(graph.adjacency.toarray()).double(), features_of(graph), first, second
    )
    return float(-logits[target].log_softmax(0)[target % 3])


def test_fga_makes_the_steepest_flip_each_time() -> None:
    """Both kinds: an edge is removed where that helps, and only added where there is none."""
    graph, kinds = planted(), set()
    first, second = map(torch.from_numpy, WEIGHTS)
    for target in range(6, 12):
        flips = FGA(surrogate=WEIGHTS).attack(graph, [target], budget=4)
        A, done = torch.from_numpy(graph.adjacency.toarray()).double(), [target]
        for flip, added in zip(flips.flips.tolist(), flips.is_added, strict=True):
            V = torch.zeros(1, 30, requires_grad=True)
            logits = dense_gcn(dense_with(A, [target], V), features_of(graph), first, second)
            (gradient,) = torch.autograd.grad(-logits[target].log_softmax(0)[target % 3], V)
            gain = gradient[0] * (1 - 2 * A[target])
            gain[done] = -torch.inf
            other = int(gain.argmax())
            assert flip == [target, other]
            assert gain[other] > 0
            assert added == (A[target, other] == 0)
            kinds.add(bool(added))
            A[target, other] = A[other, target] = 1 - A[target, other]
            done.append(other)
        assert flips.spent.tolist() == [4]
        assert dense_loss(flips.apply(graph), target) > dense_loss(graph, target)
    assert kinds == {True, False}


def test_more_flips_per_step_are_fewer_gradients() -> None:
    graph = planted()
    one_each, four_each = (
        FGA(flips_per_step=n, surrogate=WEIGHTS).attack(graph, [7], budget=4) for n in (1, 4)
    )
    assert one_each.flips[0].tolist() == four_each.flips[0].tolist()
    assert four_each.spent.tolist() == [4]


def test_later_targets_are_attacked_in_the_graph_that_earlier_attacks_left() -> None:
    """The second target's gradient is that of the graph which the first attack left."""
    graph = planted()
    both = FGA(surrogate=WEIGHTS).attack(graph, [7, 9], budget=3)
    after_first = both.of(7).apply(graph)
    assert np.array_equal(both.of(9).flips, FGA(surrogate=WEIGHTS).attack(after_first, [9], budget=3).flips)


@pytest.mark.parametrize(
    ("attack", "message"),
    [
        (FGA(flips_per_step=0), "flips_per_step of FGA"),
        (FGA(loss="victim"), "loss of FGA must be one of 'target', 'training-set'; got 'victim'"),
        (FGA(device="tpu"), "device must be"),
        (FGA(surrogate=(np.zeros((12, 4)), np.zeros((5, 3)))), "surrogate of FGA must be two matrices"),
        (FGA(surrogate=(3, 4)), "surrogate of FGA must be two matrices"),
    ],
)
def test_error_names_a_wrong_parameter(attack: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        attack.attack(planted_graph(), TARGETS, train=TRAIN, rng=0)
