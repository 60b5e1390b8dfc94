"""What an attack did: a value that can be applied, saved and read."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

import nodecopy
from nodecopy._core.atomic_files import atomic_write
from nodecopy._core.csr import freeze
from nodecopy._core.formats import PathLike, format_of, reading
from nodecopy._core.validation import check_indices, check_unique
from nodecopy.attacks.edits import check_simple, flipped
from nodecopy.errors import InputError
from nodecopy.graph import Graph

NOBODY = -1
"""Owner of the flips of an attack on the whole graph."""
SHOWN = 12
"""Victims that ``str`` lists."""


@dataclass(frozen=True, eq=False)
class Perturbation:
    """Flipped edges and features, in the order in which the attack flipped them.

    Parameters
    ----------
    attack
        Name and settings of the attack, to be read by people.
    node_ids
        Ids of all nodes of the graph that was attacked; every other array holds node numbers.
    targets, budgets
        The victims, and how many flips each was granted; fewer were made where more were impossible or
        of no use to the attacker (see :attr:`spent`).
    flips, is_added, owners
        ``[n, 2]`` pairs of nodes; whether the edge was added (or removed); the victim it was flipped
        for, ``NOBODY`` (-1) in an attack on the whole graph.
    feature_flips, feature_owners
        ``[m, 2]`` pairs (node, feature): a binary feature that was added or removed.
    together
        Whether victims were attacked one after another in one graph, so that each saw the flips before
        its own, or each alone against the clean graph.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.attacks import DICE
    >>> club = datasets.load("karate")
    >>> flips = DICE(0.5).attack(club, [0], rng=0)
    >>> flips.apply(club).n_edges, flips.spent.tolist()
    (78, [16])
    """

    attack: str
    node_ids: NDArray[Any]
    targets: NDArray[np.int64]
    budgets: NDArray[np.int64]
    flips: NDArray[np.int64]
    is_added: NDArray[np.bool_]
    owners: NDArray[np.int64]
    feature_flips: NDArray[np.int64]
    feature_owners: NDArray[np.int64]
    together: bool = True

    def __post_init__(self) -> None:
        for name in ARRAYS:
            object.__setattr__(self, name, freeze(np.asarray(getattr(self, name))))
        n_nodes, n_flips, n_features = len(self.node_ids), len(self.flips), len(self.feature_flips)
        shapes = {"targets": (len(self.targets),), "budgets": (len(self.targets),), "flips": (n_flips, 2)}
        shapes |= {"is_added": (n_flips,), "owners": (n_flips,), "feature_flips": (n_features, 2)}
        shapes |= {"feature_owners": (n_features,)}
        for name, shape in shapes.items():
            if (array := getattr(self, name)).shape != shape:
                raise InputError(f"{name} of a perturbation must have the shape {shape}; got {array.shape}.")
        if self.is_added.dtype != bool:
            raise InputError(f"is_added of a perturbation must hold booleans; got {self.is_added.dtype}.")
        check_unique(self.targets, "targets of a perturbation")
        for name in ("owners", "feature_owners"):
            if not np.isin(getattr(self, name), [*self.targets.tolist(), NOBODY]).all():
                raise InputError(f"{name} of a perturbation must hold targets only, or {NOBODY}.")
        if (self.feature_flips[:, 1] < 0).any():
            raise InputError(
                "feature_flips of a perturbation must hold columns of features; got one below 0."
            )
        for name in ("targets", "flips"):
            check_indices(getattr(self, name).ravel(), f"{name} of a perturbation", size=n_nodes)
        check_indices(self.feature_flips[:, 0], "feature_flips of a perturbation", size=n_nodes)

    @property
    def added(self) -> NDArray[np.int64]:
        """``[m, 2]`` edges that were added."""
        return self.flips[self.is_added]

    @property
    def removed(self) -> NDArray[np.int64]:
        """``[k, 2]`` edges that were removed."""
        return self.flips[~self.is_added]

    @property
    def spent(self) -> NDArray[np.int64]:
        """Flips made for each target, edges and features."""
        owners = np.concatenate([self.owners, self.feature_owners])
        return np.array([(owners == target).sum() for target in self.targets], np.int64)

    def of(self, target: int) -> Perturbation:
        """The part that was made for one victim (a node number)."""
        if target not in self.targets:
            raise InputError(f"target must be one of the {len(self.targets)} attacked nodes; got {target!r}.")
        mine, my_features = self.owners == target, self.feature_owners == target
        return Perturbation(
            self.attack,
            self.node_ids,
            self.targets[self.targets == target],
            self.budgets[self.targets == target],
            self.flips[mine],
            self.is_added[mine],
            self.owners[mine],
            self.feature_flips[my_features],
            self.feature_owners[my_features],
            self.together,
        )

    def apply(self, graph: Graph, *, target: int | None = None) -> Graph:
        """The attacked graph: all flips, or those made for one ``target`` (a node number).

        The graph must be the one that was attacked: the same nodes in the same order, added edges
        absent, removed edges present; flipped features binary. Where victims were attacked alone, what two
        of them flipped is flipped once. The flips of one victim of many that were attacked together may rest
        on those of another (it removes an edge that the other added), which is an error here.
        """
        if target is not None:
            return self.of(target).apply(graph)
        check_simple(graph)
        if not np.array_equal(graph.node_ids, self.node_ids):
            raise InputError(
                "graph must have the nodes of the attacked graph, in its order; this one has others."
            )
        flips, is_added, features = self.flips, self.is_added, self.feature_flips
        if not self.together:
            ends, first = np.unique(np.sort(flips, axis=1), axis=0, return_index=True)
            flips, is_added = ends, is_added[first]
            features = np.unique(features, axis=0)
        _check_edges(graph, flips, is_added)
        _check_features(graph, features)
        attacked = graph.with_rows(flipped(graph.rows, flips))
        return _with_features(attacked, features) if len(features) else attacked

    def save(self, path: PathLike) -> None:
        """Write an ``.npz`` file, whole or not at all, that :meth:`load` reads."""
        format_of(path, (".npz",))
        about = {"nodecopy": nodecopy.__version__, "attack": self.attack, "together": self.together}
        arrays = {"about": np.array(json.dumps(about))} | {name: getattr(self, name) for name in ARRAYS}
        with atomic_write(path) as temporary, temporary.open("wb") as file:
            np.savez_compressed(file, allow_pickle=False, **arrays)

    @classmethod
    def load(cls, path: PathLike) -> Perturbation:
        """Read what :meth:`save` wrote."""
        format_of(path, (".npz",))
        with reading(path) as name, name.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            if not set(archive.files) >= {"about", *ARRAYS}:
                held = ", ".join(sorted(archive.files)) or "nothing"
                raise InputError(f"there is no perturbation in it; it holds {held}.")
            about = json.loads(str(archive["about"]))
            arrays = {array: archive[array] for array in ARRAYS}
            return cls(attack=about["attack"], together=about["together"], **arrays)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Perturbation):
            return NotImplemented
        return (self.attack, self.together) == (other.attack, other.together) and all(
            np.array_equal(getattr(self, name), getattr(other, name)) for name in ARRAYS
        )

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        return Perturbation, tuple(getattr(self, entry.name) for entry in fields(self))

    def __str__(self) -> str:
        whom = "on the whole graph" if (self.owners == NOBODY).any() else f"on {len(self.targets)} nodes"
        counts = f"{len(self.added)} edges added, {len(self.removed)} removed"
        if len(self.feature_flips):
            counts += f", {len(self.feature_flips)} features flipped"
        lines = [f"{self.attack} {whom}: {counts}"]
        for target, budget, spent in list(zip(self.targets, self.budgets, self.spent, strict=True))[:SHOWN]:
            mine = self.owners == target
            changes = [
                f"{'+' if added else '-'}{self._name(first)}~{self._name(second)}"
                for (first, second), added in zip(self.flips[mine], self.is_added[mine], strict=True)
            ]
            changes += [
                f"{self._name(node)}#{feature}"
                for node, feature in self.feature_flips[self.feature_owners == target]
            ]
            lines.append(f"  {self._name(target)}: {spent} of {budget} flips {' '.join(changes)}".rstrip())
        if len(self.targets) > SHOWN:
            lines.append(f"  and {len(self.targets) - SHOWN} more")
        return "\n".join(lines)

    def _name(self, node: int) -> str:
        return str(self.node_ids[node])


ARRAYS = tuple(entry.name for entry in fields(Perturbation) if entry.name not in ("attack", "together"))


def _check_edges(graph: Graph, flips: NDArray[np.int64], is_added: NDArray[np.bool_]) -> None:
    """Each flip in turn must find its edge as the attack found it."""
    if not len(flips):
        return
    ends = np.sort(flips, axis=1)
    _, which, counts = np.unique(ends, axis=0, return_inverse=True, return_counts=True)
    present = np.asarray(graph.adjacency[ends[:, 0], ends[:, 1]]).ravel() > 0
    earlier = np.zeros(len(flips), bool)  # an odd number of earlier flips of the same pair
    if counts.max() > 1:
        seen: dict[int, int] = {}
        for place, pair in enumerate(which.ravel().tolist()):
            earlier[place] = seen.get(pair, 0) % 2
            seen[pair] = seen.get(pair, 0) + 1
    wrong = (present ^ earlier) == is_added
    if wrong.any():
        first, second = graph.node_ids[flips[wrong][0]].tolist()
        kind = "added" if is_added[wrong][0] else "removed"
        state = "there already" if is_added[wrong][0] else "not there"
        raise InputError(
            f"graph must be the one that was attacked; the edge {first!r}, {second!r} is to be {kind} "
            f"and is {state}."
        )


def _check_features(graph: Graph, flips: NDArray[np.int64]) -> None:
    """The features that are to be flipped must be there, and binary."""
    if not len(flips):
        return
    if graph.features is None:
        raise InputError("graph must have the features that were attacked; this one has none.")
    n_features, last = graph.features.shape[1], flips[:, 1].max()
    if last >= n_features:
        raise InputError(
            f"graph must have the features that were attacked, {last + 1} at least; this one has "
            f"{n_features}."
        )
    matrix: Any = graph.features
    values = np.asarray(matrix[tuple(flips.T)]).ravel()
    wrong = (values != 0) & (values != 1)
    if wrong.any():
        (node, feature), value = flips[wrong][0], values[wrong][0]
        raise InputError(
            f"features of the graph that are flipped must be 0 or 1; feature {feature} of node "
            f"{graph.node_ids[node]!s} is {value:g}."
        )


def _with_features(graph: Graph, flips: NDArray[np.int64]) -> Graph:
    """The graph with binary features flipped in turn: twice is as good as never."""
    distinct, times = np.unique(flips, axis=0, return_counts=True)
    matrix: Any = graph.features
    places = tuple(distinct[times % 2 == 1].T)
    before = np.asarray(matrix[places]).ravel()
    after = (before == 0).astype(matrix.dtype)
    if isinstance(graph.features, np.ndarray):
        matrix = matrix.copy()
        matrix[places] = after
    else:
        matrix = matrix + sparse.csr_array((after - before, places), shape=matrix.shape)
        matrix.eliminate_zeros()
    return graph.replace(features=matrix)
