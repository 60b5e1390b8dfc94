"""Splits of nodes by label, and of interactions at random, by time, by user, or as published."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import chain
from os.path import exists
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from nodecopy._core.arrays import Array, IntArray, Ints
from nodecopy._core.checks import check_integer, check_sequence, check_type, check_vector, show
from nodecopy._core.files import TableLike, is_frame
from nodecopy._core.messages import log_decision, warn_about_data
from nodecopy._core.random import Rng, generator
from nodecopy.errors import InputError
from nodecopy.graph import UNLABELLED, Graph, encode_labels
from nodecopy.interactions import Interactions
from nodecopy.io import InteractionsLike, convert_graph, convert_interactions, read_interactions
from nodecopy.io.graphs import holds_item_lists

T = TypeVar("T")
HISTORY_SHARE = 0.8  # interactions of users outside training that are their history
VALIDATION_SHARE = 0.1  # share of train that is the validation part of a published split without one


class Split(NamedTuple, Generic[T]):
    """The training, validation and test parts of a dataset.

    The validation part of a published split (:func:`load_split`) is inside the training part.

    >>> from nodecopy import datasets
    >>> split = datasets.Split([0, 1], [2], [3])
    >>> split.test, list(split)
    ([3], [[0, 1], [2], [3]])
    """

    train: T
    validation: T
    test: T


def label_split(
    labels: ArrayLike | None, per_class: int = 20, validation: int = 500, test: int = 1000, *, rng: Rng = None
) -> Split[Ints]:
    """Draw ``per_class`` training nodes of every class, then validation and test nodes from the rest.

    The parts are disjoint arrays of node positions, ascending.

    Parameters
    ----------
    labels
        One label per node, such as ``graph.labels``; unlabelled nodes (-1 or empty) are never drawn.
    per_class, validation, test
        Number of training nodes of each class, and numbers of validation and test nodes.
    rng
        Seed or generator; ``None``, the default, gives another split at every call.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> club = datasets.load("karate")
    >>> split = datasets.label_split(club.labels, 2, validation=5, test=20, rng=0)
    >>> [len(part) for part in split]
    [4, 5, 20]
    """
    codes, names = encode_labels(labels)
    if codes is None:
        raise InputError("labels", "must hold one label per node; got None (the graph has no labels).")
    for name, value, low in (("per_class", per_class, 1), ("validation", validation, 0), ("test", test, 0)):
        check_integer(value, name, low=low)
    labelled = np.flatnonzero(codes != UNLABELLED)
    classes, sizes = np.unique(codes[labelled], return_counts=True)
    if not len(classes):
        raise InputError(
            "labels", "must name a class for some nodes; got none (-1 or empty) for all of them."
        )
    if sizes.min() < per_class:
        code = classes[sizes.argmin()]
        smallest = f"{sizes.min()}, the nodes of class {code if names is None else names[code]}"
        raise InputError("per_class", f"must be at most {smallest}; got {per_class}.")
    n_rest = len(labelled) - per_class * len(classes)
    if (n_held_out := validation + test) > n_rest:
        limit = f"{n_rest}, the labelled nodes outside training"
        raise InputError("validation + test", f"must be at most {limit}; got {n_held_out}.")
    draws = generator(rng)
    drawn = [draws.choice(np.flatnonzero(codes == code), per_class, replace=False) for code in classes]
    train = np.concatenate(drawn)
    rest = draws.permutation(np.setdiff1d(labelled, train))
    parts = train, rest[:validation], rest[validation : validation + test]
    return Split(*(np.sort(part).astype(np.int64) for part in parts))


def without_test_edges(graph: Graph, test: ArrayLike) -> Graph:
    """Return the graph without the edges of test nodes, which are then classified by features alone.

    ``test`` holds the positions of the test nodes, a boolean mask or (string) node ids.

    >>> from nodecopy import datasets
    >>> club = datasets.load("karate")
    >>> datasets.without_test_edges(club, [33]).n_edges  # member 34 has 17 friends
    61
    """
    graph = convert_graph(graph, "graph")
    rows, hidden = graph.rows, np.zeros(graph.n_nodes, bool)
    hidden[graph.positions(test, "test")] = True
    return graph.with_rows(rows.keep_entries(~(hidden[rows.row_numbers] | hidden[rows.indices])))


def interaction_split(
    interactions: InteractionsLike, fractions: Sequence[float] = (0.7, 0.1, 0.2), *, rng: Rng = None
) -> Split[Interactions]:
    """Split the interactions at random into three tables of the same users and items.

    Parameters
    ----------
    interactions
        What to split, or what :func:`.as_interactions` converts.
    fractions
        Shares of the training, validation and test part, which add up to 1; bounds are rounded down.
    rng
        As in :func:`label_split`.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> library = datasets.load("library")
    >>> [part.n_interactions for part in datasets.interaction_split(library, rng=0)]
    [2358, 337, 674]
    """
    interactions = convert_interactions(interactions, "interactions")
    n = interactions.n_interactions
    part_of = np.empty(n, np.int64)
    numbers = np.searchsorted(_part_bounds(fractions, n), np.arange(n), side="right")
    part_of[generator(rng).permutation(n)] = numbers
    return _select_parts(interactions, part_of)


def time_split(
    interactions: InteractionsLike, fractions: Sequence[float] = (0.7, 0.1, 0.2)
) -> Split[Interactions]:
    """Split the interactions by time: the first ones are the training part, the last ones the test part.

    Parameters are those of :func:`interaction_split`. Interactions at the same time are in the same part, the
    later one, and repeated ones of a user with an item count at their first time. Users and items of the test
    part may have no interactions in the training part.

    >>> from nodecopy import Interactions, datasets
    >>> log = Interactions.from_table(["ann"] * 4, ["tea", "jam", "ham", "rye"], times=[3, 1, 4, 2])
    >>> train, validation, test = datasets.time_split(log, (0.5, 0.25, 0.25))
    >>> test.table()[1].tolist()
    ['ham']
    """
    interactions = convert_interactions(interactions, "interactions")
    times = _check_times(interactions, "time_split")
    ascending, bounds = np.sort(times), _part_bounds(fractions, len(times))
    part_of = np.zeros(len(times), np.int64)
    for bound in bounds[bounds < len(times)].tolist():
        part_of += times >= ascending[bound]
    parts = _select_parts(interactions, part_of)
    if not parts.train.n_interactions:
        n_first = (times == ascending[0]).sum()
        raise InputError("times", f"must leave a training part; {n_first} interactions have the first time.")
    return parts


def last_item_split(
    interactions: InteractionsLike, n_test: int = 1, n_validation: int = 1
) -> Split[Interactions]:
    """Split off the last interactions of each user: leave-last-out, as in sequential recommendation.

    The last ``n_test`` interactions of each user are in the test part, ``n_validation`` before them in the
    validation part. Users with no more interactions than these are in the training part only. Ties in time go
    by the order of ``item_ids``.

    >>> from nodecopy import Interactions, datasets
    >>> log = Interactions.from_table(["ann"] * 3 + ["bob"], ["tea", "jam", "ham", "tea"], times=[3, 1, 2, 1])
    >>> [part.table()[1].tolist() for part in datasets.last_item_split(log)]
    [['jam', 'tea'], ['ham'], ['tea']]
    """
    interactions = convert_interactions(interactions, "interactions")
    times = _check_times(interactions, "last_item_split")
    check_integer(n_test, "n_test", low=1)
    check_integer(n_validation, "n_validation", low=0)
    rows = interactions.rows
    order = np.lexsort((times, rows.row_numbers))  # users stay in their order
    n_after = np.empty(len(times), np.int64)
    n_after[order] = rows.indptr[1:][rows.row_numbers] - 1 - np.arange(len(times))
    part_of = np.where(n_after < n_test, 2, np.where(n_after < n_test + n_validation, 1, 0))
    part_of[rows.degrees[rows.row_numbers] <= n_test + n_validation] = 0
    return _select_parts(interactions, part_of)


class HeldOutUsers(NamedTuple):
    """Users outside training: interactions that a model is given, and those that it should recommend."""

    history: Interactions
    test: Interactions


class UserSplit(NamedTuple):
    """A training part, and users outside it for validation and test."""

    train: Interactions
    validation: HeldOutUsers
    test: HeldOutUsers


def user_split(
    interactions: InteractionsLike, fractions: Sequence[float] = (0.8, 0.1, 0.1), *, rng: Rng = None
) -> UserSplit:
    """Split the users at random, to evaluate on users outside training (strong generalisation).

    All tables have all items. A model fitted to ``train`` gets the histories of the other users, 80 % of
    their interactions: ``model.evaluate(split.test.test, history=split.test.history)``. At least one is in
    the history, and at least one of several is not.

    Parameters
    ----------
    interactions, fractions, rng
        As in :func:`interaction_split`; the fractions are shares of the users.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> split = datasets.user_split(datasets.load("library"), (0.7, 0.1, 0.2), rng=0)
    >>> split.train.n_users, split.validation.test.n_users, split.test.test.n_users
    (210, 30, 60)
    """
    interactions = convert_interactions(interactions, "interactions")
    n_users, rows, draws = interactions.n_users, interactions.rows, generator(rng)
    order, bounds = draws.permutation(n_users), _part_bounds(fractions, n_users)
    # The random rank of each interaction among those of its user.
    shuffled = np.lexsort((draws.random(rows.n_entries), rows.row_numbers))
    rank = np.empty(rows.n_entries, np.int64)
    rank[shuffled] = np.arange(rows.n_entries) - rows.indptr[rows.row_numbers]
    degrees = rows.degrees[rows.row_numbers]
    n_history = np.clip(np.round(HISTORY_SHARE * degrees), 1, np.maximum(degrees - 1, 1))
    seen, hidden = interactions.select(rank < n_history), interactions.select(rank >= n_history)
    train, *others = (np.sort(part) for part in np.split(order, bounds))
    return UserSplit(
        _select_users(interactions, train),
        *(HeldOutUsers(_select_users(seen, users), _select_users(hidden, users)) for users in others),
    )


def fixed_split(
    train: Interactions, test: Interactions, validation: Interactions | None = None
) -> Split[Interactions]:
    """Return a published split after a check of its parts.

    Parameters
    ----------
    train, test
        Tables of the same users and items without a pair in common.
    validation
        A part of ``train``. Without it, a tenth of ``train`` is drawn with seed 0.

    Examples
    --------
    >>> from nodecopy import Interactions, datasets
    >>> train, test = Interactions([[1, 1, 0], [0, 1, 1]]), Interactions([[0, 0, 1], [1, 0, 0]])
    >>> datasets.fixed_split(train, test, Interactions([[1, 0, 0], [0, 0, 0]])).validation.n_interactions
    1
    """
    check_type(train, Interactions, "train", "Interactions (read_split takes data frames)")
    train.check_same_ids(test, "test")
    _check_disjoint(test, train, "test", "train")
    if validation is None:
        shares = (1 - VALIDATION_SHARE, VALIDATION_SHARE, 0.0)
        return Split(train, interaction_split(train, shares, rng=0).validation, test)
    train.check_same_ids(validation, "validation")
    if n_outside := validation.difference(train).n_interactions:
        way_out = "Add them by train.union(validation)"
        raise InputError("validation", f"must be inside train; {n_outside} pairs are not. {way_out}.")
    return Split(train, validation, test)


def _check_disjoint(part: Interactions, other: Interactions, name: str, other_name: str) -> None:
    if n_shared := part.n_interactions - part.difference(other).n_interactions:
        way_out = f"{name}.difference({other_name}) leaves them out"
        raise InputError(name, f"must have no pair in common with {other_name}; got {n_shared}. {way_out}.")


def _part_bounds(fractions: Sequence[float], n: int) -> IntArray:
    shares = check_vector(fractions, "fractions", length=3, per="part")
    if shares.dtype.kind not in "iuf" or not (shares >= 0).all() or abs(shares.sum() - 1) > 1e-9:
        raise InputError("fractions", f"must be three shares that add up to 1; got {show(fractions)}.")
    # Rounded first, because 0.7 + 0.1 is a little below 0.8 in binary.
    return np.floor(np.round(np.cumsum(shares)[:2] * n, 6)).astype(np.int64)


def _check_times(interactions: Interactions, name: str) -> Array:
    if interactions.times is None or not interactions.n_interactions:
        raise InputError(f"{name} needs interactions with times (time of read_interactions); got none.")
    return interactions.times


def _select_parts(interactions: Interactions, part_of: IntArray) -> Split[Interactions]:
    return Split(*(interactions.select(part_of == part) for part in range(3)))


def _select_users(interactions: Interactions, users: IntArray) -> Interactions:
    part = interactions.select(np.isin(interactions.rows.row_numbers, users))
    return Interactions(part.matrix[users], part.user_ids[users], part.item_ids, part.times)


def read_split(
    train: TableLike | Sequence[TableLike],
    test: TableLike,
    validation: TableLike | None = None,
    **options: Any,
) -> Split[Interactions]:
    r"""Return the split whose parts are in files, in the order of all users and items.

    Parameters
    ----------
    train, test
        Files or data frames; several training files are pooled.
    validation
        A part of ``train``, or disjoint from it, as in RecBole's files, and then added to it. Without it, a
        tenth of ``train`` is drawn with seed 0.
    options
        Parameters of :func:`.read_interactions`, which reads the files.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from pathlib import Path
    >>> from nodecopy import datasets
    >>> with TemporaryDirectory() as folder:
    ...     train, test = Path(folder, "train.txt"), Path(folder, "test.txt")
    ...     _ = train.write_text("0 3 4 5\n1 3\n"), test.write_text("0 6\n1 4 5\n")
    ...     datasets.read_split(train, test).test
    Interactions(2 users, 4 items, 3 interactions, binary)
    """
    several: Any = [train] if isinstance(train, (str, os.PathLike)) or is_frame(train) else train
    several = check_sequence(several, "train", "a file, a data frame or a list of them")
    if not several:
        raise InputError("train", "must name at least one file; got none.")
    files = {"train": several, "test": [test], "validation": [] if validation is None else [validation]}
    has_lists = options.get("lists") is None and any(map(_holds_lists, chain(*files.values())))

    def read(file: TableLike) -> Interactions:
        # Lines of equal length could be rows of a table, but not in a split with lists of items.
        is_list = has_lists and _holds_lists(file, any_length=True)
        return read_interactions(file, **(options | {"lists": True} if is_list else options))

    parts = {name: [read(file) for file in group] for name, group in files.items() if group}
    tables = list(chain(*parts.values()))
    user_ids = _join_ids([table.user_ids for table in tables])
    item_ids = _join_ids([table.item_ids for table in tables])
    joined = {}
    for name, group in parts.items():
        columns = [table.table() for table in group]
        users = np.concatenate([column.astype(user_ids.dtype) for column, _, _ in columns])
        items = np.concatenate([column.astype(item_ids.dtype) for _, column, _ in columns])
        joined[name] = Interactions.from_table(users, items, user_ids=user_ids, item_ids=item_ids)
    _warn_if_disjoint(joined["train"], joined["test"])
    if validation is not None:
        held_out = joined["validation"]
        _check_disjoint(held_out, joined["test"], "validation", "test")
        if held_out.difference(joined["train"]) == held_out:
            joined["train"] = joined["train"].union(held_out)
            log_decision("the validation part is outside the training part and was added to it.")
    return fixed_split(**joined)


def _warn_if_disjoint(train: Interactions, test: Interactions) -> None:
    for name, axis in (("users", 1), ("items", 0)):
        is_shared = (train.rows.csr.sum(axis=axis) > 0) & (test.rows.csr.sum(axis=axis) > 0)
        if test.n_interactions and train.n_interactions and not is_shared.any():
            way_out = "Check that files write ids the same way"
            warn_about_data(f"test: none of its {name} are in train. {way_out}.")


def _holds_lists(file: TableLike, *, any_length: bool = False) -> bool:
    if not isinstance(file, (str, os.PathLike)):
        return False
    path = Path(file)
    is_text = exists(path) and path.is_file() and ".txt" in path.suffixes
    return is_text and holds_item_lists(path, any_length=any_length)


def _join_ids(ids: Sequence[Array]) -> Array:
    has_texts = any(part.dtype.kind == "U" for part in ids if part.size)
    return np.unique(np.concatenate([part.astype(str) if has_texts else part for part in ids]))


def cross_validation_folds(labels: Ints, n_folds: int, rng: Generator) -> list[Ints]:
    """Return the test nodes of each fold, which leave others of every class."""
    folds: list[list[int]] = [[] for _ in range(n_folds)]
    n_tested = 0
    for code in np.unique(labels[labels != UNLABELLED]):
        nodes = rng.permutation(np.flatnonzero(labels == code))
        for node in nodes.tolist() if len(nodes) > 1 else []:
            folds[n_tested % n_folds].append(node)
            n_tested += 1
    return [np.sort(np.array(fold, np.int64)) for fold in folds if fold]


def hold_out(labels: Ints, share: float, rng: Generator) -> Ints:
    """Return a share of the labelled nodes of each class, which leaves at least one."""
    parts = [np.zeros(0, np.int64)]
    for code in np.unique(labels[labels != UNLABELLED]):
        nodes = rng.permutation(np.flatnonzero(labels == code))
        parts.append(nodes[: min(round(share * len(nodes)), len(nodes) - 1)])
    return np.sort(np.concatenate(parts))
