"""Attacks without a model: DICE, which knows labels, and random flips."""

from __future__ import annotations

from math import ceil
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from nodecopy._core.random import Rng, generator, seed_sequence
from nodecopy._core.validation import check_choice, check_integer, check_real
from nodecopy.attacks.base import Attack, Nodes, TargetedAttack, degree_budget, known_labels, perturbation
from nodecopy.attacks.edits import Edits, check_simple
from nodecopy.attacks.perturbation import NOBODY, Perturbation
from nodecopy.errors import InputError
from nodecopy.graph import UNLABELLED, Graph


class RandomFlips(TargetedAttack):
    """Flip random pairs of the victim and another node, which nearly always adds an edge.

    Parameters
    ----------
    budget
        Flips for each victim; by default its degree. At most all of its pairs are flipped.
    together
        Victims one after another in one graph, or each alone.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.attacks import RandomFlips
    >>> club = datasets.load("karate")
    >>> RandomFlips(3).attack(club, [0], rng=0).spent.tolist()
    [3]
    """

    def __init__(self, budget: int | str = "degree", *, together: bool = True) -> None:
        self.budget, self.together = budget, together

    def _budget(self, edits: Edits, target: int) -> int:
        return degree_budget(self.budget, edits, target, "budget of RandomFlips")

    def _strike(self, edits: Edits, number: int, target: int, budget: int, draws: Generator) -> None:
        others = np.delete(np.arange(edits.graph.n_nodes), target)
        for other in draws.choice(others, min(budget, len(others)), replace=False).tolist():
            edits.flip(target, other)


class DICE(TargetedAttack):
    """Delete internally, connect externally: the targeted form of the paper's section 6.

    A share of the victim's neighbours of its own class is cut off at random, and as many random nodes of
    other classes are connected to it. Nodes without a label are of no known class: they are neither cut
    off (unless ``delete`` is ``"any"``) nor connected. An isolated victim stays as it is.

    Parameters
    ----------
    share
        Of the neighbours, between 0 and 1; the number is rounded up, as the authors' code has it.
    delete
        ``"same-class"`` (the paper's text) or ``"any"`` neighbour, as the authors' code has it.
    together
        Victims one after another in one graph, or each alone.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.attacks import DICE
    >>> club = datasets.load("karate")
    >>> flips = DICE(0.5).attack(club, [0], rng=0)
    >>> int((~flips.is_added).sum()), int(flips.is_added.sum())
    (8, 8)
    """

    def __init__(self, share: float = 0.5, *, delete: str = "same-class", together: bool = True) -> None:
        self.share, self.delete, self.together = share, delete, together

    def _victims(self, graph: Graph, targets: ArrayLike | None) -> Nodes:
        check_real(self.share, "share of DICE", low=0, high=1)
        check_choice(self.delete, "delete of DICE", ["same-class", "any"])
        victims = super()._victims(graph, targets)
        known_labels(graph, victims, "DICE")
        return victims

    def _budget(self, edits: Edits, target: int) -> int:
        # Rounded first: 0.07 * 100 is a little above 7 in binary, which must not cost a neighbour.
        return 2 * ceil(round(self.share * len(self._internal(edits, target)), 9))

    def _strike(self, edits: Edits, number: int, target: int, budget: int, draws: Generator) -> None:
        labels = edits.graph.labels
        assert labels is not None
        outside = (labels != labels[target]) & (labels != UNLABELLED)
        outside[edits.neighbours(target)] = False
        external = np.flatnonzero(outside)
        deleted = draws.choice(self._internal(edits, target), budget // 2, replace=False)
        connected = draws.choice(external, min(budget // 2, len(external)), replace=False)
        for other in np.concatenate([deleted, connected]).tolist():
            edits.flip(target, other)

    def _internal(self, edits: Edits, target: int) -> NDArray[Any]:
        labels, neighbours = edits.graph.labels, edits.neighbours(target)
        assert labels is not None
        return neighbours if self.delete == "any" else neighbours[labels[neighbours] == labels[target]]


class GlobalDICE(Attack):
    """DICE on the whole graph (Waniek et al., 2018): half of the flips delete edges inside classes, the
    other half connects nodes of different classes.

    Parameters
    ----------
    budget
        Flips in all; an odd one connects. Where a half is more than there is, all there is is flipped.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.attacks import GlobalDICE
    >>> club = datasets.load("karate")
    >>> len(GlobalDICE(10).attack(club, None, rng=0).flips)
    10
    """

    def __init__(self, budget: int) -> None:
        self.budget = budget

    def attack(
        self,
        graph: Graph,
        targets: ArrayLike | None = None,
        *,
        train: ArrayLike | None = None,
        rng: Rng = None,
    ) -> Perturbation:
        """Attack the whole graph: ``targets`` stays ``None``; ``train`` is not read."""
        check_simple(graph)
        check_integer(self.budget, "budget of GlobalDICE", low=0)
        if targets is not None:
            raise InputError(
                "targets of GlobalDICE must be None, since it attacks the whole graph; use DICE."
            )
        labels = known_labels(graph, np.zeros(0, np.int64), "GlobalDICE")
        draws = generator(seed_sequence(rng))
        once = graph.rows.row_numbers < graph.rows.indices
        edges = np.column_stack([graph.rows.row_numbers[once], graph.rows.indices[once]]).astype(np.int64)
        first, second = labels[edges].T
        known = (first != UNLABELLED) & (second != UNLABELLED)
        internal = edges[known & (first == second)]
        n_deleted = min(self.budget // 2, len(internal))
        deleted = draws.choice(internal, n_deleted, replace=False)
        n_crossing = int((known & (first != second)).sum())
        connected = _external(graph, labels, n_crossing, self.budget - self.budget // 2, draws)
        flips = [(a, b) for a, b in np.concatenate([deleted, connected]).tolist()]
        return perturbation(self, graph, np.zeros(0, np.int64), [], [(NOBODY, flips, [])])


def _external(
    graph: Graph, labels: Nodes, n_crossing: int, wanted: int, draws: Generator
) -> NDArray[np.int64]:
    """Random pairs of nodes of different known classes that are not connected, without all pairs."""
    nodes = np.flatnonzero(labels != UNLABELLED)
    sizes = np.unique(labels[nodes], return_counts=True)[1].astype(np.int64)
    possible = (len(nodes) ** 2 - int((sizes**2).sum())) // 2 - n_crossing
    found = np.zeros((0, 2), np.int64)
    wanted = min(wanted, possible)
    while len(found) < wanted:
        drawn = np.sort(draws.choice(nodes, (2 * wanted + 16, 2)), axis=1)
        drawn = drawn[labels[drawn[:, 0]] != labels[drawn[:, 1]]]
        present = np.asarray(graph.adjacency[drawn[:, 0], drawn[:, 1]]).ravel() > 0
        both = np.concatenate([found, drawn[~present]])
        _, first = np.unique(both, axis=0, return_index=True)
        found = both[np.sort(first)][:wanted]
    return found
