"""Donor rules for several graphs that are stored as one, as loaders of graphs batch them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from nodecopy._core.arrays import Rows, freeze, index_dtype
from nodecopy._core.checks import check_vector, show
from nodecopy._core.estimator import Configurable
from nodecopy.copying.distributions import DonorDistribution, DonorLists, DonorRows
from nodecopy.copying.donors import (
    Balanced,
    DonorRule,
    check_rule,
    crosses_components,
    group_labels,
    reads_edges,
    restrict_rule,
)
from nodecopy.errors import InputError
from nodecopy.graph import Graph


@dataclass(eq=False)
class WithinGraphs(Configurable):
    """Draw the donors of each graph of a batch from that graph, as if it were fitted alone.

    Parameters
    ----------
    donors
        The donor rule of every graph. Its values per node (labels, embeddings, similarities) are those of all
        nodes of the batch, or of one graph if all have the same nodes. Of :class:`.NearestNeighbours`, a
        graph with too few nodes takes all of them as donors.
    sizes
        Number of nodes of each graph, in the order in which the graphs are stored.

    Examples
    --------
    >>> from nodecopy import Graph, SameLabel
    >>> two_pairs = Graph.from_edges([0, 2], [1, 3], labels=[0, 0, 0, 0])
    >>> WithinGraphs(SameLabel(), [2, 2]).fit(two_pairs).probabilities().toarray().tolist()
    [[0.5, 0.5, 0.0, 0.0], [0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 0.5, 0.5], [0.0, 0.0, 0.5, 0.5]]
    """

    donors: DonorRule
    sizes: ArrayLike

    @property
    def reads_edges(self) -> bool:
        """Whether the donors of the donor rule of every graph depend on edges."""
        return reads_edges(self.donors)

    def fit(self, data: Any) -> DonorDistribution:
        check_rule(self.donors, "donors of WithinGraphs")
        graphs = split_graph(data, self.sizes)
        if not crosses_components(self.donors):
            return self.donors.fit(data)
        if isinstance(self.donors, Balanced):  # all graphs at once
            return self.donors.rescale(WithinGraphs(self.donors.donors, self.sizes).fit(data))
        bounds = pairwise(np.cumsum([0, *(graph.n_nodes for graph in graphs)]).tolist())
        rules = [restrict_rule(self.donors, slice(*bound), data.n_nodes) for bound in bounds]
        return join_distributions([rule.fit(graph) for rule, graph in zip(rules, graphs, strict=True)])

    def group_labels(self, data: Any) -> Any:
        """Return the labels that donors share, of all nodes."""
        return group_labels(self.donors, data)


def split_graph(graph: Graph, sizes: ArrayLike) -> list[Graph]:
    """Return the graphs of a batch: the first has the first ``sizes[0]`` nodes and so on.

    >>> split_graph(Graph.from_edges([0, 2], [1, 3]), [2, 2])
    [Graph(2 nodes, 1 undirected edges, binary), Graph(2 nodes, 1 undirected edges, binary)]
    """
    counts = check_vector(sizes, "sizes", per="graph")
    bounds = np.append(0, np.cumsum(counts)).tolist()
    if counts.dtype.kind not in "iu" or (counts < 0).any() or bounds[-1] != graph.n_nodes:
        raise InputError(
            "sizes", f"must be integers that add up to {graph.n_nodes} nodes; got {show(sizes)}."
        )
    rows, part_of = graph.rows, np.repeat(np.arange(len(counts)), counts)
    crosses = part_of[rows.row_numbers] != part_of[rows.indices]
    if crosses.any():
        first, second = rows.row_numbers[crosses][0], rows.indices[crosses][0]
        raise InputError(f"graphs of a batch must have no edge to others; got ({first}, {second}).")
    return [_take_block(graph, *bound) for bound in pairwise(bounds)]


def _take_block(graph: Graph, start: int, end: int) -> Graph:
    """Return the graph on nodes ``start`` to ``end - 1``, without the checks of ``subgraph``."""
    rows, nodes = graph.rows, slice(start, end)
    entries = slice(rows.indptr[start], rows.indptr[end])
    weights = None if rows.weights is None else rows.weights[entries]
    indptr = rows.indptr[start : end + 1] - rows.indptr[start]
    parts = {name: vars(graph)[name] for name in ("features", "labels", "_node_ids")}
    return graph._with(
        rows=Rows.canonical(indptr, rows.indices[entries] - start, weights, end - start),
        **{name: None if part is None else freeze(part[nodes]) for name, part in parts.items()},
    )


def join_distributions(distributions: Sequence[DonorDistribution]) -> DonorDistribution:
    """Return the distribution of all nodes of several graphs, each with donors from its own graph."""
    if all(isinstance(part, DonorLists) for part in distributions):
        return _join_lists([part for part in distributions if isinstance(part, DonorLists)])
    rows = [_as_rows(part) for part in distributions]
    P = sparse.csr_array(sparse.block_diag([part.P for part in rows], format="csr"))
    return DonorRows(P, np.concatenate([part.cumulative for part in rows]))


def _join_lists(parts: list[DonorLists]) -> DonorLists:
    n_nodes = np.cumsum([0, *(part.n_nodes for part in parts)])
    n_lists = np.cumsum([0, *(len(part.offsets) - 1 for part in parts)])
    n_members = np.cumsum([0, *(len(part.members) for part in parts)])
    dtype = index_dtype(int(n_members[-1]), int(n_nodes[-1]))

    def join(arrays: list[Any], shifts: Any) -> Any:
        shifted = [array + shift for array, shift in zip(arrays, shifts[:-1], strict=True)]
        return np.concatenate([np.zeros(0, np.int64), *shifted]).astype(dtype)

    offsets = join([part.offsets[1:] for part in parts], n_members)
    return DonorLists(
        join([part.list_of for part in parts], n_lists),
        np.concatenate([np.zeros(1, dtype), offsets]),
        join([part.members for part in parts], n_nodes),
    )


def _as_rows(distribution: DonorDistribution) -> DonorRows:
    if isinstance(distribution, DonorRows):
        return distribution
    return DonorRows.from_similarity(distribution.probabilities())
