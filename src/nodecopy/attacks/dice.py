"""Random attacks: DICE (delete internally, connect externally), at targets or globally, and random flips."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator, SeedSequence
from numpy.typing import ArrayLike

from nodecopy._core.arrays import Array, Ints
from nodecopy._core.checks import check_settings
from nodecopy._core.random import generator
from nodecopy.attacks.base import Attack, Budget, TargetedAttack, ceil_of_share, check_labels
from nodecopy.attacks.perturbation import Edits
from nodecopy.errors import InputError
from nodecopy.graph import UNLABELLED, Graph


@dataclass(kw_only=True, eq=False, repr=False)
class DICE(TargetedAttack):
    """Delete internally, connect externally: the targeted form of the paper's section 6.

    Half of the flips remove edges between the target and random neighbours of its own class; the other half
    connects it to random nodes of other classes. Ints without a label are neither removed (unless ``delete``
    is ``"any"``) nor connected.

    A share as the budget (0.5 by default) refers to the neighbours that can be removed, rounded up as in the
    authors' code, and as many edges are added. Of an integer budget, half is removed; an odd flip connects.

    Parameters
    ----------
    delete
        ``"same-class"`` (the paper's text) or ``"any"`` neighbour, as in the authors' code.
    together
        As in :class:`.TargetedAttack`.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.attacks import DICE
    >>> club = datasets.load("karate")
    >>> flips = DICE().attack(club, [0], budget=0.5, rng=0)
    >>> len(flips.removed), len(flips.added)
    (8, 8)
    """

    default_budget = 0.5

    delete: str = "same-class"
    together: bool = True

    def prepare(
        self, graph: Graph, targets: Ints, train: ArrayLike | None, seed: SeedSequence
    ) -> Callable[[], Edits]:
        check_settings(self, delete=["same-class", "any"])
        check_labels(graph, targets, "DICE")
        return super().prepare(graph, targets, train, seed)

    def n_flips_of_share(self, edits: Edits, target: int, share: float) -> int:
        return 2 * ceil_of_share(share, len(self._removable(edits, target)))

    def attack_target(self, edits: Edits, target: int, budget: int, rng: Generator) -> None:
        labels = edits.graph.label_codes
        assert labels is not None
        is_external = (labels != labels[target]) & (labels != UNLABELLED)
        is_external[edits.neighbours(target)] = False
        external, internal = np.flatnonzero(is_external), self._removable(edits, target)
        removed = rng.choice(internal, min(budget // 2, len(internal)), replace=False)
        connected = rng.choice(external, min(budget - budget // 2, len(external)), replace=False)
        for other in np.concatenate([removed, connected]).tolist():
            edits.flip(target, other)

    def _removable(self, edits: Edits, target: int) -> Array:
        labels, neighbours = edits.graph.label_codes, edits.neighbours(target)
        assert labels is not None
        return neighbours if self.delete == "any" else neighbours[labels[neighbours] == labels[target]]


class GlobalDICE(Attack):
    """DICE on the whole graph (Waniek et al., 2018).

    Half of the flips remove edges between nodes of one class, the other half connects nodes of different
    classes, as far as there are such pairs. The budget is the total number of flips, or their share of the
    number of edges, 0.05 by default; an odd flip connects.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.attacks import GlobalDICE
    >>> club = datasets.load("karate")
    >>> len(GlobalDICE().attack(club, budget=10, rng=0).flips)
    10
    """

    default_budget = 0.05

    def make_edits(
        self, graph: Graph, targets: Any, budget: Budget, train: Any, seed: SeedSequence, progress: Any
    ) -> tuple[list[int], list[Edits]]:
        if targets is not None:
            raise InputError("targets of GlobalDICE", "must be None: it attacks the whole graph; use DICE.")
        if isinstance(budget, str):
            raise InputError("budget of GlobalDICE", f"must be an integer or a share; got {budget!r}.")
        labels = check_labels(graph, np.zeros(0, np.int64), "GlobalDICE")
        n_flips = ceil_of_share(budget, graph.n_edges) if isinstance(budget, float) else budget
        draws = generator(seed)
        edges = np.column_stack([graph.rows.row_numbers, graph.rows.indices]).astype(np.int64)
        edges = edges[edges[:, 0] < edges[:, 1]]
        first, second = labels[edges].T
        labelled = (first != UNLABELLED) & (second != UNLABELLED)
        internal = edges[labelled & (first == second)]
        removed = draws.choice(internal, min(n_flips // 2, len(internal)), replace=False)
        n_crossing = int((labelled & (first != second)).sum())
        connected = _draw_external_pairs(graph, labels, n_crossing, n_flips - n_flips // 2, draws)
        edits = Edits(graph)
        for pair in np.concatenate([removed, connected]).tolist():
            edits.flip(*pair)
        return [], [edits]


def _draw_external_pairs(graph: Graph, labels: Ints, n_crossing: int, n_pairs: int, draws: Generator) -> Ints:
    """Draw unconnected pairs of nodes of different classes by rejection."""
    nodes = np.flatnonzero(labels != UNLABELLED)
    sizes = np.unique(labels[nodes], return_counts=True)[1].astype(np.int64)
    n_possible = (len(nodes) ** 2 - int((sizes**2).sum())) // 2 - n_crossing
    pairs = np.zeros((0, 2), np.int64)
    n_pairs = min(n_pairs, n_possible)
    while len(pairs) < n_pairs:
        candidates = np.sort(draws.choice(nodes, (2 * n_pairs + 16, 2)), axis=1)
        candidates = candidates[labels[candidates[:, 0]] != labels[candidates[:, 1]]]
        is_edge = np.asarray(graph.adjacency[candidates[:, 0], candidates[:, 1]]).ravel() > 0
        both = np.concatenate([pairs, candidates[~is_edge]])
        _, first = np.unique(both, axis=0, return_index=True)
        pairs = both[np.sort(first)][:n_pairs]
    return pairs


@dataclass(kw_only=True, eq=False, repr=False)
class RandomFlips(TargetedAttack):
    """Flip random pairs of the target and another node, which nearly always adds an edge.

    The default budget is the target's degree. At most all pairs of the target are flipped.

    Parameters
    ----------
    together
        As in :class:`.TargetedAttack`.

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
