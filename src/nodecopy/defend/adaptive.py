"""Attacks that know the defence: greedy flips, evaluated by the evidence defence or by a robust network."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.random import Generator, SeedSequence
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from nodecopy._core.arrays import IntArray
from nodecopy._core.checks import check_integer, check_type
from nodecopy.attacks import Edits, TargetedAttack
from nodecopy.attacks.base import Nodes
from nodecopy.attacks.gradients import Loss, RewiredModule, RewiredNetwork, choose_flips
from nodecopy.attacks.nettack import SurrogateLabels
from nodecopy.classify import Trial
from nodecopy.defend.evidence import (
    Array,
    EvidenceCorrection,
    EvidenceDefence,
    add_evidence,
    weigh_edges,
    weigh_hypotheses,
)
from nodecopy.defend.robust_networks import (
    ALL_MESSAGES,
    GNNGuard,
    RobustNetwork,
    RobustNetworkDefence,
    WeightedEdges,
)
from nodecopy.graph import Graph
from nodecopy.nn.modules import ModuleEnsemble, ModuleNetwork
from nodecopy.nn.training import check_device, choose_threads

TIE_WEIGHT = 1e-3
"""Weight of the loss as if the edges of every node counted, which orders flips where they do not."""


class EvidenceEdits(Edits):
    """Edits of a graph with the defence that is attacked."""

    def __init__(self, graph: Graph, codes: NDArray[np.int64], correction: EvidenceCorrection) -> None:
        super().__init__(graph)
        self.codes, self.correction = codes, correction


class TargetEvidence:
    """The evidence of a correction about one node, whatever neighbours it has among ``others``.

    The likelihood of its edges is a product over them: ``factors`` holds that of an edge to each of the
    others, ``[n_others, n_classes, n_hypotheses]``. Training did without the edges of the node.
    """

    def __init__(self, correction: EvidenceCorrection, node: int, others: IntArray) -> None:
        nodes, no_edges = np.full(len(others), node), np.zeros(len(others), bool)
        log_odds = correction.log_odds(nodes, others, no_edges)
        self.factors = weigh_edges(log_odds, correction.predictions[others], correction.class_edges)[1]
        self.log_prior = correction.without_edges(np.array([node]))
        self.weights = weigh_hypotheses(self.log_prior.shape[1])
        self.counts = correction.is_uncertain(self.log_prior)

    def predict(self, log_likelihood: Array, changes: Array) -> tuple[Array, Array]:
        """Return log-probabilities after each of some changes, as corrected and as if edges always counted.

        Each of ``changes``, ``[n, n_classes, n_hypotheses]``, multiplies the likelihood of the edges.
        """
        joint = self.weights + log_likelihood
        highest = joint.max()
        log_evidence = np.log(np.einsum("kh,nkh->nk", np.exp(joint - highest), changes)) + highest
        corrected = add_evidence(self.log_prior, log_evidence, self.counts)
        return corrected, add_evidence(self.log_prior, log_evidence, np.array([True]))

    def losses(self, code: int, log_likelihood: Array, changes: Array) -> Array:
        """Return the loss of the corrected prediction of a class after each of some changes."""
        corrected, always = self.predict(log_likelihood, changes)
        losses: Array = -corrected[:, code] - TIE_WEIGHT * always[:, code]
        return losses


@dataclass(eq=False, repr=False)
class AdaptiveEvidenceAttack(TargetedAttack):
    """Attack :class:`EvidenceDefence` by flips of the target's edges, evaluated by the defence itself.

    The attacker trains the defence without the edges of the targets (``retrain``). In each step every flip of
    an edge of the target is evaluated exactly, and the one that raises the loss of the corrected prediction
    most is made. The default budget is the target's degree.

    Parameters
    ----------
    defence
        The defence; by default ``EvidenceDefence(retrain=True)``.
    n_candidates
        Number of nodes, drawn at random for each target, that are tried as new neighbours; all nodes in
        smaller graphs.
    together
        As in :class:`.TargetedAttack`.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.classify import GCN
    >>> from nodecopy.defend import AdaptiveEvidenceAttack, EvidenceDefence
    >>> digits = datasets.load("digits").subgraph(range(200))
    >>> attack = AdaptiveEvidenceAttack(EvidenceDefence(GCN(), retrain=True))
    >>> attack.attack(digits, [7], budget=2, rng=0).spent.tolist()
    [2]
    """

    defence: EvidenceDefence | None = None
    n_candidates: int = 20_000
    together: bool = True

    def prepare(
        self, graph: Graph, targets: Nodes, train: ArrayLike | None, seed: SeedSequence
    ) -> Callable[[], EvidenceEdits]:
        name = type(self).__name__
        check_integer(self.n_candidates, f"n_candidates of {name}", low=1)
        defence = EvidenceDefence(retrain=True) if self.defence is None else self.defence
        check_type(defence, EvidenceDefence, f"defence of {name}", "an EvidenceDefence")
        labels = SurrogateLabels.from_graph(graph, targets, train, name)
        defence = type(defence)(**(defence.get_params(deep=False) | {"retrain": True}))
        trial = Trial(graph, labels.train, rng=seed)
        ((_, _, correction),) = defence.train_corrections([trial], [targets])
        assert isinstance(correction, EvidenceCorrection)
        return lambda: EvidenceEdits(graph, trial.codes, correction)

    def attack_target(self, edits: Edits, target: int, budget: int, rng: Generator) -> None:
        assert isinstance(edits, EvidenceEdits)
        code, neighbours = int(edits.codes[target]), edits.neighbours(target)
        others = np.delete(np.arange(edits.graph.n_nodes), target)
        if len(others) > self.n_candidates:
            others = np.union1d(rng.choice(others, self.n_candidates, replace=False), neighbours)
        evidence, is_neighbour = TargetEvidence(edits.correction, target, others), np.isin(others, neighbours)
        likelihood = np.log(evidence.factors[is_neighbour]).sum(axis=0)
        changes, is_flipped = evidence.factors, np.zeros(len(others), bool)
        changes[is_neighbour] = 1 / changes[is_neighbour]
        best = evidence.losses(code, likelihood, np.ones((1, *likelihood.shape)))[0]
        for _ in range(min(budget, len(others))):
            losses = np.where(is_flipped, -np.inf, evidence.losses(code, likelihood, changes))
            chosen = int(losses.argmax())
            if losses[chosen] <= best:
                return
            best, likelihood = losses[chosen], likelihood + np.log(changes[chosen])
            edits.flip(target, int(others[chosen]))
            is_flipped[chosen] = True


class NetworkEdits(Edits):
    """Edits of a graph with the trained network that is attacked, and the scaled features ``x``."""

    def __init__(self, graph: Graph, codes: NDArray[np.int64], network: ModuleNetwork, x: Tensor) -> None:
        super().__init__(graph)
        assert isinstance(network.module, RobustNetwork)
        self.codes, self.network, self.x = torch.from_numpy(codes).to(x.device), network, x
        self.module, self.smoothed = network.module, network.module.smoothed()
        with torch.no_grad():
            self.transformed = self.module.transform(x)


class RewiredRobustNetwork(RewiredModule):
    """A robust network on a graph of which one row is changed; only the logits of that node are computed.

    The similarities of all pairs that may be flipped are computed once. The ``n_candidates`` flips with the
    steepest gradients, of the network and of the smoothed one, are evaluated. ``smoothed`` is the same for
    the smoothed network, whose gains are gradients; None in that one.
    """

    def __init__(self, edits: NetworkEdits, row: int, n_candidates: int) -> None:
        super().__init__(edits.network, edits.x, edits, np.array([row]))
        self.module, self.transformed, self.n_candidates = edits.module, edits.transformed, n_candidates
        self.edges = WeightedEdges.with_loops(self.join_edges(self.free), None, len(self.x))
        with torch.no_grad():
            self.similarity = self.module.compare(self.x, self.edges)
        self.smoothed: RewiredRobustNetwork | None = None
        smoothed = copy.copy(self)
        smoothed.module = edits.smoothed
        self.smoothed = smoothed

    def logits(self, V: Tensor) -> Tensor:
        changed = (self.present + V)[self.free]
        weight = self.edges.weight.clone()
        weight[self.fixed.shape[1] :][: 2 * len(changed)] = torch.cat([changed, changed])
        edges, similarity, first = self.edges._replace(weight=weight), self.similarity, ALL_MESSAGES[0]
        if not V.requires_grad:
            n_hops = self.module.n_hops
            distance = self.count_hops(edges.select(weight > 0), n_hops + 1)[edges.target]
            needed = (weight > 0) & (distance <= n_hops + 1)  # the degrees of sources depend on their edges
            edges, similarity, first = edges.select(needed), similarity[needed], distance[needed] <= n_hops
        sent = first, edges.target == self.rows
        return self.module.propagate(similarity, self.transformed, edges, sent).double().log_softmax(dim=1)

    def count_hops(self, edges: WeightedEdges, n_hops: int) -> Tensor:
        """Return the distance of every node to the row, or ``n_hops + 1`` if it is larger."""
        distance = torch.full((edges.n_nodes,), n_hops + 1, device=self.rows.device)
        distance[self.rows] = 0
        for hop in range(1, n_hops + 1):
            reached = edges.source[distance[edges.target] < hop]
            distance[reached] = distance[reached].clamp_max(hop)
        return distance

    def gains(self, loss: Loss, V: Tensor, left: Tensor) -> Tensor:
        if self.smoothed is None:
            return RewiredNetwork.gains(self, loss, V, left)
        return super().gains(loss, V, left)

    def select_candidates(self, loss: Loss, V: Tensor, left: Tensor) -> Tensor:
        """Return the pairs with the steepest gradients, ``[n, 2]``."""
        is_candidate = torch.zeros_like(left)
        for network in (self, self.smoothed):
            assert network is not None
            gains = RewiredNetwork.gains(network, loss, V, left).flatten()
            is_candidate.view(-1)[gains.topk(min(self.n_candidates, len(gains))).indices] = True
        return (is_candidate & left).nonzero()

    def flip(self, flips: list[tuple[int, int]]) -> Tensor:
        """Return the change V of the row by some flips."""
        V = torch.zeros_like(self.present)
        for row, node in flips:
            V[row, node] = 1 - 2 * self.present[row, node]
        return V


@dataclass(eq=False, repr=False)
class AdaptiveNetworkAttack(TargetedAttack):
    """Attack :class:`GNNGuard` or :class:`SoftMedianGCN` by flips of the target's edges.

    The attacker trains the network on the clean graph and plans greedy flips twice: by the network, which
    evaluates some flips and takes the best, and along the gradients of a smoothed network with the same
    weights, since a single flip hardly moves a median. The plan that raises the loss of the network more is
    carried out. The default budget is the target's degree.

    Parameters
    ----------
    defence
        The defence; by default ``GNNGuard()``.
    n_candidates
        Number of flips that are evaluated in each step of the first plan: so many of the steepest gradients
        of the network, and as many of the smoothed one. The time grows with it.
    together
        As in :class:`.TargetedAttack`.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.defend import AdaptiveNetworkAttack, SoftMedianGCN
    >>> digits = datasets.load("digits").subgraph(range(200))
    >>> attack = AdaptiveNetworkAttack(SoftMedianGCN(n_epochs=50))
    >>> attack.attack(digits, [7], budget=2, rng=0).spent.tolist()
    [2]
    """

    defence: RobustNetworkDefence | None = None
    n_candidates: int = 16
    together: bool = True

    def prepare(
        self, graph: Graph, targets: Nodes, train: ArrayLike | None, seed: SeedSequence
    ) -> Callable[[], NetworkEdits]:
        name = type(self).__name__
        check_integer(self.n_candidates, f"n_candidates of {name}", low=1)
        defence = GNNGuard() if self.defence is None else self.defence
        check_type(defence, RobustNetworkDefence, f"defence of {name}", "a GNNGuard or SoftMedianGCN")
        labels = SurrogateLabels.from_graph(graph, targets, train, name)
        trial = Trial(graph, labels.train, rng=seed)
        (prediction,) = defence.train_classifiers([trial])
        ensemble = prediction.networks
        assert isinstance(ensemble, ModuleEnsemble)
        network = ensemble.build_modules(check_device(defence.device))[0].network
        network.module.eval()
        x = network.dense_tensor(ensemble.feature_scaling.apply(graph.features))
        return lambda: NetworkEdits(graph, trial.codes, network, x)

    def attack_target(self, edits: Edits, target: int, budget: int, rng: Generator) -> None:
        assert isinstance(edits, NetworkEdits)
        true_class = edits.codes[target]

        def loss(network: RewiredNetwork, V: Tensor) -> Tensor:
            return -network.logits(V)[target, true_class]

        with choose_threads(edits.transformed.numel(), edits.x.device):
            network = RewiredRobustNetwork(edits, target, self.n_candidates)
            assert network.smoothed is not None
            plans = [choose_flips(part, loss, budget) for part in (network, network.smoothed)]
            with torch.no_grad():
                best = max(plans, key=lambda flips: float(loss(network, network.flip(flips))))
        for _, node in best:
            edits.flip(target, node)
