"""An attack: link the target to nodes of the rarest other class."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.random import Generator, SeedSequence

from nodecopy import Graph
from nodecopy.attacks import Edits, TargetedAttack
from nodecopy.attacks.base import check_labels


class LinkToRarestClass(TargetedAttack):
    """Add edges from the target to random nodes of the smallest class that is not its own."""

    def __init__(self, *, together: bool = True) -> None:
        self.together = together

    def prepare(self, graph: Graph, targets: Any, train: Any, seed: SeedSequence) -> Callable[[], Edits]:
        check_labels(graph, targets, "LinkToRarestClass")
        return super().prepare(graph, targets, train, seed)

    def attack_target(self, edits: Edits, target: int, budget: int, rng: Generator) -> None:
        labels = np.asarray(edits.graph.label_codes)
        classes, sizes = np.unique(labels[labels >= 0], return_counts=True)
        others = classes != labels[target]
        if others.any():
            rarest = classes[others][sizes[others].argmin()]
            nodes = np.setdiff1d(np.flatnonzero(labels == rarest), edits.neighbours(target))
            for node in rng.permutation(nodes)[:budget].tolist():
                edits.flip(target, node)
