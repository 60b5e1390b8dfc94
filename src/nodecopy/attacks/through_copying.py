"""An attack that knows the copying defence and goes through it."""

from __future__ import annotations

from typing import cast

import numpy as np
import torch
from numpy.random import Generator
from numpy.typing import ArrayLike
from torch import Tensor

from nodecopy._core.validation import as_array, check_indices
from nodecopy.attacks.base import Nodes, degree_budget
from nodecopy.attacks.edits import Edits
from nodecopy.attacks.gradients import GradientAttack, GradientEdits, RewiredGCN
from nodecopy.errors import InputError
from nodecopy.graph import Graph


class ThroughCopying(GradientAttack):
    """An attacker who knows the copying defence and the donors it uses, and rewires the donors.

    The defence predicts a victim's class by the mean over its donors of the GCN's softmax at the donor,
    with the victim's features in the donor's place. The attacker flips edges at the donors, greedily
    along the gradient of the loss of that mean, which is exact: features are swapped and degrees change
    as in the defence. Donors are taken as given, so the attack fits defences whose donors do not depend
    on edges (feature donors), and is an attacker's guess for others.

    Parameters
    ----------
    donors
        ``[n_targets, P]`` node numbers: row i holds the donors of the i-th target.
    budget
        Flips for each victim; by default its degree in the clean graph.
    at_victim
        Whether the victim's own edges may be flipped too.
    flips_per_step
        Flips for each gradient; one is exact, more are faster.
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
    >>> from nodecopy.attacks import ThroughCopying
    >>> digits = datasets.load("digits").subgraph(range(200))
    >>> ThroughCopying([[10, 20]], 2).attack(digits, [7], rng=0).spent.tolist()
    [2]
    """

    def __init__(
        self,
        donors: ArrayLike,
        budget: int | str = "degree",
        *,
        at_victim: bool = False,
        flips_per_step: int = 1,
        surrogate: tuple[ArrayLike, ArrayLike] | None = None,
        together: bool = True,
        device: str = "cpu",
    ) -> None:
        self.donors, self.budget, self.at_victim = donors, budget, at_victim
        self.flips_per_step, self.surrogate = flips_per_step, surrogate
        self.together, self.device = together, device

    def _victims(self, graph: Graph, targets: ArrayLike | None) -> Nodes:
        victims = super()._victims(graph, targets)
        donors = as_array(self.donors, "donors of ThroughCopying")
        if donors.ndim != 2 or len(donors) != len(victims) or not donors.shape[1]:
            raise InputError(
                f"donors of ThroughCopying must have {len(victims)} rows, one per target, and at least one "
                f"column; got shape {donors.shape}."
            )
        check_indices(donors.ravel(), "donors of ThroughCopying", size=graph.n_nodes)
        return victims

    def _budget(self, edits: Edits, target: int) -> int:
        return degree_budget(self.budget, edits, target, "budget of ThroughCopying")

    def _strike(self, edits: Edits, number: int, target: int, budget: int, draws: Generator) -> None:
        state = cast(GradientEdits, edits)
        donors = np.asarray(self.donors, np.int64)[number]
        rows = np.unique(np.append(donors, target) if self.at_victim else donors)
        true = state.codes[target]

        def loss(network: RewiredGCN, V: Tensor) -> Tensor:
            copied = network.copied_logits(V, torch.from_numpy(donors).to(V.device), target)
            return -copied.softmax(dim=1).mean(dim=0)[true].log()

        self._climb(state, rows, loss, budget)
