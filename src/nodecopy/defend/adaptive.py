"""The attacker who knows the copying defence."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from numpy.typing import ArrayLike

from nodecopy._core.random import Rng, child, seed_sequence
from nodecopy._core.validation import check_indices, check_integer
from nodecopy.attacks import Attack, Perturbation, ThroughCopying
from nodecopy.defend.donors import Places, search
from nodecopy.errors import InputError
from nodecopy.graph import Graph


class Adaptive(ThroughCopying):
    """Find the donors that the defence would choose on the clean graph, then attack through them.

    See :class:`~nodecopy.attacks.ThroughCopying` for how, and for the other parameters.

    Parameters
    ----------
    donors, n_donors
        As in :class:`.CopyingDefence`.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.defend import Adaptive
    >>> digits = datasets.load("digits").subgraph(range(200))
    >>> Adaptive(budget=2, n_donors=3).attack(digits, [7], rng=0).spent.tolist()
    [2]
    """

    def __init__(
        self, donors: Any = "features", budget: int | str = "degree", *, n_donors: int = 10, **settings: Any
    ) -> None:
        super().__init__(donors, budget, **settings)
        self.n_donors = n_donors

    def attack(
        self, graph: Graph, targets: ArrayLike | None, *, train: ArrayLike | None = None, rng: Rng = None
    ) -> Perturbation:
        if targets is None:
            raise InputError("targets of Adaptive must hold node numbers; got None.")
        check_integer(self.n_donors, "n_donors of Adaptive", low=1, high=graph.n_nodes - 1)
        victims = check_indices(targets, "targets", size=graph.n_nodes)
        seed = seed_sequence(rng)
        found = search(self.donors, Places(graph), seed=child(seed, 2), device=self.device, owner="Adaptive")
        _, nodes = found.nearest(self.n_donors, of=victims, include_self=False)
        through = ThroughCopying(
            nodes.reshape(len(victims), self.n_donors),
            self.budget,
            at_victim=self.at_victim,
            flips_per_step=self.flips_per_step,
            surrogate=self.surrogate,
            together=self.together,
            device=self.device,
        )
        return replace(through.attack(graph, victims, train=train, rng=seed), attack=repr(self))

    attack.__doc__ = Attack.attack.__doc__
