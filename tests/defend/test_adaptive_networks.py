"""The adaptive attack on networks with robust aggregation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from nodecopy import Graph
from nodecopy._core.random import child, seed_sequence
from nodecopy.attacks.base import AttackSeeds
from nodecopy.classify import GCN
from nodecopy.defend import AdaptiveNetworkAttack, GNNGuard, SoftMedianGCN
from nodecopy.defend.adaptive import NetworkEdits, RewiredRobustNetwork
from nodecopy.errors import InputError
from tests.contracts.attacks import AttackContract
from tests.contracts.classifiers import planted_graph

QUICK: dict[str, Any] = {"n_epochs": 25, "learning_rate": 0.05}
DEFENCES: dict[str, Any] = {"guard": GNNGuard(**QUICK), "soft-median": SoftMedianGCN(**QUICK)}
TRAIN = np.arange(9)


class TestAttackOnGNNGuard(AttackContract):
    budget = 2
    connects_isolated = False  # edges to nodes with other features are removed, and others do no harm

    def build(self, *, together: bool = True) -> AdaptiveNetworkAttack:
        return AdaptiveNetworkAttack(DEFENCES["guard"], together=together)


class TestAttackOnSoftMedian(AttackContract):
    budget = 2

    def build(self, *, together: bool = True) -> AdaptiveNetworkAttack:
        return AdaptiveNetworkAttack(DEFENCES["soft-median"], together=together)


def start_edits(name: str, target: int, graph: Graph) -> NetworkEdits:
    seed = child(seed_sequence(0), AttackSeeds.SURROGATE)
    return AdaptiveNetworkAttack(DEFENCES[name]).prepare(graph, np.array([target]), TRAIN, seed)()


def flip(graph: Graph, target: int, nodes: Any) -> Graph:
    adjacency = graph.adjacency.toarray()
    for node in nodes:
        adjacency[target, node] = adjacency[node, target] = 1 - adjacency[target, node]
    return graph.replace(adjacency=adjacency)


@pytest.mark.parametrize("name", DEFENCES)
def test_flips_are_predicted_as_graphs_are(name: str) -> None:
    graph = planted_graph()
    edits = start_edits(name, 40, graph)
    rewired = RewiredRobustNetwork(edits, 40, 4)
    seed = child(seed_sequence(0), AttackSeeds.SURROGATE)
    fitted = DEFENCES[name].fit(graph, TRAIN, rng=seed)
    for part in ([], [1, 30], edits.neighbours(40).tolist()):
        V = rewired.flip([(0, node) for node in part])
        expected = fitted.correct_proba([40], graph=flip(graph, 40, part))[0]
        for changes in (V, V.clone().requires_grad_()):
            log_probabilities = rewired.logits(changes)[40].detach()
            np.testing.assert_allclose(log_probabilities.exp().numpy(), expected, atol=1e-5)


@pytest.mark.parametrize("name", DEFENCES)
def test_gains_are_those_of_graphs(name: str) -> None:
    graph = planted_graph()
    edits = start_edits(name, 40, graph)
    rewired = RewiredRobustNetwork(edits, 40, 59)

    def loss(network: Any, V: torch.Tensor) -> torch.Tensor:
        return -network.logits(V)[40, edits.codes[40]]  # type: ignore[no-any-return]

    gains = rewired.gains(loss, torch.zeros_like(rewired.present), rewired.free_pairs())[0]
    fitted = DEFENCES[name].fit(graph, TRAIN, rng=child(seed_sequence(0), AttackSeeds.SURROGATE))
    others = np.delete(np.arange(60), 40)
    after = [fitted.correct_proba([40], graph=flip(graph, 40, [node]))[0] for node in others.tolist()]
    losses = -np.log(np.array(after)[:, int(edits.codes[40])])
    before = -np.log(fitted.correct_proba([40])[0, int(edits.codes[40])])
    np.testing.assert_allclose(gains[others].numpy(), losses - before, atol=1e-4)


@pytest.mark.parametrize("name", DEFENCES)
def test_the_network_is_misled(name: str) -> None:
    """By an attacker who draws another seed, at targets that the network classifies correctly."""
    graph = planted_graph()
    fitted = DEFENCES[name].fit(graph, TRAIN, rng=3)
    names = np.asarray(graph.named_labels())
    targets = np.flatnonzero(fitted.predict() == names)[-8:]
    attack = AdaptiveNetworkAttack(DEFENCES[name])
    attacked = attack.attack(graph, targets, budget=8, train=TRAIN, rng=0).apply(graph)
    assert (fitted.correct(targets, graph=attacked) == names[targets]).mean() <= 0.25


def test_the_better_plan_is_carried_out() -> None:
    """The flips along the gradients of the smoothed network, or those that the network evaluates."""
    graph, target = planted_graph(), 40
    edits = start_edits("soft-median", target, graph)
    rewired = RewiredRobustNetwork(edits, target, 8)
    flips = AdaptiveNetworkAttack(DEFENCES["soft-median"]).attack(
        graph, [target], budget=4, train=TRAIN, rng=0
    )
    with torch.no_grad():
        chosen = rewired.flip([(0, int(node)) for node in flips.flips[:, 1]])
        after, before = (float(-rewired.logits(V)[target, edits.codes[target]]) for V in (chosen, 0 * chosen))
    assert after > before
    assert type(edits.smoothed) is not type(edits.module)
    assert torch.equal(edits.smoothed.first.weight, edits.module.first.weight)


def test_errors_name_wrong_parameters() -> None:
    graph = planted_graph()
    with pytest.raises(InputError, match="defence of AdaptiveNetworkAttack must be a GNNGuard or Soft"):
        AdaptiveNetworkAttack(GCN()).attack(graph, [1])  # type: ignore[arg-type]
    with pytest.raises(InputError, match="n_candidates of AdaptiveNetworkAttack must be"):
        AdaptiveNetworkAttack(n_candidates=0).attack(graph, [1])
