"""The node copying model: each node takes the neighbourhood of a similar node."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import ArrayLike
from scipy import sparse

from nodecopy._core.csr import IntArray, Rows, keep_entries
from nodecopy._core.random import Key, Rng, node_uniforms, sample_key, seed_sequence, threefry_key
from nodecopy._core.validation import check_choice, check_indices, check_integer, check_real, check_vector
from nodecopy.copying import row_copying
from nodecopy.copying.distributions import DonorDistribution
from nodecopy.copying.expectation import CopiedRows, ExpectedAdjacency
from nodecopy.copying.laws import DonorLaw
from nodecopy.errors import InputError
from nodecopy.graph import Graph
from nodecopy.interactions import Interactions
from nodecopy.models import Data, GraphModel

Fitted = TypeVar("Fitted", Graph, Interactions)

MOST_LAYERS = 64
"""Distinct weights up to which the expectation of a weighted maximum is computed exactly."""


class NodeCopying(GraphModel[Data]):
    """Sample graphs like the observed one by giving each node the neighbours of its donor.

    Parameters
    ----------
    law
        Who may be whose donor: :class:`SameLabel`, :class:`NearestNeighbours`, :class:`Jaccard`,
        :class:`Weighted`, :class:`Balanced`, or any object with their ``fit``.
    keep
        Probability that a node keeps its own neighbours.
    symmetrise
        How an undirected sample comes from the copied rows. ``"maximum"``, the paper's: an edge is
        there if either row has it, with the larger weight; this adds edges, up to twice as many.
        ``"one-endpoint"``: for each pair a fair coin picks the endpoint whose row decides, which keeps
        the density of the copied rows. ``"none"``: the copied rows are a directed graph, as in the paper's
        Table 1. Directed graphs and interactions are not symmetrised.

    Attributes
    ----------
    graph_
        What the model was fitted to.
    distribution_
        The fitted donor law.

    Examples
    --------
    >>> from nodecopy import Graph, NodeCopying, SameLabel
    >>> square = Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 0], labels=[0, 1, 0, 1])
    >>> model = NodeCopying(SameLabel()).fit(square)
    >>> model.sample(rng=7)
    Graph(4 nodes, 4 undirected edges, binary, 2 classes)
    """

    graph_: Data
    distribution_: DonorDistribution

    def __init__(self, law: DonorLaw, keep: float = 0.0, symmetrise: str = "maximum") -> None:
        self.law = law
        self.keep = keep
        self.symmetrise = symmetrise

    def fit(self: NodeCopying[Any], graph: Fitted, *, rng: Rng = None) -> NodeCopying[Fitted]:
        """Fit the donor law. ``rng`` is part of every graph model's contract; this one draws nothing."""
        if not isinstance(graph, (Graph, Interactions)):
            raise InputError(
                f"graph of NodeCopying must be a Graph or Interactions; got {type(graph).__name__}."
            )
        if isinstance(self.law, type) or not hasattr(self.law, "fit"):
            raise InputError(f"law of NodeCopying must be a donor law such as SameLabel(); got {self.law!r}.")
        check_real(self.keep, "keep of NodeCopying", low=0.0, high=1.0)
        check_choice(self.symmetrise, "symmetrise of NodeCopying", ["maximum", "one-endpoint", "none"])
        if self.symmetrise == "none" and isinstance(graph, Graph):
            graph = graph.replace(directed=True)
        self.distribution_ = self.law.fit(graph)
        self.graph_ = graph
        return self

    def draw(self, seed: SeedSequence) -> Data:
        key = threefry_key(seed)
        return self.graph_.with_rows(self._sampled_rows(self._donors(key), key))

    def draw_donors(self, *, rng: Rng, sample: int = 0) -> IntArray:
        """The donors of sample number ``sample`` of :meth:`sample_many` with the same ``rng``."""
        self.check_fitted()
        check_integer(sample, "sample of draw_donors", low=0)
        return self._donors(sample_key(seed_sequence(rng), sample))

    def copy(self, donors: ArrayLike, *, rng: Rng = None, sample: int = 0) -> Data:
        """The sample for given donors; ``rng`` and ``sample`` matter only where coins decide."""
        data = self.check_fitted()
        n_rows = data.rows.n_rows
        chosen = check_indices(check_vector(donors, "donors", length=n_rows), "donors", size=n_rows)
        check_integer(sample, "sample of copy", low=0)
        key = sample_key(seed_sequence(rng), sample)
        return data.with_rows(self._sampled_rows(chosen.astype(data.rows.indices.dtype), key))

    def expected_adjacency(self) -> ExpectedAdjacency:
        """The exact expectation of a sample's adjacency (users x items matrix of interactions).

        With p = P A: p itself for directed graphs and interactions, (p_ij + p_ji) / 2 under
        ``"one-endpoint"``, 1 - (1 - p_ij)(1 - p_ji) for binary graphs under ``"maximum"``; weighted ones
        add this up over their distinct weights, at most 64 of them.
        """
        rows, rule = self.check_fitted().rows, self._rule()
        steps: list[tuple[float, Rows]] = [(1.0, rows)]
        if rule == "maximum" and rows.weights is not None:
            levels = np.unique(rows.weights)
            if len(levels) > MOST_LAYERS:
                raise InputError(
                    f"expected_adjacency of a weighted graph under 'maximum' needs at most {MOST_LAYERS} "
                    f"distinct weights; got {len(levels)}. Use monte_carlo_adjacency(n, rng=...) instead."
                )
            heights = np.diff(levels, prepend=0.0)
            steps = [(float(h), _at_least(rows, level)) for h, level in zip(heights, levels, strict=True)]
        layers = tuple((h, CopiedRows.of(self.distribution_, layer, self.keep)) for h, layer in steps)
        return ExpectedAdjacency(layers, rule, (rows.n_rows, rows.n_columns))

    def monte_carlo_adjacency(self, n: int, *, rng: Rng, workers: int = 1) -> sparse.csr_array:
        """The mean adjacency of ``n`` samples; for a closed form see :meth:`expected_adjacency`."""
        check_integer(n, "n of monte_carlo_adjacency", low=1)
        rows = self.check_fitted().rows
        total = sparse.csr_array((rows.n_rows, rows.n_columns))
        for sample in self.sample_many(n, rng=rng, workers=workers):
            total = total + sample.rows.csr
        return sparse.csr_array(total / n)

    def log_probability(self, sample: Data) -> float:
        """The log of p(G | G_obs, D) of a directed graph or of interactions; minus infinity where impossible.

        Donors are independent, so the probability is a product over nodes: for each, the total
        probability of the donors whose observed row equals the node's row in ``sample``.
        """
        data = self.check_fitted()
        if self._rule() is not None:
            raise InputError(
                "log_probability needs a directed graph or interactions: an undirected sample mixes the "
                "rows of both endpoints, and no closed form is known."
            )
        if type(sample) is not type(data) or _kind(sample) != _kind(data):
            raise InputError(f"sample must be like the observed data, {data!r}; got {sample!r}.")
        number_of: dict[bytes, int] = {}
        group_of = np.array([number_of.setdefault(row, len(number_of)) for row in _row_bytes(data.rows)], int)
        wanted = np.array([number_of.get(row, -1) for row in _row_bytes(sample.rows)], int)
        matched = (1 - self.keep) * self.distribution_.match_probabilities(group_of, wanted)
        with np.errstate(divide="ignore"):
            return float(np.log(matched + self.keep * (group_of == wanted)).sum())

    def _rule(self) -> str | None:
        return None if getattr(self.graph_, "directed", True) else self.symmetrise

    def _donors(self, key: Key) -> IntArray:
        n_rows, compiled = self.graph_.rows.n_rows, row_copying.is_large(self.graph_.rows)
        if compiled:
            from nodecopy.copying import kernels

            uniforms = np.empty(n_rows)
            kernels.node_uniforms(key, uniforms)
        else:
            uniforms = node_uniforms(key, n_rows)
        return self.distribution_.draw(uniforms, self.keep, compiled=compiled)

    def _sampled_rows(self, donors: IntArray, key: Key) -> Rows:
        rows, rule = self.graph_.rows, self._rule()
        if rule == "maximum":
            return row_copying.symmetric_union(rows, donors)
        if rule == "one-endpoint":
            return row_copying.one_endpoint(rows, donors, key)
        return row_copying.copy_rows(rows, donors)


def _kind(data: Graph | Interactions) -> tuple[int, int, bool]:
    """What a sample shares with the observed data: its size, and whether it is directed."""
    return data.rows.n_rows, data.rows.n_columns, getattr(data, "directed", True)


def _at_least(rows: Rows, level: float) -> Rows:
    """The binary graph of the entries whose weight reaches ``level``."""
    pattern = keep_entries(rows.csr, rows.csr.data >= level)
    return Rows.canonical(pattern.indptr, pattern.indices, None, rows.n_columns)


def _row_bytes(rows: Rows) -> Iterator[bytes]:
    """Each row as bytes: equal rows, equal bytes."""
    weights = np.ones(rows.n_entries) if rows.weights is None else rows.weights.astype(np.float64)
    indices = rows.indices.astype(np.int64)
    for start, end in zip(rows.indptr[:-1].tolist(), rows.indptr[1:].tolist(), strict=True):
        yield indices[start:end].tobytes() + weights[start:end].tobytes()
