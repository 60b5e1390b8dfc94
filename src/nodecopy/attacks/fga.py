"""The fast gradient attack, as its paper defines it and as the authors of node copying ran it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.random import Generator, SeedSequence
from numpy.typing import ArrayLike
from torch import Tensor
from torch.nn import functional

from nodecopy._core.validation import check_choice
from nodecopy.attacks.base import Nodes
from nodecopy.attacks.edits import Edits
from nodecopy.attacks.gradients import GradientAttack, GradientEdits
from nodecopy.attacks.rewired_networks import RewiredNetwork
from nodecopy.graph import Graph

AUTHORS_NODE = 0
"""The node that the authors' code rewired, whatever the target was."""


@dataclass(kw_only=True, eq=False, repr=False)
class FGA(GradientAttack):
    """Fast gradient attack (Chen et al., 2018): flip the target's pairs along the gradient of its loss.

    The gradient is that of a GCN which the attacker trains once on the clean graph, or of a module of yours,
    with respect to the target's row of the adjacency. Unlike Nettack it may leave nodes without edges. The
    default budget is 20 flips; fewer are made where no flip is estimated to raise the loss.

    Parameters
    ----------
    flips_per_step
        Flips for each gradient. 1 is exact; more are faster.
    loss
        ``"target"``: the target's own loss, as in the attack's paper. ``"training-set"``: the run behind
        the FGA row of the node-copying paper, whose code always rewired node 0 along the gradient of the
        loss of the training set. It does not touch the targets (unless one is node 0 or becomes its
        neighbour), which explains why 69.8 % of them were still classified correctly. That run had a
        budget of ``"degree"``.
    surrogate
        The model that an attacker knows: a trained ``torch.nn.Module`` with ``forward(x, edge_index)`` or
        ``forward(x, edge_index, edge_weight)``, which is attacked itself; or the two weight matrices of a GCN
        (features by hidden, hidden by classes, on features scaled by ``scale``). By default the attacker
        trains a GCN. A module whose forward takes no ``edge_weight``, ignores it or counts edges of weight
        zero is evaluated for up to 128 candidates per flip, and that takes as many times longer.
    scale
        How the GCN scales features. ``"auto"`` (default): word counts by ``"rows"``, anything else is
        standardised, and the choice is logged; with given weight matrices it is ``"rows"``. Also
        ``"standardise"``, ``"binary"`` and ``"none"``.
    together
        Whether targets are attacked one after another in one graph, or each alone.
    device
        ``"cpu"`` or ``"cuda"``, where gradients are computed; a module stays on its own device.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.attacks import FGA
    >>> digits = datasets.load("digits").subgraph(range(200))
    >>> FGA().attack(digits, [7], budget=2, rng=0).spent.tolist()
    [2]
    """

    default_budget = 20

    loss: str = "target"

    def prepare(
        self, graph: Graph, targets: Nodes, train: ArrayLike | None, seed: SeedSequence
    ) -> Callable[[], GradientEdits]:
        check_choice(self.loss, "loss of FGA", ["target", "training-set"])
        return super().prepare(graph, targets, train, seed)

    def attack_target(self, edits: Edits, target: int, budget: int, rng: Generator) -> None:
        assert isinstance(edits, GradientEdits)
        node = target if self.loss == "target" else AUTHORS_NODE
        nodes = torch.tensor([target]) if self.loss == "target" else edits.train
        classes = edits.codes[nodes]

        def loss(network: RewiredNetwork, V: Tensor) -> Tensor:
            return functional.cross_entropy(network.logits(V)[nodes], classes)

        self.greedy_flips(edits, np.array([node]), loss, budget)
