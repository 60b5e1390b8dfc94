"""Attacks that know the defence: the evidence defence, and networks with robust aggregation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from nodecopy import Graph
from nodecopy._core.random import child, seed_sequence
from nodecopy.attacks.base import AttackSeeds
from nodecopy.classify import GCN
from nodecopy.defend import (
    AdaptiveEvidenceAttack,
    AdaptiveNetworkAttack,
    EvidenceDefence,
    GNNGuard,
    SoftMedianGCN,
)
from nodecopy.defend import evidence as evidence_module
from nodecopy.defend.evidence import TargetEvidence
from nodecopy.defend.robust_networks import NetworkEdits, RewiredRobustNetwork
from nodecopy.errors import InputError
from tests.contracts.attacks import AttackContract
from tests.contracts.classifiers import planted_graph
from tests.contracts.defences import QUICK, TRAIN

EVIDENCE: dict[str, Any] = {"classifier": GCN(**QUICK), "retrain": True}
DEFENCE = EvidenceDefence(uncertain_share=1.0, **EVIDENCE)
NETWORKS: dict[str, Any] = {"guard": GNNGuard(**QUICK), "soft-median": SoftMedianGCN(**QUICK)}
SEED = child(seed_sequence(0), AttackSeeds.SURROGATE)


class TestAttackOnEvidence(AttackContract):
    budget = 2
    attack = AdaptiveEvidenceAttack(DEFENCE)

    def test_attacks_alone_do_not_depend_on_other_targets(self, graph: Graph) -> None:
        """They do: the defence is trained without the edges of all targets."""
        alone, together = self.run(graph, together=False), self.run(graph)
        first = alone.targets[0]
        assert np.array_equal(alone.of(first).flips, together.of(first).flips)


class TestAttackOnGNNGuard(AttackContract):
    budget = 2
    connects_isolated = False  # edges to nodes with other features are removed, and others do no harm
    attack = AdaptiveNetworkAttack(NETWORKS["guard"])


class TestAttackOnSoftMedian(AttackContract):
    budget = 2
    attack = AdaptiveNetworkAttack(NETWORKS["soft-median"])


def flip(graph: Graph, target: int, nodes: Any) -> Graph:
    adjacency = graph.adjacency.toarray()
    for node in nodes:
        adjacency[target, node] = adjacency[node, target] = 1 - adjacency[target, node]
    return graph.replace(adjacency=adjacency)


def likelihood_of(evidence: TargetEvidence, neighbours: Any) -> tuple[Any, Any]:
    """The log-likelihood of a neighbourhood, and a change that changes nothing."""
    log_likelihood = np.log(evidence.factors[neighbours]).sum(axis=0)
    return log_likelihood, np.ones((1, *log_likelihood.shape))


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_neighbourhoods_are_predicted_as_graphs_are(share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the same prior: the attacker's is the one before the attack."""
    monkeypatch.setattr(evidence_module, "estimate_prior", lambda _: np.append(0.5, np.full(8, 1 / 16)))
    graph = planted_graph()
    fitted = EvidenceDefence(uncertain_share=share, **EVIDENCE).fit(graph, TRAIN, targets=[40], rng=0)
    correction: Any = fitted.correction_
    evidence = TargetEvidence(correction, 40, np.arange(60))
    own = graph.rows.indices[graph.rows.indptr[40] : graph.rows.indptr[41]]
    for part in ([1, 30], [50], []):
        corrected, always = evidence.predict(*likelihood_of(evidence, part))
        flipped = flip(graph, 40, np.setxor1d(own, part).astype(int))
        judged: Any = fitted.prepare_graph(flipped)[2]
        expected = sum(judged.judge(np.array([40])))[0] if share else np.exp(evidence.without_edges[0])
        np.testing.assert_allclose(np.exp(corrected[0]), expected, atol=1e-5)
        np.testing.assert_allclose(np.exp(always).sum(axis=1), 1)


def test_every_flip_is_the_best_one() -> None:
    """Each of three flips against an evaluation of the defence for every flip."""
    graph = planted_graph()
    attack = AdaptiveEvidenceAttack(DEFENCE)
    flips = attack.attack(graph, [40], budget=3, train=TRAIN, rng=0).flips
    edits = attack.prepare(graph, np.array([40]), TRAIN, SEED)()
    evidence, code = TargetEvidence(edits.correction, 40, np.arange(60)), int(edits.codes[40])
    others, neighbours = np.delete(np.arange(60), 40).tolist(), edits.neighbours(40)
    for _, flipped in flips.tolist():
        losses = {}
        for node in others:
            rows = np.setxor1d(neighbours, [node])
            losses[node] = evidence.losses(code, *likelihood_of(evidence, rows))[0]
        assert losses[flipped] == pytest.approx(max(losses.values()), abs=1e-9)
        neighbours = np.setxor1d(neighbours, [flipped])
        others.remove(flipped)
    assert len(flips) == 3
    few = AdaptiveEvidenceAttack(DEFENCE, n_candidates=5).attack(graph, [40], budget=4, train=TRAIN, rng=0)
    assert 1 <= len(few.flips) <= 4


def test_more_flips_raise_the_loss() -> None:
    graph, targets = planted_graph(), [40, 41, 42]
    attacked = AdaptiveEvidenceAttack(DEFENCE).attack(graph, targets, budget=6, train=TRAIN, rng=0)
    fitted = EvidenceDefence(uncertain_share=1.0, **EVIDENCE).fit(graph, TRAIN, targets=targets, rng=3)
    own = targets, np.asarray(graph.label_codes)[targets]
    before, after = fitted.predict_proba()[own], fitted.predict_proba(attacked.apply(graph))[own]
    assert after.mean() < before.mean() - 0.1


def start_edits(name: str, target: int, graph: Graph) -> NetworkEdits:
    return AdaptiveNetworkAttack(NETWORKS[name]).prepare(graph, np.array([target]), TRAIN, SEED)()


@pytest.mark.parametrize("name", NETWORKS)
def test_flips_are_predicted_as_graphs_are(name: str) -> None:
    graph = planted_graph()
    edits = start_edits(name, 40, graph)
    rewired = RewiredRobustNetwork(edits, 40, 4)
    fitted = NETWORKS[name].fit(graph, TRAIN, rng=SEED)
    for part in ([], [1, 30], edits.neighbours(40).tolist()):
        V = rewired.flip([(0, node) for node in part])
        expected = fitted.predict_proba(flip(graph, 40, part))[40]
        for changes in (V, V.clone().requires_grad_()):
            log_probabilities = rewired.logits(changes)[40].detach()
            np.testing.assert_allclose(log_probabilities.exp().numpy(), expected, atol=1e-5)


@pytest.mark.parametrize("name", NETWORKS)
def test_gains_are_those_of_graphs(name: str) -> None:
    graph = planted_graph()
    edits = start_edits(name, 40, graph)
    rewired, code = RewiredRobustNetwork(edits, 40, 59), int(edits.codes[40])

    def loss(network: Any, V: torch.Tensor) -> torch.Tensor:
        return -network.logits(V)[40, code]  # type: ignore[no-any-return]

    gains = rewired.gains(loss, torch.zeros_like(rewired.present), rewired.free_pairs())[0]
    fitted = NETWORKS[name].fit(graph, TRAIN, rng=SEED)
    others = np.delete(np.arange(60), 40)
    after = [fitted.predict_proba(flip(graph, 40, [node]))[40, code] for node in others.tolist()]
    expected = -np.log(after) + np.log(fitted.predict_proba()[40, code])
    np.testing.assert_allclose(gains[others].numpy(), expected, atol=1e-4)


@pytest.mark.parametrize("name", NETWORKS)
def test_the_network_is_misled(name: str) -> None:
    """By an attacker who draws another seed, at targets that the network classifies correctly."""
    graph = planted_graph()
    fitted = NETWORKS[name].fit(graph, TRAIN, rng=3)
    names = np.asarray(graph.labels)
    targets = np.flatnonzero(fitted.predict() == names)[-8:]
    flips = AdaptiveNetworkAttack(NETWORKS[name]).attack(graph, targets, budget=8, train=TRAIN, rng=0)
    assert (fitted.predict(flips.apply(graph)) == names)[targets].mean() <= 0.25


def test_the_better_plan_is_carried_out() -> None:
    """The flips along the gradients of the smoothed network, or those that the network evaluates."""
    graph, target = planted_graph(), 40
    edits = start_edits("soft-median", target, graph)
    rewired = RewiredRobustNetwork(edits, target, 8)
    attack = AdaptiveNetworkAttack(NETWORKS["soft-median"])
    flips = attack.attack(graph, [target], budget=4, train=TRAIN, rng=0)
    with torch.no_grad():
        chosen = rewired.flip([(0, int(node)) for node in flips.flips[:, 1]])
        after, before = (float(-rewired.logits(V)[target, edits.codes[target]]) for V in (chosen, 0 * chosen))
    assert after > before
    assert type(edits.smoothed) is not type(edits.module)
    assert torch.equal(edits.smoothed.first.weight, edits.module.first.weight)


@pytest.mark.parametrize("attack", [AdaptiveEvidenceAttack, AdaptiveNetworkAttack])
def test_wrong_parameters(attack: Any) -> None:
    with pytest.raises(InputError, match=f"defence of {attack.__name__} must be a"):
        attack(GCN()).attack(planted_graph(), [1])
    with pytest.raises(InputError, match=f"n_candidates of {attack.__name__} must be"):
        attack(n_candidates=0).attack(planted_graph(), [1])
