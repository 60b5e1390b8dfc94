"""The contract of attacks, and what they share: whom they attack, what they know, in which order."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.random import Generator, SeedSequence
from numpy.typing import ArrayLike, NDArray

from nodecopy._core.params import Configurable
from nodecopy._core.random import Rng, child, seed_sequence
from nodecopy._core.validation import check_indices, check_integer, check_unique
from nodecopy.attacks.edits import Edits, check_simple, pairs
from nodecopy.attacks.perturbation import Perturbation
from nodecopy.errors import InputError
from nodecopy.graph import UNLABELLED, Graph

Nodes: TypeAlias = NDArray[np.int64]


class Attack(Configurable, ABC):
    """Flips edges (or features) so that classifiers err.

    An attack works on undirected, binary graphs. The perturbation says what was granted and what was spent.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.attacks import DICE
    >>> attack = DICE(0.5)
    >>> attack, attack.attack(datasets.load("karate"), [0], rng=0).targets.tolist()
    (DICE(share=0.5, delete='same-class', together=True), [0])
    """

    together: bool = True

    @abstractmethod
    def attack(
        self, graph: Graph, targets: ArrayLike | None, *, train: ArrayLike | None = None, rng: Rng = None
    ) -> Perturbation:
        """Attack some nodes.

        Parameters
        ----------
        graph
            Undirected and binary; its labels are the true ones, which the attacker knows.
        targets
            Node numbers of the victims, in the order in which they are attacked; ``None`` where the
            whole graph is attacked.
        train
            Nodes whose labels the attacker's own surrogate model is trained on; by default every
            labelled node that is no target. A target may be among them. Attacks without a surrogate
            do not read it.
        rng
            Seed or generator.
        """

    def __repr__(self) -> str:
        plain = {name: value for name, value in vars(self).items() if value is None or np.isscalar(value)}
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in plain.items())})"


class TargetedAttack(Attack):
    """Attacks victims one after another, or each alone.

    It never flips the same pair twice for one victim and stops early where nothing is left to flip.
    """

    def attack(
        self, graph: Graph, targets: ArrayLike | None, *, train: ArrayLike | None = None, rng: Rng = None
    ) -> Perturbation:
        check_simple(graph)
        seed = seed_sequence(rng)
        victims = self._victims(graph, targets)
        begin = self._prepared(graph, victims, train, child(seed, 0))
        edits = begin()
        budgets, parts = [], []
        for number, target in enumerate(victims.tolist()):
            if not self.together:
                edits = begin()
            before = len(edits.flips), len(edits.feature_flips)
            budgets.append(self._budget(edits, target))
            # The victim's own seed: with the same surrogate it is attacked, alone, as it is among others.
            self._strike(
                edits, number, target, budgets[-1], np.random.default_rng(child(child(seed, 1), target))
            )
            parts.append((target, edits.flips[before[0] :], edits.feature_flips[before[1] :]))
        return perturbation(self, graph, victims, budgets, parts)

    attack.__doc__ = Attack.attack.__doc__

    @abstractmethod
    def _budget(self, edits: Edits, target: int) -> int:
        """Flips granted for one victim."""

    @abstractmethod
    def _strike(self, edits: Edits, number: int, target: int, budget: int, draws: Generator) -> None:
        """Make the flips for ``target``, the victim of that ``number``."""

    def _prepared(
        self, graph: Graph, victims: Nodes, train: ArrayLike | None, seed: SeedSequence
    ) -> Callable[[], Any]:
        """Learn what there is to learn once; the result starts the edits of a clean graph."""
        return lambda: Edits(graph)

    def _victims(self, graph: Graph, targets: ArrayLike | None) -> Nodes:
        if targets is None:
            raise InputError(f"targets of {type(self).__name__} must hold node numbers; got None.")
        victims = check_indices(targets, "targets", size=graph.n_nodes)
        check_unique(victims, "targets")
        return victims


def perturbation(
    attack: Attack,
    graph: Graph,
    victims: Nodes,
    budgets: list[int],
    parts: list[tuple[int, list[tuple[int, int]], list[tuple[int, int]]]],
) -> Perturbation:
    """Put together what was done for each victim."""
    flips = pairs([flip for _, made, _ in parts for flip in made])
    owners = np.repeat([owner for owner, _, _ in parts], [len(made) for _, made, _ in parts])
    features = pairs([flip for _, _, made in parts for flip in made])
    feature_owners = np.repeat([owner for owner, _, _ in parts], [len(made) for _, _, made in parts])
    return Perturbation(
        repr(attack),
        graph.node_ids,
        victims,
        np.array(budgets, np.int64),
        flips,
        _added(graph, flips, alone=not attack.together),
        owners.astype(np.int64),
        features,
        feature_owners.astype(np.int64),
        attack.together,
    )


def _added(graph: Graph, flips: NDArray[np.int64], *, alone: bool) -> NDArray[np.bool_]:
    """Which flips added an edge: it was not there, or an earlier victim had removed it."""
    edits, added = Edits(graph), []
    for first, second in flips.tolist():
        added.append(not edits.has_edge(first, second))
        if not alone:
            edits.flip(first, second)
    return np.array(added, bool)


def degree_budget(budget: int | str, edits: Edits, target: int, name: str) -> int:
    """A number of flips for every victim, or ``"degree"``: as many as it has edges in the clean graph."""
    if budget == "degree":
        return int(edits.graph.degrees[target])
    if isinstance(budget, str):
        raise InputError(f"{name} must be an integer or 'degree'; got {budget!r}.")
    return check_integer(budget, name, low=0)


def known_labels(graph: Graph, targets: Nodes, purpose: str) -> Nodes:
    """The labels of a graph, known at least at the targets."""
    if graph.labels is None:
        raise InputError(f"graph must have labels for {purpose}; this one has none.")
    unknown = targets[graph.labels[targets] == UNLABELLED]
    if len(unknown):
        name = graph.node_ids[unknown].tolist()[0]
        raise InputError(
            f"targets must have labels for {purpose}; got the node with id {name!r}, which has none."
        )
    return graph.labels
