"""Splits of nodes; those of interactions are in :mod:`.interaction_splits`."""

from __future__ import annotations

from typing import Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nodecopy._core.random import Rng, generator
from nodecopy._core.validation import check_integer, check_vector
from nodecopy.conversion import convert_graph
from nodecopy.errors import InputError
from nodecopy.graph import UNLABELLED, Graph

T = TypeVar("T")


class Split(NamedTuple, Generic[T]):
    """The training, validation and test parts of a dataset.

    The parts are disjoint, except that the validation part of a published split (:func:`load_split`) is
    inside the training part: settings are chosen with it, and then the model is fitted to all of train.

    Examples
    --------
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
) -> Split[NDArray[np.int64]]:
    """Draw ``per_class`` training nodes of every class, then validation and test nodes from the rest.

    Parameters
    ----------
    labels
        One integer per node, such as ``graph.labels``; nodes with -1 (unknown) are never drawn.
    per_class
        Number of training nodes of each class, 20 by default.
    validation, test
        Numbers of validation and test nodes over all classes, 500 and 1000 by default. Decrease them for
        small graphs.
    rng
        Seed or generator; ``None``, the default, gives another split at every call.

    Returns
    -------
    Split
        Three disjoint arrays of node positions, ascending.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> club = datasets.load("karate")
    >>> split = datasets.label_split(club.labels, 2, validation=5, test=20, rng=0)
    >>> [len(part) for part in split]
    [4, 5, 20]
    """
    if labels is None:
        raise InputError("labels must hold one integer per node; got None (the graph has no labels).")
    codes = check_vector(labels, "labels")
    if codes.dtype.kind not in "iu" or (codes < UNLABELLED).any():
        raise InputError(f"labels must hold integers of at least -1 (unknown); got {codes.dtype} {codes!r}.")
    check_integer(per_class, "per_class", low=1)
    check_integer(validation, "validation", low=0)
    check_integer(test, "test", low=0)
    classes, sizes = np.unique(codes[codes != UNLABELLED], return_counts=True)
    if not len(classes):
        raise InputError("labels must name a class for some nodes; got -1 (unknown) for all of them.")
    if sizes.min() < per_class:
        smallest = f"{sizes.min()}, the nodes of class {classes[sizes.argmin()]}"
        raise InputError(f"per_class must be at most {smallest}; got {per_class}.")
    n_rest = int(sizes.sum()) - per_class * len(classes)
    if validation + test > n_rest:
        raise InputError(
            f"validation + test must be at most {n_rest}, the labelled nodes outside training; "
            f"got {validation} + {test} = {validation + test}."
        )
    draws = generator(rng)
    train = [draws.choice(np.flatnonzero(codes == code), per_class, replace=False) for code in classes]
    outside = codes != UNLABELLED
    outside[np.concatenate(train)] = False
    rest = draws.permutation(np.flatnonzero(outside))
    parts = np.concatenate(train), rest[:validation], rest[validation : validation + test]
    return Split(*(np.sort(part).astype(np.int64) for part in parts))


def without_test_edges(graph: Graph, test: ArrayLike) -> Graph:
    """Return the graph without the edges of test nodes, which are then classified by features alone.

    Parameters
    ----------
    graph
        The graph.
    test
        The test nodes: positions, a boolean mask or (string) node ids.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> club = datasets.load("karate")
    >>> datasets.without_test_edges(club, [33]).n_edges  # member 34 has 17 friends
    61
    """
    graph = convert_graph(graph, "graph")
    hidden = np.zeros(graph.n_nodes, bool)
    hidden[graph.positions(test, "test")] = True
    rows = graph.rows
    return graph.with_rows(rows.keep_entries(~(hidden[rows.row_numbers] | hidden[rows.indices])))
