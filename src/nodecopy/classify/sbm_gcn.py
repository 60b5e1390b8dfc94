"""SBM-GCN (Ma et al., 2019): labels, and edges between them, generated; a GCN as the posterior of labels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import Tensor
from torch.nn.functional import log_softmax, one_hot

from nodecopy._core.validation import check_choice, check_real
from nodecopy.classify.base import Prediction, Problems, Trial, seeds_of
from nodecopy.classify.single_network import _Network, recipe_for
from nodecopy.errors import InputError
from nodecopy.nn.networks import Networks
from nodecopy.nn.stack import SparseStack
from nodecopy.nn.training import Targets, stacked

POSTERIOR, PRIOR = 0, 1
"""Which of a trial's seeds serve what."""


class SBMGCN(_Network):
    """Classify nodes by the posterior of a generative model of labels and edges (G3NN with SBM and GCN).

    A perceptron p(Y | X) draws labels from features, a stochastic block model p(G | Y) draws edges between
    them, and a GCN q(Y | X, G) approximates the labels' posterior. Both networks descend

        - E_q[log p(G | Y)] - E_q[log p(Y | X)] - H(q) + weight * (cross-entropy of q on known labels)

    where known labels are certain under q. Predictions are those of q.

    Parameters
    ----------
    within, across
        Probability of an edge between nodes of one class and of two; fixed, as the authors have them.
    weight
        Of the last term (the paper's lambda).
    objective
        ``"paper"``: as above. ``"authors"``: their code, in which labels that generate edges come from the
        perceptron instead of q, the entropy has the opposite sign, and expectations of labels and edges
        are divided by the number of classes. With it, 200 epochs and ``patience=None``, accuracies with few
        labels are as low as those that the node copying paper prints.
    preset, device, settings
        As in :class:`~nodecopy.classify.GCN`; ``"g3nn"`` are the authors' settings, which stop by the
        validation loss.

    Notes
    -----
    Every expectation is a mean over nodes, edges or pairs and not a sum, as in the authors' code. They
    sample as many pairs of nodes as there are edges to stand for missing edges; the mean over all pairs
    of q_i . q_j is the squared length of the mean of q, so nothing is sampled here.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> club = datasets.load("karate").replace(features=np.eye(34))
    >>> fitted = SBMGCN(epochs=50).fit(club, [0, 1, 32, 33], validation=[2, 3, 30, 31], rng=0)
    >>> int((fitted.predict() == club.named_labels()).sum()) > 28
    True
    """

    network = "sbm-gcn"

    def __init__(
        self,
        within: float = 0.9,
        across: float = 0.1,
        *,
        weight: float = 1.0,
        objective: str = "paper",
        preset: str = "g3nn",
        device: str = "cpu",
        **settings: Any,
    ) -> None:
        super().__init__(preset=preset, device=device, **settings)
        self.within, self.across, self.weight, self.objective = within, across, weight, objective

    def _arguments(self) -> dict[str, Any]:
        names = ("within", "across", "weight", "objective")
        return {**{name: getattr(self, name) for name in names}, **super()._arguments()}

    def _solved(self, trials: Sequence[Trial], *, keep: bool) -> list[Prediction]:
        for name in ("within", "across"):
            chance = check_real(getattr(self, name), f"{name} of SBMGCN", low=0.0, high=1.0)
            if chance in (0.0, 1.0):
                raise InputError(f"{name} of SBMGCN must lie strictly between 0 and 1; got {chance:g}.")
        check_real(self.weight, "weight of SBMGCN", low=0.0)
        check_choice(self.objective, "objective of SBMGCN", ["paper", "authors"])
        recipe = recipe_for(self.network, self.preset, self.settings)
        problems = Problems(trials, recipe, self.device, keep=keep)
        networks = problems.trained(
            problems.observed,
            seeds_of(trials, POSTERIOR),
            goal=lambda posterior, targets: _Generative(self, problems, posterior, targets),
        )
        return problems.predictions(networks, 0)


class _Generative:
    """The objective of B posteriors, each with a prior beside it."""

    def __init__(self, classifier: SBMGCN, problems: Problems, posterior: Networks, targets: Targets) -> None:
        self.classifier, self.posterior, self.targets = classifier, posterior, targets
        device, n_classes, trials = problems.device, len(problems.classes), problems.trials
        self.prior = Networks(
            replace(problems.recipe, spread="none", drop_input=True),
            posterior.features,
            n_classes,
            seeds_of(trials, PRIOR),
        )
        self.graphs = stacked(posterior, problems.observed_matrices)
        made = {id(adjacency): _pattern(adjacency) for adjacency in problems.observed}
        self.edges = SparseStack([made[id(adjacency)] for adjacency in problems.observed], device)
        self.n_edges = torch.tensor([max(1, a.nnz) for a in problems.observed], device=device)
        self.rows = torch.from_numpy(targets.rows).to(device)[:, :, None].expand(-1, -1, n_classes)
        self.labels = torch.zeros(len(trials), trials[0].graph.n_nodes, n_classes, device=device)
        for known, trial in zip(self.labels, trials, strict=True):
            codes = torch.from_numpy(problems.codes(trial.train)).to(device)
            known[torch.from_numpy(trial.train).to(device)] = one_hot(codes, n_classes).float()
        self.unknown = 1.0 - self.labels.sum(dim=2)

    @property
    def groups(self) -> list[dict[str, Any]]:
        return self.prior.groups

    def losses(self, step: int) -> Tensor:
        likely, before = self.posterior.logits(self.graphs, None, step), self.prior.logits(None, None, step)
        log_q, log_p = log_softmax(likely, dim=2), log_softmax(before, dim=2)
        q = log_q.exp()
        crossed = self._mean_unknown(-(q * log_p).sum(dim=2))
        entropy = self._mean_unknown(-(q * log_q).sum(dim=2))
        discriminative = self.targets.losses(likely.gather(1, self.rows))
        known = self.targets.losses(before.gather(1, self.rows)) + self.classifier.weight * discriminative
        if self.classifier.objective == "paper":
            return self._edge_loss(q) + crossed - entropy + known
        return (self._edge_loss(log_p.exp()) + crossed + entropy) / q.shape[2] + known

    def _edge_loss(self, q: Tensor) -> Tensor:
        """- E[log p(G | Y)] up to a constant: means over edges and over all pairs of nodes."""
        within, across = self.classifier.within, self.classifier.across
        clamped = self.labels + self.unknown[:, :, None] * q
        alike_joined = ((self.edges @ clamped) * clamped).sum(dim=(1, 2)) / self.n_edges
        alike = clamped.mean(dim=1).square().sum(dim=1)
        return -alike_joined * math.log(within / across) - alike * math.log((1 - within) / (1 - across))

    def _mean_unknown(self, values: Tensor) -> Tensor:
        return (values * self.unknown).sum(dim=1) / self.unknown.sum(dim=1).clamp(min=1)


def _pattern(adjacency: sparse.csr_array) -> sparse.csr_array:
    """Edges without their weights."""
    ones = np.ones(adjacency.nnz, np.float32)
    return sparse.csr_array((ones, adjacency.indices, adjacency.indptr), shape=adjacency.shape)
