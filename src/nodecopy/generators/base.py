"""The base class of graph models without training, edge lists, and splits for link prediction."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.random import Generator, SeedSequence
from numpy.typing import ArrayLike
from scipy import sparse

from nodecopy._core.arrays import Array, Floats, Ints, Rows
from nodecopy._core.checks import (
    check_finite,
    check_indices,
    check_integer,
    check_numbers,
    check_real,
    check_type,
    check_vector,
)
from nodecopy._core.random import Rng, generator, seed_sequence
from nodecopy.errors import InputError
from nodecopy.graph import Graph
from nodecopy.io import GraphLike, convert_graph
from nodecopy.models import GraphModel

Nodes = Ints
Edges = tuple[Nodes, Nodes]  # no self-loops, and an undirected edge is listed once
PairArray = Ints  # pairs of nodes as positions, ``[2, n]``, the smaller node first


class EdgeListModel(GraphModel[Graph]):
    """A graph model without training, whose samples are edge lists without weights or self-loops.

    A subclass writes ``_estimate``, which checks settings and sets attributes, and ``_draw_edges``.
    """

    def fit(self, graph: GraphLike, *, rng: Rng = None) -> Self:
        """Estimate the parameters from a graph or any object that :func:`.as_graph` converts.

        Few models use ``rng``.
        """
        graph = convert_graph(graph, f"graph of {type(self).__name__}")
        self._estimate(graph, np.random.default_rng(seed_sequence(rng)))
        self.graph_ = graph
        return self

    def draw(self, seed: SeedSequence) -> Graph:
        return replace_edges(self.graph_, *self._draw_edges(self.graph_, np.random.default_rng(seed)))

    def _check_state(self) -> None:
        self._restore(check_type(self.graph_, Graph, "graph_", "a Graph"))

    def _restore(self, graph: Graph) -> None:
        """Check the fitted attributes of a file; by default, estimate them again."""
        self._estimate(graph, np.random.default_rng(0))

    @abstractmethod
    def _estimate(self, graph: Graph, rng: Generator) -> None:
        """Set the fitted attributes."""

    @abstractmethod
    def _draw_edges(self, graph: Graph, rng: Generator) -> Edges:
        """Return the edges of one sample."""


def check_pairs(first: ArrayLike, second: ArrayLike, n_nodes: int) -> Edges:
    """Return pairs of nodes as arrays of positions."""
    rows = check_indices(first, "first", size=n_nodes)
    columns = check_indices(second, "second", size=n_nodes)
    check_vector(columns, "second", length=len(rows), per="pair")
    return rows, columns


def check_node_rows(values: Any, name: str, n_nodes: int, dtype: Any = np.float64) -> Array:
    """Return a matrix of finite numbers with one row per node."""
    array = check_numbers(values, name).astype(dtype, copy=False)
    if array.ndim != 2 or len(array) != n_nodes:
        raise InputError(name, f"must hold one row for each of {n_nodes} nodes; got shape {array.shape}.")
    check_finite(array, name)
    return array


def list_edges(graph: Graph) -> Edges:
    """Return the edges without self-loops; an undirected edge once, the smaller node first."""
    first, second = graph.rows.row_numbers.astype(np.int64), graph.rows.indices.astype(np.int64)
    selected = first != second if graph.directed else first < second
    return first[selected], second[selected]


def replace_edges(graph: Graph, first: Nodes, second: Nodes, weights: Floats | None = None) -> Graph:
    """Return the graph with other edges, each given once, by default without weights."""
    n_nodes = graph.n_nodes
    data: Any = np.ones(len(first), np.int8) if weights is None else weights
    if not graph.directed:
        first, second = np.concatenate([first, second]), np.concatenate([second, first])
        data = np.concatenate([data, data])
    matrix = sparse.csr_array((data, (first, second)), shape=(n_nodes, n_nodes))
    values: Any = None if weights is None else matrix.data
    return graph.with_rows(Rows.canonical(matrix.indptr, matrix.indices, values, n_nodes))


def binary_adjacency(graph: Graph) -> sparse.csr_array:
    """Return the adjacency matrix without weights, in single precision."""
    rows = graph.rows
    return Rows(rows.indptr, rows.indices, None, rows.n_columns).csr


def remove_duplicates(first: Nodes, second: Nodes, n_nodes: int, directed: bool) -> Edges:
    """Return each pair of different nodes once; pairs are unordered unless ``directed``."""
    if not directed:
        first, second = np.minimum(first, second), np.maximum(first, second)
    codes = sort_unique((first * n_nodes + second)[first != second])
    first, second = np.divmod(codes, max(n_nodes, 1))
    return first, second


def sort_unique(numbers: Nodes) -> Nodes:
    """Return distinct non-negative numbers in ascending order, faster than ``numpy.unique``."""
    numbers = np.sort(numbers)
    return numbers[np.diff(numbers, prepend=-1) > 0]


class HeldOutEdges(NamedTuple):
    """Held-out edges and as many pairs that are not edges, each ``[2, n]``: positions, smaller node first."""

    edges: PairArray
    non_edges: PairArray


class EdgeSplit(NamedTuple):
    """The graph of the training edges, and the held-out edges for validation and test."""

    train: Graph
    validation: HeldOutEdges
    test: HeldOutEdges


def split_edges(
    graph: GraphLike, *, validation: float = 0.05, test: float = 0.10, rng: Rng = None
) -> EdgeSplit:
    """Hold out random edges and draw as many pairs that are not edges of the whole graph.

    All pairs are distinct. Directions are ignored.

    Parameters
    ----------
    graph
        A graph, or any object that :func:`.as_graph` converts.
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
        raise InputError("validation + test of split_edges", f"must be at most 1; got {validation + test:g}.")
    graph, random = graph.undirected(), generator(rng)
    # Rounded first, because 0.05 x 60 may be slightly less than 3 in binary.
    cuts = np.cumsum([int(round(share * graph.n_edges, 6)) for share in (validation, test)])
    edges = np.stack(list_edges(graph))
    held_out = edges[:, random.permutation(graph.n_edges)[: cuts[1]]]
    non_edges = sample_non_edges(graph, int(cuts[1]), rng=random)
    ends = np.sort(np.stack([graph.rows.row_numbers, graph.rows.indices]).astype(np.int64), axis=0)
    codes, removed = (_encode_pairs(first, second, graph.n_nodes) for first, second in (ends, held_out))
    train = graph.with_rows(graph.rows.keep_entries(~np.isin(codes, removed)))
    parts = slice(0, cuts[0]), slice(cuts[0], cuts[1])
    return EdgeSplit(train, *(HeldOutEdges(held_out[:, part], non_edges[:, part]) for part in parts))


def sample_non_edges(graph: Graph, size: int, *, rng: Rng = None) -> PairArray:
    """Draw distinct pairs of different nodes without an edge, uniformly, ``[2, size]``."""
    n_nodes = graph.n_nodes
    n_non_edges = n_nodes * (n_nodes - 1) // 2 - graph.n_edges
    limit = "pairs without an edge"
    check_integer(size, "size of sample_non_edges", low=0, high=n_non_edges, high_name=limit)
    codes = _encode_pairs(*list_edges(graph), n_nodes)
    ranks = generator(rng).choice(n_non_edges, size, replace=False) if size else np.zeros(0, np.int64)
    return decode_pairs(ranks + np.searchsorted(codes - np.arange(len(codes)), ranks, side="right"), n_nodes)


def decode_pairs(codes: Nodes, n_nodes: int) -> PairArray:
    """Return the pairs with these numbers, where all pairs i < j are numbered row by row from 0."""
    rows = np.arange(n_nodes)
    first = np.searchsorted(_encode_pairs(rows, rows + 1, n_nodes), codes, side="right") - 1
    return np.stack([first, codes - _encode_pairs(first, first + 1, n_nodes) + first + 1])


def _encode_pairs(first: Nodes, second: Nodes, n_nodes: int) -> Nodes:
    return first * (2 * n_nodes - first - 1) // 2 + second - first - 1
