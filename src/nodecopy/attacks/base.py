"""The contract of attacks, and random ones: DICE (delete internally, connect externally) and random flips."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import IntEnum
from math import ceil
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator, SeedSequence
from numpy.typing import ArrayLike

from nodecopy._core.arrays import Array, Ints
from nodecopy._core.checks import MAX_COUNT, check_callable, check_settings, check_unique, show
from nodecopy._core.estimator import Configurable
from nodecopy._core.random import Rng, child, generator, seed_sequence
from nodecopy.attacks.perturbation import Edits, Perturbation, check_attackable
from nodecopy.errors import InputError
from nodecopy.graph import UNLABELLED, Graph
from nodecopy.io import as_graph

Budget = int | float | str  # a number of flips, a share of the target's edges, or "degree"
Progress = Callable[[list[int]], Iterable[int]]  # yields the targets that it is given


class AttackSeeds(IntEnum):
    """Which child of an attack's seed is used for what."""

    SURROGATE = 0  # training of the surrogate model
    TARGETS = 1  # draws for the targets; each target has a child of this one by its position in the graph


class Attack(Configurable, ABC):
    """Flip edges (or binary features) of a graph so that classifiers err.

    An attack works on undirected, binary graphs. To write one, inherit :class:`TargetedAttack` and write
    ``attack_target``; to attack a graph as a whole, inherit this class and write :meth:`make_edits`.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.attacks import DICE
    >>> DICE().attack(datasets.load("karate"), [0], budget=0.5, rng=0).targets.tolist()
    [0]
    """

    default_budget: ClassVar[Budget] = "degree"
    together: bool = True

    def attack(
        self,
        graph: Graph,
        targets: ArrayLike | None = None,
        *,
        budget: Budget | None = None,
        train: ArrayLike | None = None,
        rng: Rng = None,
        progress: Progress | None = None,
    ) -> Perturbation:
        """Attack some nodes, or the whole graph, and return the flips.

        Parameters
        ----------
        graph
            Undirected and binary. Its labels are the true ones, which the attacker knows.
        targets
            Nodes to attack, in this order: positions, a boolean mask or ids; ``None`` for the whole graph.
        budget
            Number of flips for each target, or in total for an attack on the whole graph; by default the
            attack's ``default_budget``. ``"degree"`` is the target's degree in the clean graph. A float
            between 0 and 1 is a share, rounded up, of the edges of the target (or of the whole graph) before
            the attack, unless the attack documents otherwise. Fewer flips are made if no other is allowed or
            expected to raise the loss.
        train
            Labelled nodes on which the attacker trains a surrogate model, given as the targets are. By
            default every labelled node that is not a target.
        rng
            Seed or generator; fresh entropy by default.
        progress
            A function that yields the targets and shows progress, such as ``tqdm.tqdm``.
        """
        graph, seed, name = as_graph(graph), seed_sequence(rng), type(self).__name__
        check_attackable(graph)
        granted = check_budget(self.default_budget if budget is None else budget, name)
        check_callable(progress, f"progress of {name}")
        nodes, attacked = None, np.zeros(0, np.int64)
        if targets is not None:
            nodes = attacked = graph.positions(targets, "targets")
            check_unique(nodes, "targets")
        budgets, records = self.make_edits(graph, nodes, granted, train, seed, progress)
        described = f"{self!r} with budget {granted!r}"
        return Perturbation.from_edits(described, graph, attacked, budgets, records, together=self.together)

    @abstractmethod
    def make_edits(
        self,
        graph: Graph,
        targets: Ints | None,
        budget: Budget,
        train: ArrayLike | None,
        seed: SeedSequence,
        progress: Progress | None,
    ) -> tuple[list[int], list[Edits]]:
        """Return the number of flips granted for each target, and the edits that were made."""

    def __repr__(self) -> str:
        params = self.get_params(deep=False).items()
        scalars = [f"{name}={value!r}" for name, value in params if value is None or np.isscalar(value)]
        return f"{type(self).__name__}({', '.join(scalars)})"


class TargetedAttack(Attack):
    """Attack targets one after another in one graph, or each alone in the clean graph.

    A subclass writes :meth:`attack_target`, and where it needs them :meth:`prepare`,
    :meth:`n_flips_of_share` and ``default_budget``. With ``together`` (the default), each target is attacked
    in the graph that the attacks on earlier targets left, otherwise in the clean graph.

    Examples
    --------
    An attack that cuts the target's edges to its neighbours of the highest degree:

    >>> from nodecopy import datasets
    >>> from nodecopy.attacks import TargetedAttack
    >>> class CutHubs(TargetedAttack):
    ...     def attack_target(self, edits, target, budget, rng):
    ...         neighbours = edits.neighbours(target)
    ...         hubs_first = neighbours[(-edits.degrees[neighbours]).argsort(kind="stable")]
    ...         for hub in hubs_first[:budget].tolist():
    ...             edits.flip(target, hub)
    >>> CutHubs().attack(datasets.load("karate"), [5], budget=2).flips.tolist()
    [[5, 0], [5, 6]]
    """

    @abstractmethod
    def attack_target(self, edits: Edits, target: int, budget: int, rng: Generator) -> None:
        """Flip at most ``budget`` edges or features for one target, by ``edits.flip``.

        ``edits`` is the graph as the attack has left it so far, created by the function that :meth:`prepare`
        returns. The draws of ``rng`` do not depend on the other targets.
        """

    def prepare(
        self, graph: Graph, targets: Ints, train: ArrayLike | None, seed: SeedSequence
    ) -> Callable[[], Edits]:
        """Check parameters, train a surrogate, and return a function that starts edits of the graph."""
        return lambda: Edits(graph)

    def n_flips_of_share(self, edits: Edits, target: int, share: float) -> int:
        """Return how many flips a share grants, by default of the target's edges."""
        return ceil_of_share(share, int(edits.graph.degrees[target]))

    def make_edits(
        self, graph: Graph, targets: Any, budget: Budget, train: Any, seed: SeedSequence, progress: Any
    ) -> tuple[list[int], list[Edits]]:
        name = type(self).__name__
        if targets is None:
            raise InputError(f"targets of {name}", "must hold nodes; got None.")
        start = self.prepare(graph, targets, train, child(seed, AttackSeeds.SURROGATE))
        records, budgets = [start()], list[int]()
        for target in targets.tolist() if progress is None else progress(targets.tolist()):
            if not self.together and budgets:
                records.append(start())
            edits = records[-1]
            edits.owner = target
            n_granted = int(graph.degrees[target]) if budget == "degree" else budget
            if isinstance(budget, float):
                n_granted = self.n_flips_of_share(edits, target, budget)
            budgets.append(int(n_granted))
            # With a seed of its own, a target is attacked alone as it is attacked among others.
            draws = np.random.default_rng(child(child(seed, AttackSeeds.TARGETS), target))
            n_before = len(edits.flips) + len(edits.feature_flips)
            self.attack_target(edits, target, budgets[-1], draws)
            n_flips = len(edits.flips) + len(edits.feature_flips) - n_before
            if n_flips > budgets[-1]:
                allowed = f"at most {budgets[-1]} flips for target {target}"
                raise InputError(f"attack_target of {name}", f"must make {allowed}; got {n_flips}.")
        return budgets, records


def check_budget(budget: Any, attack: str) -> Budget:
    """Return a valid budget."""
    if isinstance(budget, (float, np.floating)) and 0 <= budget <= 1:
        return float(budget)
    if isinstance(budget, (int, np.integer)) and not isinstance(budget, bool) and budget >= 0:
        return min(int(budget), MAX_COUNT)
    if isinstance(budget, str) and budget == "degree":
        return budget
    allowed = "an integer of at least 0, a share between 0.0 and 1.0 or 'degree'"
    raise InputError(f"budget of {attack}", f"must be {allowed}; got {show(budget)}.")


def ceil_of_share(share: float, number: int) -> int:
    """Return a share of a number, rounded up."""
    # Rounded first: 0.07 * 100 is a little above 7 in binary, which must not cost an edge.
    return ceil(round(share * number, 9))


def check_labels(graph: Graph, targets: Ints, attack: str) -> Ints:
    """Return the labels of a graph, which all targets have."""
    if graph.label_codes is None:
        raise InputError("graph", f"must have labels for {attack}; this one has none.")
    unlabelled = targets[graph.label_codes[targets] == UNLABELLED]
    if len(unlabelled):
        node_id = graph.node_ids[unlabelled].tolist()[0]
        got = f"the node with id {node_id!r}, which has none. Add its label, such as a predicted class."
        raise InputError("targets", f"must have labels for {attack}; got {got}")
    return graph.label_codes


@dataclass(kw_only=True, eq=False, repr=False)
class DICE(TargetedAttack):
    """Delete internally, connect externally: the targeted form of the paper's section 6.

    Half of the flips remove edges between the target and random neighbours of its own class; the other half
    connects it to random nodes of other classes. Nodes without a label are neither removed (unless ``delete``
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
