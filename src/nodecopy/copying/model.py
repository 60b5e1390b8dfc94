"""The node copying model: each node takes the neighbourhood of a similar node."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from nodecopy._core.csr import IntArray, Rows
from nodecopy._core.params import Configurable
from nodecopy._core.random import Key, Rng, node_uniforms, sample_key, seed_sequence
from nodecopy._core.validation import check_choice, check_indices, check_integer, check_real, check_vector
from nodecopy.copying import row_copying
from nodecopy.copying.distributions import DonorDistribution
from nodecopy.copying.expectation import CopiedRows, ExpectedAdjacency
from nodecopy.copying.laws import DonorLaw
from nodecopy.errors import InputError, NotFittedError
from nodecopy.graph import Graph
from nodecopy.interactions import Interactions

Data = TypeVar("Data", Graph, Interactions)
Fitted = TypeVar("Fitted", Graph, Interactions)
Item = TypeVar("Item")

MOST_LAYERS = 64
"""Distinct weights up to which the expectation of a weighted maximum is computed exactly."""


class NodeCopying(Configurable, Generic[Data]):
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
    data_
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

    data_: Data
    distribution_: DonorDistribution

    def __init__(self, law: DonorLaw, keep: float = 0.0, symmetrise: str = "maximum") -> None:
        self.law = law
        self.keep = keep
        self.symmetrise = symmetrise

    def fit(self: NodeCopying[Any], data: Fitted, *, rng: Rng = None) -> NodeCopying[Fitted]:
        """Fit the donor law. ``rng`` is part of every graph model's contract; this one draws nothing."""
        if not isinstance(data, (Graph, Interactions)):
            raise InputError(
                f"data of NodeCopying must be a Graph or Interactions; got {type(data).__name__}."
            )
        if isinstance(self.law, type) or not hasattr(self.law, "fit"):
            raise InputError(f"law of NodeCopying must be a donor law such as SameLabel(); got {self.law!r}.")
        check_real(self.keep, "keep of NodeCopying", low=0.0, high=1.0)
        check_choice(self.symmetrise, "symmetrise of NodeCopying", ["maximum", "one-endpoint", "none"])
        if self.symmetrise == "none" and isinstance(data, Graph):
            data = data.replace(directed=True)
        self.distribution_ = self.law.fit(data)
        self.data_ = data
        return self

    def sample(self, *, rng: Rng) -> Data:
        """One graph: the first of :meth:`sample_many` with the same ``rng``."""
        return next(self.sample_many(1, rng=rng))

    def sample_many(self, n: int, *, rng: Rng, workers: int = 1) -> Iterator[Data]:
        """A stream of ``n`` graphs, made by ``workers`` threads while the caller uses earlier ones.

        Sample number s depends on (seed, s) alone: neither on ``n`` nor on ``workers``. Threads pay on
        graphs of about 10^5 entries and more.
        """
        data, seed = self._fitted(), seed_sequence(rng)
        check_integer(n, "n of sample_many", low=0)
        check_integer(workers, "workers of sample_many", low=1)

        def make(number: int) -> Data:
            key = sample_key(seed, number)
            return data.with_rows(self._sampled_rows(self._donors(key), key))

        return stream(make, n, workers)

    def draw_donors(self, *, rng: Rng, sample: int = 0) -> IntArray:
        """The donors of sample number ``sample`` of :meth:`sample_many` with the same ``rng``."""
        self._fitted()
        check_integer(sample, "sample of draw_donors", low=0)
        return self._donors(sample_key(seed_sequence(rng), sample))

    def copy(self, donors: ArrayLike, *, rng: Rng = None, sample: int = 0) -> Data:
        """The sample for given donors; ``rng`` and ``sample`` matter only where coins decide."""
        data = self._fitted()
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
        rows, rule = self._fitted().rows, self._rule()
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
        rows = self._fitted().rows
        total = sparse.csr_array((rows.n_rows, rows.n_columns))
        for sample in self.sample_many(n, rng=rng, workers=workers):
            total = total + sample.rows.csr
        return sparse.csr_array(total / n)

    def log_probability(self, sample: Data) -> float:
        """The log of p(G | G_obs, D) of a directed graph or of interactions; minus infinity where impossible.

        Donors are independent, so the probability is a product over nodes: for each, the total
        probability of the donors whose observed row equals the node's row in ``sample``.
        """
        data = self._fitted()
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

    def _fitted(self) -> Data:
        if not hasattr(self, "data_"):
            raise NotFittedError("this NodeCopying is not fitted yet: call fit(graph) first.")
        return self.data_

    def _rule(self) -> str | None:
        return None if getattr(self.data_, "directed", True) else self.symmetrise

    def _donors(self, key: Key) -> IntArray:
        n_rows, compiled = self.data_.rows.n_rows, row_copying.is_large(self.data_.rows)
        if compiled:
            from nodecopy.copying import kernels

            uniforms = np.empty(n_rows)
            kernels.node_uniforms(key, uniforms)
        else:
            uniforms = node_uniforms(key, n_rows)
        return self.distribution_.draw(uniforms, self.keep, compiled=compiled)

    def _sampled_rows(self, donors: IntArray, key: Key) -> Rows:
        rows, rule = self.data_.rows, self._rule()
        if rule == "maximum":
            return row_copying.symmetric_union(rows, donors)
        if rule == "one-endpoint":
            return row_copying.one_endpoint(rows, donors, key)
        return row_copying.copy_rows(rows, donors)


def stream(make: Callable[[int], Item], n: int, workers: int) -> Iterator[Item]:
    """``make(0), make(1), ...`` in order, at most ``workers`` of them under way or waiting."""
    if workers == 1:
        yield from map(make, range(n))
        return
    with ThreadPoolExecutor(workers) as pool:
        waiting = deque(pool.submit(make, number) for number in range(min(workers, n)))
        try:
            for number in range(len(waiting), n + len(waiting)):
                item = waiting.popleft().result()
                if number < n:
                    waiting.append(pool.submit(make, number))
                yield item
                del item
        finally:
            for future in waiting:
                future.cancel()


def _kind(data: Graph | Interactions) -> tuple[int, int, bool]:
    """What a sample shares with the observed data: its size, and whether it is directed."""
    return data.rows.n_rows, data.rows.n_columns, getattr(data, "directed", True)


def _at_least(rows: Rows, level: float) -> Rows:
    """The binary graph of the entries whose weight reaches ``level``."""
    matrix = rows.csr.copy()
    matrix.data = (matrix.data >= level).astype(np.float64)
    return Rows.from_matrix(matrix, "weights")


def _row_bytes(rows: Rows) -> Iterator[bytes]:
    """Each row as bytes: equal rows, equal bytes."""
    weights = np.ones(rows.n_entries) if rows.weights is None else rows.weights.astype(np.float64)
    indices = rows.indices.astype(np.int64)
    for start, end in zip(rows.indptr[:-1].tolist(), rows.indptr[1:].tolist(), strict=True):
        yield indices[start:end].tobytes() + weights[start:end].tobytes()
