"""Link prediction: hide some edges, then tell them from pairs that never were edges."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nodecopy._core.random import Rng, generator
from nodecopy._core.validation import check_integer, check_real
from nodecopy.errors import InputError
from nodecopy.generators.base import pairs_of
from nodecopy.graph import Graph

Pairs = NDArray[np.int64]


class Links(NamedTuple):
    """As many edges as other pairs, each ``[2, size]``: node numbers, the smaller one first.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.generators import link_split
    >>> hidden = link_split(datasets.load("karate"), rng=0).test
    >>> hidden.edges.shape, hidden.non_edges.shape
    ((2, 7), (2, 7))
    """

    edges: Pairs
    non_edges: Pairs


class LinkSplit(NamedTuple):
    """The graph that is left to learn from, and what to choose by and to report on.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.generators import link_split
    >>> link_split(datasets.load("karate"), rng=0).train.n_edges
    68
    """

    train: Graph
    validation: Links
    test: Links


def link_split(graph: Graph, *, validation: float = 0.05, test: float = 0.10, rng: Rng) -> LinkSplit:
    """Hide random edges and draw as many pairs that are no edges of the whole graph.

    All pairs are distinct: unlike in the code of Kipf and Welling, no pair that counts as no edge in
    validation is an edge in the test. Directions are not used.

    Parameters
    ----------
    graph
        The whole graph.
    validation, test
        Share of the edges that each hides, rounded down.
    rng
        Seed or generator.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.generators import link_split
    >>> split = link_split(datasets.load("karate"), test=0.2, rng=0)
    >>> split.train.n_edges, split.validation.edges.shape[1], split.test.non_edges.shape[1]
    (60, 3, 15)
    """
    check_real(validation, "validation of link_split", low=0.0, high=1.0)
    check_real(test, "test of link_split", low=0.0, high=1.0)
    if validation + test > 1:
        raise InputError(f"validation + test of link_split must be at most 1; got {validation:g} + {test:g}.")
    graph, draws = graph.undirected(), generator(rng)
    first, second = graph.rows.row_numbers.astype(np.int64), graph.rows.indices.astype(np.int64)
    # Rounded first, since 0.05 x 60 may be a little below 3 in binary.
    cuts = np.cumsum([int(round(share * graph.n_edges, 6)) for share in (validation, test)])
    edges = np.stack(pairs_of(graph))
    hidden = edges[:, draws.permutation(graph.n_edges)[: cuts[1]]]
    others = non_edges(graph, int(cuts[1]), rng=draws)
    numbers = _number(np.minimum(first, second), np.maximum(first, second), graph.n_nodes)
    matrix = graph.adjacency.copy()
    matrix.data = np.where(np.isin(numbers, _number(hidden[0], hidden[1], graph.n_nodes)), 0, matrix.data)
    parts = [Links(hidden[:, part], others[:, part]) for part in (slice(0, cuts[0]), slice(cuts[0], cuts[1]))]
    return LinkSplit(graph.replace(adjacency=matrix), *parts)


def non_edges(graph: Graph, size: int, *, rng: Rng) -> Pairs:
    """Distinct pairs of different nodes without an edge, uniform among all, ``[2, size]``.

    Pairs are numbered row by row; the k-th of those that are no edges is found by counting the edges
    before it, so a dense graph costs no more than a sparse one.
    """
    n_nodes = graph.n_nodes
    n_others = n_nodes * (n_nodes - 1) // 2 - graph.n_edges
    check_integer(size, "size of non_edges", low=0, high=n_others, high_name="pairs without an edge")
    taken = _number(*pairs_of(graph), n_nodes)
    drawn = generator(rng).choice(n_others, size, replace=False) if size else np.zeros(0, np.int64)
    return numbered_pairs(
        drawn + np.searchsorted(taken - np.arange(len(taken)), drawn, side="right"), n_nodes
    )


def numbered_pairs(numbers: NDArray[np.int64], n_nodes: int) -> Pairs:
    """The pairs with these numbers, when all pairs i < j are numbered row by row from 0."""
    rows = np.arange(n_nodes)
    first = np.searchsorted(_number(rows, rows + 1, n_nodes), numbers, side="right") - 1
    return np.stack([first, numbers - _number(first, first + 1, n_nodes) + first + 1])


def _number(first: Pairs, second: Pairs, n_nodes: int) -> Pairs:
    """Pairs with first < second, numbered row by row from 0."""
    return first * (2 * n_nodes - first - 1) // 2 + second - first - 1
