"""Flips of edges and features: :class:`Edits` during an attack, :class:`Perturbation` afterwards."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from scipy import sparse

import nodecopy
from nodecopy._core.arrays import Array, Bools, IntArray, Ints, Rows, check_ids, freeze
from nodecopy._core.checks import check_indices, check_integer, check_type, check_unique, open_archive
from nodecopy._core.estimator import check_annotated
from nodecopy._core.files import TABLES, PathLike, atomic_write, format_of, reading
from nodecopy._core.messages import add_escaped
from nodecopy.errors import InputError
from nodecopy.graph import Graph
from nodecopy.io import as_graph
from nodecopy.io.tables import read_table, write_table

FORMATS = (*TABLES, ".npz")
CHANGES = ("remove", "add")  # the column ``change`` of a table of flips, by whether an edge is added
MAX_TARGETS_SHOWN = 12  # number of targets that ``str`` lists
WHOLE_GRAPH = -1  # owner of the flips of an attack on the whole graph


class Edits:
    """A graph and the flips made so far.

    Attributes
    ----------
    graph
        The clean graph.
    degrees
        The degrees after the flips.
    owner
        The target for which flips are being made, ``-1`` for the whole graph.
    flips, is_added, owners
        Pairs of nodes in the order in which they were flipped, whether each flip added an edge, and
        its owner.
    feature_flips, feature_owners
        The same for pairs (node, feature).

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.attacks import Edits
    >>> edits = Edits(datasets.load("karate"))
    >>> edits.flip(5, 0)
    >>> edits.is_added, edits.neighbours(5).tolist()
    ([False], [6, 10, 16])
    """

    def __init__(self, graph: Graph) -> None:
        self.graph: Graph = check_type(graph, Graph, "graph of Edits", "a Graph")
        self.degrees = graph.degrees.astype(np.int64)
        self.owner = WHOLE_GRAPH
        self.flips: list[tuple[int, int]] = []
        self.is_added: list[bool] = []
        self.owners: list[int] = []
        self.feature_flips: list[tuple[int, int]] = []
        self.feature_owners: list[int] = []
        self._changed_rows: dict[int, IntArray] = {}

    def neighbours(self, node: int) -> IntArray:
        """Return the neighbours of a node after the flips, in ascending order."""
        rows = self.graph.rows
        node = check_integer(node, "node", low=0, high=rows.n_rows - 1)
        unchanged = rows.indices[rows.indptr[node] : rows.indptr[node + 1]]
        return self._changed_rows.get(node, unchanged)

    def has_edge(self, first: int, second: int) -> bool:
        """Return whether two nodes are neighbours after the flips."""
        neighbours = self.neighbours(first)
        second = check_integer(second, "node", low=0, high=self.graph.n_nodes - 1)
        position = np.searchsorted(neighbours, second)
        return bool(position < len(neighbours) and neighbours[position] == second)

    def flip(self, first: int, second: int) -> None:
        """Remove the edge between two nodes if there is one, add it otherwise."""
        last = self.graph.n_nodes - 1
        first, second = (check_integer(node, "node of flip", low=0, high=last) for node in (first, second))
        if first == second:
            raise InputError(f"nodes of flip must be two different nodes; got {first} twice.")
        is_added = not self.has_edge(first, second)
        for node, other in ((first, second), (second, first)):
            neighbours = self.neighbours(node)
            position = int(np.searchsorted(neighbours, other))
            self._changed_rows[node] = (
                np.insert(neighbours, position, other) if is_added else np.delete(neighbours, position)
            )
            self.degrees[node] += 1 if is_added else -1
        self.flips.append((first, second))
        self.is_added.append(is_added)
        self.owners.append(self.owner)

    def flip_feature(self, node: int, feature: int) -> None:
        """Remove a binary feature from a node if it has it, add it otherwise."""
        if self.graph.features is None:
            raise InputError("graph of flip_feature must have features; got none.")
        last = [size - 1 for size in self.graph.features.shape]
        node = check_integer(node, "node of flip_feature", low=0, high=last[0])
        feature = check_integer(feature, "feature of flip_feature", low=0, high=last[1])
        self.feature_flips.append((node, feature))
        self.feature_owners.append(self.owner)

    def adjacency(self) -> sparse.csr_array:
        """Return the adjacency after the flips."""
        return flip_entries(self.graph.rows, np.array(self.flips, np.int64).reshape(-1, 2)).csr


def flip_entries(rows: Rows, flips: Ints) -> Rows:
    """Return binary, symmetric rows with pairs flipped in turn."""
    ends = np.concatenate([flips, flips[:, ::-1]])
    times = sparse.csr_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=rows.csr.shape)
    times.data %= 2
    matrix = sparse.csr_array(abs(rows.csr - times.astype(np.float32)))
    matrix.eliminate_zeros()
    matrix.sort_indices()
    return Rows.canonical(matrix.indptr, matrix.indices, None, rows.n_columns)


def check_attackable(graph: Graph) -> None:
    """Raise an error unless a graph is undirected and binary."""
    if graph.directed:
        raise InputError("graph", "must be undirected to be attacked; graph.undirected() makes it so.")
    if graph.is_weighted:
        way_out = "Use graph.binary(), or leave weights out when it is read"
        raise InputError("graph", f"must be binary to be attacked; it has weights. {way_out}.", weight="")


def _read_flips(path: Any, graph: Graph) -> tuple[list[Edits], Ints]:
    """Return the edits in a table, and the targets in order of appearance.

    If a change is repeated, targets were attacked each alone, and there is one record for each of them.
    """
    table = read_table(path, True)
    names = table.names or []
    position = add_escaped({str(node): number for number, node in enumerate(graph.node_ids.tolist())})

    def look_up(name: str, values: dict[str, Any], allowed: str) -> list[Any]:
        if name not in names:
            raise InputError("flips", f"must have the columns first and second; got {', '.join(names)}.")
        words = [str(word).strip() for word in table.columns[names.index(name)]]
        for row, word in enumerate(words):
            if word not in values:
                raise InputError(f"{name} in {table.where(row)} must be {allowed}; got {word!r}.")
        return [values[word] for word in words]

    ends = [look_up(name, position, "the id of a node") for name in ("first", "second")]
    pairs = np.array(ends, np.int64).T
    owners = np.full(len(pairs), WHOLE_GRAPH)
    if "target" in names:
        owners = np.array(look_up("target", position, "the id of a node"), np.int64)
    targets = owners[np.sort(np.unique(owners, return_index=True)[1])]
    changes = None
    if "change" in names:
        changes = look_up("change", dict(zip(CHANGES, CHANGES, strict=True)), "'add' or 'remove'")
    repeated = changes is not None and _has_repetitions(pairs, changes)
    records = [Edits(graph)]
    for number, (first, second) in enumerate(pairs.tolist()):
        owner = int(owners[number])
        if repeated and records[-1].flips and records[-1].owner != owner:
            records.append(Edits(graph))
        records[-1].owner = owner
        is_added = not records[-1].has_edge(first, second)
        if changes is not None and changes[number] != CHANGES[is_added]:
            state = "absent" if is_added else "present"
            allowed = f"{CHANGES[is_added]!r}, since the edge is {state}"
            got = f"{changes[number]!r}. Give the graph before the attack."
            raise InputError(f"change in {table.where(number)} must be {allowed}; got {got}")
        records[-1].flip(first, second)
    return records, targets[targets != WHOLE_GRAPH]


def _has_repetitions(pairs: Ints, changes: list[str]) -> bool:
    last: dict[tuple[int, ...], str] = {}
    for pair, change in zip(map(tuple, np.sort(pairs, axis=1).tolist()), changes, strict=True):
        if last.get(pair) == change:
            return True
        last[pair] = change
    return False


@dataclass(frozen=True, eq=False, repr=False)
class Perturbation:
    """Flipped edges and features, in the order in which the attack flipped them.

    Parameters
    ----------
    attack
        Name, parameters and budget of the attack, as text.
    node_ids
        Ids of all nodes of the attacked graph; every other array holds positions of nodes.
    targets, budgets
        The attacked nodes, and how many flips were granted for each; :attr:`spent` counts those made.
    flips, is_added, owners
        ``[n, 2]`` pairs of nodes; whether the edge was added or removed; the target it was flipped for,
        -1 in an attack on the whole graph.
    feature_flips, feature_owners
        ``[m, 2]`` pairs (node, feature) of binary features that were added or removed, and their targets.
    together
        Whether targets were attacked one after another in one graph, or each alone in the clean graph.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.attacks import DICE
    >>> club = datasets.load("karate")
    >>> flips = DICE().attack(club, [0], budget=0.5, rng=0)
    >>> flips.apply(club).n_edges, flips.spent.tolist()
    (78, [16])
    """

    attack: str
    node_ids: Array
    targets: Ints
    budgets: Ints
    flips: Ints
    is_added: Bools
    owners: Ints
    feature_flips: Ints
    feature_owners: Ints
    together: bool = True

    def __post_init__(self) -> None:
        for name in ARRAYS:
            object.__setattr__(self, name, freeze(np.asarray(getattr(self, name))))
        check_annotated(vars(self), Perturbation)
        n_nodes, n_flips, n_features = len(self.node_ids), len(self.flips), len(self.feature_flips)
        shapes: dict[str, tuple[int, ...]] = dict.fromkeys(("targets", "budgets"), (len(self.targets),))
        shapes |= {"is_added": (n_flips,), "owners": (n_flips,), "feature_owners": (n_features,)}
        shapes |= {"flips": (n_flips, 2), "feature_flips": (n_features, 2)}
        for name, shape in shapes.items():
            if (array := getattr(self, name)).shape != shape:
                raise InputError(f"{name} of a perturbation must have the shape {shape}; got {array.shape}.")
        check_unique(self.targets, "targets of a perturbation")
        for name in ("owners", "feature_owners"):
            if not np.isin(getattr(self, name), [*self.targets.tolist(), WHOLE_GRAPH]).all():
                raise InputError(f"{name} of a perturbation must hold targets only, or {WHOLE_GRAPH}.")
        if (self.feature_flips[:, 1] < 0).any():
            raise InputError("feature_flips of a perturbation must hold columns of features, from 0 on.")
        for name in ("targets", "flips"):
            check_indices(getattr(self, name).ravel(), f"{name} of a perturbation", size=n_nodes)
        check_indices(self.feature_flips[:, 0], "feature_flips of a perturbation", size=n_nodes)

    @classmethod
    def from_edits(
        cls,
        attack: str,
        graph: Graph,
        targets: Ints,
        budgets: Sequence[int],
        edits: Sequence[Edits],
        *,
        together: bool = True,
    ) -> Perturbation:
        """Collect the flips in one or more :class:`.Edits` of a graph."""

        def collect(name: str, kind: type) -> Array:
            return np.array([entry for part in edits for entry in getattr(part, name)], kind)

        return cls(
            attack,
            graph.node_ids,
            targets,
            np.array(budgets, np.int64),
            collect("flips", np.int64).reshape(-1, 2),
            collect("is_added", bool),
            collect("owners", np.int64),
            collect("feature_flips", np.int64).reshape(-1, 2),
            collect("feature_owners", np.int64),
            together,
        )

    @property
    def added(self) -> Ints:
        """Return the edges that were added, ``[m, 2]``."""
        return self.flips[self.is_added]

    @property
    def removed(self) -> Ints:
        """Return the edges that were removed, ``[k, 2]``."""
        return self.flips[~self.is_added]

    @property
    def spent(self) -> Ints:
        """Return the number of flips made for each target."""
        owners = np.concatenate([self.owners, self.feature_owners])
        return np.array([(owners == target).sum() for target in self.targets], np.int64)

    def of(self, target: int) -> Perturbation:
        """Return the flips made for one target, given by position."""
        if target not in self.targets:
            allowed = f"one of the {len(self.targets)} attacked nodes"
            raise InputError("target", f"must be {allowed}; got {target!r}.")
        keys = {"targets": self.targets, "budgets": self.targets}
        keys |= {"feature_flips": self.feature_owners, "feature_owners": self.feature_owners}
        keys |= dict.fromkeys(("flips", "is_added", "owners"), self.owners)
        return replace(self, **{name: getattr(self, name)[key == target] for name, key in keys.items()})

    def apply(self, graph: Graph, *, target: int | None = None) -> Graph:
        """Return the graph with all flips, or with those made for one target.

        Where targets were attacked alone, a pair that was flipped for two of them is flipped once.

        Parameters
        ----------
        graph
            The graph that was attacked, with the same nodes in the same order.
        target
            Position of a target. Where targets were attacked together, its flips may build on those of an
            earlier target (remove an edge that was added for it), which is an error.
        """
        if target is not None:
            return self.of(target).apply(graph)
        graph = as_graph(graph)
        check_attackable(graph)
        if not np.array_equal(graph.node_ids, self.node_ids):
            raise InputError("graph", "must have the nodes of the attacked graph, in its order.")
        flips, is_added, features = self.flips, self.is_added, self.feature_flips
        if not self.together:
            ends, first = np.unique(np.sort(flips, axis=1), axis=0, return_index=True)
            flips, is_added = ends, is_added[first]
            features = np.unique(features, axis=0)
        _check_edges(graph, flips, is_added)
        _check_features(graph, features)
        attacked = graph.with_rows(flip_entries(graph.rows, flips))
        return _with_features(attacked, features) if len(features) else attacked

    def save(self, path: PathLike, *, spreadsheet: bool = False) -> None:
        """Write a file that :meth:`load` reads, as a whole or not at all.

        A table (``.csv``, ``.tsv``, ``.txt`` or ``.parquet``) has the columns first, second, change (``add``
        or ``remove``) and target. Only ``.npz`` keeps the name of the attack, budgets, targets without flips,
        and flips of features. With ``spreadsheet``, ids that look like a formula get an apostrophe in front.
        """
        if format_of(path, FORMATS) != ".npz":
            if len(self.feature_flips):
                raise InputError(f"{path} must be an .npz file, since a table holds no flips of features.")
            columns: dict[str, Array | None] = {
                "first": self.node_ids[self.flips[:, 0]],
                "second": self.node_ids[self.flips[:, 1]],
                "change": np.array(CHANGES)[self.is_added.astype(int)],
                "target": None if (self.owners == WHOLE_GRAPH).any() else self.node_ids[self.owners],
            }
            return write_table(path, columns, spreadsheet=spreadsheet)
        about = {"nodecopy": nodecopy.__version__, "attack": self.attack, "together": self.together}
        arrays = {"about": np.array(json.dumps(about))} | {name: getattr(self, name) for name in ARRAYS}
        with atomic_write(path) as temporary, temporary.open("wb") as file:
            np.savez_compressed(file, allow_pickle=False, **arrays)

    @classmethod
    def load(cls, path: PathLike, graph: Graph | None = None) -> Perturbation:
        """Read a file that :meth:`save` wrote, or a table of flips.

        Parameters
        ----------
        path
            An ``.npz`` file, or a table with the columns ``first`` and ``second`` (ids of nodes) and, if
            there are any, ``change`` and ``target``. Flips are made in the order of the rows. The budget of
            a target is the number of its flips.
        graph
            The graph before the attack, which a table needs; not used for ``.npz``.
        """
        if format_of(path, FORMATS) != ".npz":
            if graph is None:
                raise InputError("graph", "must be given to read a table of flips; got None.")
            with reading(path) as name:
                records, targets = _read_flips(name, graph)
            budgets = [sum(edits.owners.count(target) for edits in records) for target in targets.tolist()]
            given = f"flips of {name.name}", graph, targets, budgets, records
            return cls.from_edits(*given, together=len(records) == 1)
        with reading(path) as name, name.open("rb") as file, open_archive(file) as archive:
            if not set(archive.files) >= {"about", *ARRAYS}:
                held = ", ".join(sorted(archive.files)) or "nothing"
                raise InputError(f"the file must hold a perturbation that save() wrote; it holds {held}.")
            about = json.loads(str(archive["about"]))
            arrays = {array: archive[array] for array in ARRAYS}
            check_ids(arrays["node_ids"], "node_ids", len(arrays["node_ids"]))
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

    def __repr__(self) -> str:
        is_global = (self.owners == WHOLE_GRAPH).any()
        scope = "on the whole graph" if is_global else f"on {len(self.targets)} nodes"
        counts = f"{len(self.added)} edges added, {len(self.removed)} removed"
        if len(self.feature_flips):
            counts += f", {len(self.feature_flips)} features flipped"
        lines, ids = [f"{self.attack} {scope}: {counts}"], self.node_ids
        counted = list(zip(self.targets, self.budgets, self.spent, strict=True))
        for target, budget, spent in counted[:MAX_TARGETS_SHOWN]:
            mine, features = self.owners == target, self.feature_flips[self.feature_owners == target]
            flips = zip(self.flips[mine], self.is_added[mine], strict=True)
            changes = [f"{'-+'[int(added)]}{ids[first]}~{ids[second]}" for (first, second), added in flips]
            changes += [f"{ids[node]}#{feature}" for node, feature in features]
            lines.append(f"  {ids[target]}: {spent} of {budget} flips {' '.join(changes)}".rstrip())
        if len(self.targets) > MAX_TARGETS_SHOWN:
            lines.append(f"  and {len(self.targets) - MAX_TARGETS_SHOWN} more")
        return "\n".join(lines)


ARRAYS = tuple(entry.name for entry in fields(Perturbation) if entry.name not in ("attack", "together"))


def _check_edges(graph: Graph, flips: Ints, is_added: Bools) -> None:
    if not len(flips):
        return
    ends = np.sort(flips, axis=1)
    present = np.asarray(graph.adjacency[ends[:, 0], ends[:, 1]]).ravel() > 0
    earlier = np.zeros(len(flips), bool)  # an odd number of earlier flips of the same pair
    times: Counter[tuple[int, ...]] = Counter()
    for position, pair in enumerate(map(tuple, ends.tolist())):
        earlier[position] = times[pair] % 2
        times[pair] += 1
    wrong = (present ^ earlier) == is_added
    if wrong.any():
        first, second = graph.node_ids[flips[wrong][0]].tolist()
        change = "added but is present" if is_added[wrong][0] else "removed but is absent"
        is_applied = 2 * int(wrong.sum()) > len(wrong)
        message = f"must be the one before the attack; the edge {first!r}, {second!r} is to be {change}"
        hint = ", so that it seems to contain the flips already" if is_applied else ""
        raise InputError("graph", f"{message}{hint}.")


def _check_features(graph: Graph, flips: Ints) -> None:
    if not len(flips):
        return
    if graph.features is None:
        raise InputError("graph", "must have the features that were attacked; this one has none.")
    n_features, n_needed = graph.features.shape[1], flips[:, 1].max() + 1
    if n_needed > n_features:
        allowed = f"the features that were attacked, at least {n_needed}"
        raise InputError("graph", f"must have {allowed}; got {n_features}.")
    matrix: Any = graph.features
    values = np.asarray(matrix[tuple(flips.T)]).ravel()
    wrong = (values != 0) & (values != 1)
    if wrong.any():
        (node, feature), value = flips[wrong][0], values[wrong][0]
        where = f"feature {feature} of node {graph.node_ids[node]!s}"
        raise InputError(f"features of the graph that are flipped must be 0 or 1; {where} is {value:g}.")


def _with_features(graph: Graph, flips: Ints) -> Graph:
    """Return the graph with features flipped in turn; one flipped twice stays as it was."""
    distinct, times = np.unique(flips, axis=0, return_counts=True)
    matrix: Any = graph.features
    entries = tuple(distinct[times % 2 == 1].T)
    before = np.asarray(matrix[entries]).ravel()
    after = (before == 0).astype(matrix.dtype)
    if isinstance(graph.features, np.ndarray):
        matrix = matrix.copy()
        matrix[entries] = after
    else:
        matrix = matrix + sparse.csr_array((after - before, entries), shape=matrix.shape)
        matrix.eliminate_zeros()
    return graph.replace(features=matrix)
