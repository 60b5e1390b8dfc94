"""The fast gradient attack, as its paper defines it and as the authors of node copying ran it."""

from __future__ import annotations

from typing import cast

import numpy as np
import torch
from numpy.random import Generator
from numpy.typing import ArrayLike
from torch import Tensor
from torch.nn import functional

from nodecopy._core.validation import check_choice
from nodecopy.attacks.base import Nodes, degree_budget
from nodecopy.attacks.edits import Edits
from nodecopy.attacks.gradients import GradientAttack, GradientEdits, RewiredGCN
from nodecopy.graph import Graph

AUTHORS_NODE = 0
"""The node that the authors' run rewired, whoever the victim was."""


class FGA(GradientAttack):
    """Fast gradient attack (Chen et al., 2018): flip the victim's pairs along the gradient of its loss.

    The gradient is that of a GCN which the attacker trains once on the clean graph, with respect to the
    victim's row of the adjacency. Unlike Nettack it may leave nodes without edges.

    Parameters
    ----------
    n_flips
        For each victim; ``"degree"``: as many as it has edges in the clean graph. Fewer are made where no
        flip promises a higher loss.
    flips_per_step
        Flips for each gradient; one is exact, more are faster.
    loss
        ``"target"``: the victim's own loss, as the attack's paper defines it. ``"training-set"``: the
        run behind the FGA row of the node-copying paper, whose code always rewired node 0 along the
        gradient of the loss of the training set. Victims are not touched (unless they are node 0, or
        become its neighbours), which explains why 69.8 % of them were still classified well. That run
        took the degree for the number of flips: ``FGA("degree", loss="training-set")``.
    surrogate
        The two weight matrices of a GCN (features by hidden, hidden by classes, on features whose rows
        add up to one) in place of trained ones: an attacker who knows the model itself.
    together
        Victims one after another in one graph, or each alone.
    device
        Where gradients are computed.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.attacks import FGA
    >>> digits = datasets.load("digits").subgraph(range(200))
    >>> FGA(2).attack(digits, [7], rng=0).spent.tolist()
    [2]
    """

    def __init__(
        self,
        n_flips: int | str = 20,
        *,
        flips_per_step: int = 1,
        loss: str = "target",
        surrogate: tuple[ArrayLike, ArrayLike] | None = None,
        together: bool = True,
        device: str = "cpu",
    ) -> None:
        self.n_flips, self.flips_per_step, self.loss = n_flips, flips_per_step, loss
        self.surrogate, self.together, self.device = surrogate, together, device

    def _victims(self, graph: Graph, targets: ArrayLike | None) -> Nodes:
        check_choice(self.loss, "loss of FGA", ["target", "training-set"])
        return super()._victims(graph, targets)

    def _budget(self, edits: Edits, target: int) -> int:
        return degree_budget(self.n_flips, edits, target, "n_flips of FGA")

    def _strike(self, edits: Edits, number: int, target: int, budget: int, draws: Generator) -> None:
        state = cast(GradientEdits, edits)
        node = target if self.loss == "target" else AUTHORS_NODE
        judged = torch.tensor([target]) if self.loss == "target" else state.train

        def loss(network: RewiredGCN, V: Tensor) -> Tensor:
            return functional.cross_entropy(network.logits(V)[judged], state.codes[judged])

        self._climb(state, np.array([node]), loss, budget)
