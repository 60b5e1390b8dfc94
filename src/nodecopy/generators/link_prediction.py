"""Splits of a graph for link prediction: training edges, held-out edges and pairs that are not edges."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from nodecopy._core.random import Rng, generator
from nodecopy._core.validation import check_integer, check_real
from nodecopy.conversion import GraphLike, convert_graph
from nodecopy.errors import InputError
from nodecopy.generators.base import Nodes, list_edges
from nodecopy.graph import Graph

PairArray: TypeAlias = NDArray[np.int64]
"""Pairs of nodes as positions, ``[2, n]``, the smaller node first."""


class HeldOutEdges(NamedTuple):
    """Held-out edges and as many pairs that are not edges, each ``[2, n]``: positions, smaller node first.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.generators import split_edges
    >>> test = split_edges(datasets.load("karate"), rng=0).test
    >>> test.edges.shape, test.non_edges.shape
    ((2, 7), (2, 7))
    """

    edges: PairArray
    non_edges: PairArray


class EdgeSplit(NamedTuple):
    """The graph of the training edges, and the held-out edges for validation and for the test.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.generators import split_edges
    >>> split_edges(datasets.load("karate"), rng=0).train.n_edges
    68
    """

    train: Graph
    validation: HeldOutEdges
    test: HeldOutEdges


def split_edges(
    graph: GraphLike, *, validation: float = 0.05, test: float = 0.10, rng: Rng = None
) -> EdgeSplit:
    """Hold out random edges and draw as many pairs that are not edges of the whole graph.

    All pairs are distinct. In the code of Kipf and Welling, in contrast, a non-edge of the validation set may
    be an edge of the test set. Directions are ignored.

    Parameters
    ----------
    graph
        The whole graph, or what :func:`.as_graph` converts.
    validation, test
        Shares of the edges to hold out, rounded down to whole edges.
    rng
        Seed or generator.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.generators import split_edges
    >>> split = split_edges(datasets.load("karate"), test=0.2, rng=0)
    >>> split.train.n_edges, split.validation.edges.shape[1], split.test.non_edges.shape[1]
    (60, 3, 15)
    """
    graph = convert_graph(graph, "graph of split_edges")
    check_real(validation, "validation of split_edges", low=0.0, high=1.0)
    check_real(test, "test of split_edges", low=0.0, high=1.0)
    if validation + test > 1:
        raise InputError(
            f"validation + test of split_edges must be at most 1; got {validation:g} + {test:g}."
        )
    graph, random = graph.undirected(), generator(rng)
    first, second = graph.rows.row_numbers.astype(np.int64), graph.rows.indices.astype(np.int64)
    # Rounded first, because 0.05 x 60 may be slightly less than 3 in binary.
    cuts = np.cumsum([int(round(share * graph.n_edges, 6)) for share in (validation, test)])
    edges = np.stack(list_edges(graph))
    held_out = edges[:, random.permutation(graph.n_edges)[: cuts[1]]]
    non_edges = sample_non_edges(graph, int(cuts[1]), rng=random)
    codes = _encode_pairs(np.minimum(first, second), np.maximum(first, second), graph.n_nodes)
    matrix = graph.adjacency.copy()
    held_out_codes = _encode_pairs(held_out[0], held_out[1], graph.n_nodes)
    matrix.data = np.where(np.isin(codes, held_out_codes), 0, matrix.data)
    parts = slice(0, cuts[0]), slice(cuts[0], cuts[1])
    sets = [HeldOutEdges(held_out[:, part], non_edges[:, part]) for part in parts]
    return EdgeSplit(graph.replace(adjacency=matrix), *sets)


def sample_non_edges(graph: Graph, size: int, *, rng: Rng = None) -> PairArray:
    """Draw distinct pairs of different nodes without an edge, uniformly, ``[2, size]``.

    Pairs are numbered row by row. The k-th pair without an edge is located by counting the edges before
    it, so a dense graph takes no more time than a sparse one.
    """
    n_nodes = graph.n_nodes
    n_non_edges = n_nodes * (n_nodes - 1) // 2 - graph.n_edges
    check_integer(
        size, "size of sample_non_edges", low=0, high=n_non_edges, high_name="pairs without an edge"
    )
    codes = _encode_pairs(*list_edges(graph), n_nodes)
    ranks = generator(rng).choice(n_non_edges, size, replace=False) if size else np.zeros(0, np.int64)
    return decode_pairs(ranks + np.searchsorted(codes - np.arange(len(codes)), ranks, side="right"), n_nodes)


def decode_pairs(codes: Nodes, n_nodes: int) -> PairArray:
    """Return the pairs with these numbers, where all pairs i < j are numbered row by row from 0."""
    rows = np.arange(n_nodes)
    first = np.searchsorted(_encode_pairs(rows, rows + 1, n_nodes), codes, side="right") - 1
    return np.stack([first, codes - _encode_pairs(first, first + 1, n_nodes) + first + 1])


def _encode_pairs(first: Nodes, second: Nodes, n_nodes: int) -> Nodes:
    """Return the numbers of pairs with first < second, row by row from 0."""
    return first * (2 * n_nodes - first - 1) // 2 + second - first - 1
