"""Random flips, the attack that uses no knowledge."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from nodecopy.attacks.base import TargetedAttack
from nodecopy.attacks.edits import Edits


@dataclass(kw_only=True, eq=False, repr=False)
class RandomFlips(TargetedAttack):
    """Flip random pairs of the target and another node, which nearly always adds an edge.

    The default budget is the target's degree. At most all pairs of the target are flipped.

    Parameters
    ----------
    together
        Whether targets are attacked one after another in one graph, or each alone.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.attacks import RandomFlips
    >>> club = datasets.load("karate")
    >>> RandomFlips().attack(club, [0], budget=3, rng=0).spent.tolist()
    [3]
    """

    together: bool = True

    def attack_target(self, edits: Edits, target: int, budget: int, rng: Generator) -> None:
        others = np.delete(np.arange(edits.graph.n_nodes), target)
        for other in rng.choice(others, min(budget, len(others)), replace=False).tolist():
            edits.flip(target, other)
