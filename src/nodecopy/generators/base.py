"""Shared parts of graph models: the base class of models of edge lists, conversions, and blocks of nodes."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.random import Generator, SeedSequence
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from nodecopy._core.csr import Rows
from nodecopy._core.random import Rng, seed_sequence
from nodecopy._core.validation import check_finite, check_indices, check_numbers, check_type, check_vector
from nodecopy.conversion import GraphLike, convert_graph
from nodecopy.errors import InputError
from nodecopy.graph import UNLABELLED, Graph
from nodecopy.models import GraphModel

Nodes: TypeAlias = NDArray[np.int64]
Edges: TypeAlias = tuple[Nodes, Nodes]
"""The two nodes of each edge. No self-loops, and an undirected edge is listed once."""

MAX_PROPAGATION_STEPS = 30


class EdgeListModel(GraphModel[Graph]):
    """A graph model whose parameters are estimated without training and whose samples are edge lists.

    Samples have no weights and are directed if the observed graph is. Self-loops are ignored. A subclass
    writes ``_estimate``, which checks the settings and sets the fitted attributes, and ``_draw_edges``, which
    returns the edges of one sample in any order.
    """

    def fit(self, graph: GraphLike, *, rng: Rng = None) -> Self:
        """Estimate the parameters of the model from a graph.

        Parameters
        ----------
        graph
            The observed graph, or what :func:`.as_graph` converts.
        rng
            Seed or generator, used only by models that assign nodes to blocks or draw batches of nodes.
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
        """Check the fitted attributes of a file; by default they are estimated again, which draws nothing."""
        self._estimate(graph, np.random.default_rng(0))

    @abstractmethod
    def _estimate(self, graph: Graph, rng: Generator) -> None:
        """Set the fitted attributes."""

    @abstractmethod
    def _draw_edges(self, graph: Graph, rng: Generator) -> Edges:
        """Return the edges of one sample."""


def check_pairs(first: ArrayLike, second: ArrayLike, n_nodes: int) -> Edges:
    """Return pairs of nodes as arrays of positions, one pair per entry, after checking them."""
    rows = check_indices(first, "first", size=n_nodes)
    columns = check_indices(second, "second", size=n_nodes)
    check_vector(columns, "second", length=len(rows), per="pair")
    return rows, columns


def check_node_rows(values: Any, name: str, n_nodes: int, dtype: Any = np.float64) -> NDArray[Any]:
    """Return a matrix of a file, of finite numbers with one row per node, in one type."""
    array = check_numbers(values, name).astype(dtype, copy=False)
    if array.ndim != 2 or len(array) != n_nodes:
        raise InputError(f"{name} must hold one row for each of {n_nodes} nodes; got shape {array.shape}.")
    check_finite(array, name)
    return array


def check_blocks(values: Any, graph: Graph) -> Nodes:
    """Return the block of each node after checking the numbers of a file."""
    blocks = check_vector(values, "blocks_", length=graph.n_nodes)
    return check_indices(blocks, "blocks_", size=graph.n_nodes)


def list_edges(graph: Graph) -> Edges:
    """Return the edges of a graph, without self-loops; an undirected edge once, the smaller node first."""
    first, second = graph.rows.row_numbers.astype(np.int64), graph.rows.indices.astype(np.int64)
    selected = first != second if graph.directed else first < second
    return first[selected], second[selected]


def replace_edges(graph: Graph, first: Nodes, second: Nodes) -> Graph:
    """Return the graph with other edges, without weights; each edge is given once."""
    n_nodes = graph.n_nodes
    if not graph.directed:
        first, second = np.concatenate([first, second]), np.concatenate([second, first])
    ones = np.ones(len(first), np.int8)
    matrix = sparse.csr_array((ones, (first, second)), shape=(n_nodes, n_nodes))
    return graph.with_rows(Rows.canonical(matrix.indptr, matrix.indices, None, n_nodes))


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
    """Return the distinct non-negative numbers in ascending order.

    This is several times as fast as ``numpy.unique``, which hashes.
    """
    numbers = np.sort(numbers)
    return numbers[np.diff(numbers, prepend=-1) > 0]


def assign_blocks(graph: Graph, rng: Generator) -> Nodes:
    """Return the block of each node, numbered 0, 1, 2, ...: its label, or one from label propagation.

    A node without a label repeatedly takes the most common label among its neighbours; ties are broken at
    random. If the graph has no labels, every node starts with a label of its own, so that the blocks are
    communities. Nodes that no label reaches form the last block.
    """
    n_nodes = graph.n_nodes
    observed = np.full(n_nodes, UNLABELLED) if graph.labels is None else graph.labels
    names, labels = np.unique(observed, return_inverse=True)
    fixed = observed != UNLABELLED
    # Renumber the labels to 0, 1, 2, ..., with the code for "unlabelled" last.
    labels = (labels - (names[:1] == UNLABELLED).sum()) % max(len(names), 1)
    if not fixed.any():
        names, labels = np.arange(n_nodes + 1), np.arange(n_nodes)
    unlabelled = len(names) - 1 if not fixed.all() else len(names)
    first, second = list_edges(graph)
    first, second = np.concatenate([first, second]), np.concatenate([second, first])
    for _ in range(MAX_PROPAGATION_STEPS * (not fixed.all())):
        proposed = _most_common_labels(labels, first, second, unlabelled, rng)
        # Only half of the nodes change at a time; otherwise two neighbours could swap labels forever.
        changed = ~fixed & (proposed != unlabelled) & (rng.random(n_nodes) < 0.5)
        labels = np.where(changed, proposed, labels)
    return np.unique(labels, return_inverse=True)[1].astype(np.int64)


def _most_common_labels(labels: Nodes, first: Nodes, second: Nodes, unlabelled: int, rng: Generator) -> Nodes:
    """Return the most common label among each node's neighbours, or ``unlabelled`` if none has a label."""
    votes = labels[second] != unlabelled
    codes, counts = np.unique(first[votes] * (unlabelled + 1) + labels[second[votes]], return_counts=True)
    nodes, candidates = np.divmod(codes, unlabelled + 1)
    order = np.lexsort((rng.random(len(counts)), counts, nodes))
    result = np.full(len(labels), unlabelled)
    result[nodes[order]] = candidates[order]  # the last assignment to a node is its most frequent label
    return result
