"""An adaptive attack: the attacker knows the copying defence and rewires its donors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
import torch
from numpy.random import Generator, SeedSequence
from numpy.typing import ArrayLike
from torch import Tensor

from nodecopy._core.csr import IntArray
from nodecopy._core.validation import as_array, check_indices, check_integer
from nodecopy.attacks.base import Nodes
from nodecopy.attacks.edits import Edits
from nodecopy.attacks.gradients import GradientAttack, GradientEdits
from nodecopy.attacks.rewired_networks import RewiredNetwork
from nodecopy.errors import InputError
from nodecopy.features.neighbours import NeighbourSearch
from nodecopy.features.node_embeddings import NodeEmbeddings
from nodecopy.graph import Graph


@dataclass(eq=False, repr=False)
class AdaptiveCopyingAttack(GradientAttack):
    """Attack the copying defence by flipping edges at the donors that it would choose.

    The defence predicts a target's class by the mean over its donors of the GCN's softmax at the donor,
    with the target's features in place of the donor's. The attack flips edges at the donors, greedily
    along the exact gradient of the loss of that mean: features are swapped and degrees change as in the
    defence. Donors are chosen on the clean graph and taken as fixed, so the attack is exact for defences
    whose donors do not depend on edges (``"features"``), and an attacker's guess for others. The default
    budget is the target's degree.

    Parameters
    ----------
    donors
        How the donors are chosen: ``"features"``, ``"neighbourhoods"`` or ``"expected"``, as in the
        defence; a function that returns an embedding of a graph, one row per node; or an array
        ``[n_targets, P]`` of positions, whose row i holds the donors of the i-th target.
    n_donors
        Number of donors of each target; not used where ``donors`` is an array.
    at_target
        Whether the target's own edges may be flipped too.
    flips_per_step, surrogate, scale, together, device
        As in :class:`.FGA`.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.attacks import AdaptiveCopyingAttack
    >>> digits = datasets.load("digits").subgraph(range(200))
    >>> AdaptiveCopyingAttack(n_donors=3).attack(digits, [7], budget=2, rng=0).spent.tolist()
    [2]
    """

    donors: Any = "features"
    _: KW_ONLY
    n_donors: int = 10
    at_target: bool = False

    def prepare(
        self, graph: Graph, targets: Nodes, train: ArrayLike | None, seed: SeedSequence
    ) -> Callable[[], GradientEdits]:
        donors = dict(zip(targets.tolist(), self._find_donors(graph, targets), strict=True))
        start = super().prepare(graph, targets, train, seed)

        def start_with_donors() -> GradientEdits:
            edits = start()
            edits.donors = donors
            return edits

        return start_with_donors

    def attack_target(self, edits: Edits, target: int, budget: int, rng: Generator) -> None:
        assert isinstance(edits, GradientEdits)
        donors = edits.donors[target]
        rows = np.unique(np.append(donors, target) if self.at_target else donors)
        true_class = edits.codes[target]

        def loss(network: RewiredNetwork, V: Tensor) -> Tensor:
            copied = network.copied_logits(V, torch.from_numpy(donors).to(V.device), target)
            return -copied.softmax(dim=1).mean(dim=0)[true_class].log()

        self.greedy_flips(edits, rows, loss, budget)

    def _find_donors(self, graph: Graph, targets: Nodes) -> IntArray:
        """Return the donors of each target, ``[n_targets, P]``."""
        owner = type(self).__name__
        if not isinstance(self.donors, str) and not callable(self.donors):
            donors = as_array(self.donors, f"donors of {owner}")
            if donors.ndim != 2 or len(donors) != len(targets) or not donors.shape[1]:
                raise InputError(
                    f"donors of {owner} must have {len(targets)} rows, one per target, and at least one "
                    f"column; got shape {donors.shape}."
                )
            positions = check_indices(donors.ravel(), f"donors of {owner}", size=graph.n_nodes)
            return positions.reshape(donors.shape)
        check_integer(self.n_donors, f"n_donors of {owner}", low=1, high=graph.n_nodes - 1)
        if callable(self.donors):
            search = NeighbourSearch(self.donors(graph), owner=owner)
        else:
            search = NodeEmbeddings(graph).search(self.donors, parameter="donors", owner=owner)
        _, nearest = search.nearest(self.n_donors, of=targets, include_self=False)
        return nearest.reshape(len(targets), self.n_donors).astype(np.int64)
