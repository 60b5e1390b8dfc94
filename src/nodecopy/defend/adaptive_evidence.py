"""An adaptive attack on the evidence defence: greedy search with exact evaluation of the defence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator, SeedSequence
from numpy.typing import ArrayLike, NDArray

from nodecopy._core.csr import IntArray
from nodecopy._core.validation import check_integer, check_type
from nodecopy.attacks import Edits, TargetedAttack
from nodecopy.attacks.base import Nodes
from nodecopy.attacks.surrogate import SurrogateLabels
from nodecopy.classify import Trial
from nodecopy.defend.evidence import Array, add_evidence, weigh_edges, weigh_hypotheses
from nodecopy.defend.evidence_correction import EvidenceCorrection
from nodecopy.defend.evidence_defence import EvidenceDefence
from nodecopy.graph import Graph

TIE_WEIGHT = 1e-3
"""Weight of the loss as if the edges of every node counted, which orders flips where they do not."""


class EvidenceEdits(Edits):
    """Edits of a graph with the defence that is attacked."""

    def __init__(self, graph: Graph, codes: NDArray[np.int64], correction: EvidenceCorrection) -> None:
        super().__init__(graph)
        self.codes, self.correction = codes, correction


class TargetEvidence:
    """The evidence about one node, whatever neighbours it has.

    The likelihood of its edges is a product over them, so the effect of each flip is known once the factors
    of all possible neighbours are.

    Parameters
    ----------
    correction
        The defence, trained without the edges of the node.
    node
        The node.
    others
        The nodes that may be its neighbours.

    Attributes
    ----------
    factors
        ``[n_others, n_classes, n_hypotheses]``: the likelihood of an edge to each of them.
    """

    def __init__(self, correction: EvidenceCorrection, node: int, others: IntArray) -> None:
        nodes, no_edges = np.full(len(others), node), np.zeros(len(others), bool)
        log_odds = correction.credibility.log_odds(nodes, others, is_edge=no_edges)
        self.factors = weigh_edges(log_odds, correction.predictions[others], correction.compatibility)[1]
        self.log_prior = correction.without_edges(np.array([node]))
        self.weights = weigh_hypotheses(self.log_prior.shape[1], correction.attacked_share)
        self.counts = correction.is_uncertain(self.log_prior)

    def predict(self, log_likelihood: Array, changes: Array) -> tuple[Array, Array]:
        """Return log-probabilities after each of some changes, as corrected and as if edges always counted.

        Parameters
        ----------
        log_likelihood
            ``[n_classes, n_hypotheses]``: that of the edges.
        changes
            ``[n, n_classes, n_hypotheses]``: the factor by which each change multiplies the likelihood.
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

    The attacker trains the defence on the graph without the edges of the targets, as the defence with
    ``retrain`` does. In each step every flip of an edge of the target is evaluated exactly, and the one that
    raises the loss of the corrected prediction most is made. The default budget is the target's degree.

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
        ((_, correction),) = defence.train_corrections([trial], [targets])
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
