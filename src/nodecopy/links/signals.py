"""Signals of links: numbers that speak for or against an edge between two nodes, and their combination.

The signals of a pair of nodes are computed from a graph without the edge between them: missing edges are not
in the graph, and edges of the graph are held out. Time and memory are proportional to edges and pairs.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy import sparse

from nodecopy._core.arrays import Bools, FloatArray, Floats, IntArray, Rows, unit_rows
from nodecopy._core.checks import check_finite, check_numbers, check_real
from nodecopy._core.linalg import fit_penalised_logistic, one_blas_thread
from nodecopy._core.messages import mute_decisions
from nodecopy.errors import InputError
from nodecopy.features.embeddings import NodeEmbeddings
from nodecopy.features.neighbours import approximate_nearest
from nodecopy.features.scaling import WeightScaling
from nodecopy.graph import Graph
from nodecopy.interactions import Interactions

RANK, N_POWERS = 128, 3  # dimensions of embeddings, and power iterations of a randomised SVD
N_STEPS, RESTART = 4, 0.2  # of the propagation of features
MAX_BLOCK_ENTRIES = 2**22  # entries of sparse rows that are in memory at once
N_KNOTS = 6  # of the piecewise linear function of a signal
PENALTY, MAX_STEPS = 3.0, 100
SMALL_SHARE = 0.01  # a logarithm has this quantile of the positive values added


@dataclass(frozen=True, eq=False)
class ObservedLinks:
    """The edges of a graph, or interactions, as pairs of positions, and which pairs might be edges.

    Items have the positions after those of the users, from ``start``. Of an undirected edge the lower
    position is ``first``. ``is_used`` is false for self-loops, which are left out; it has the order of
    ``edges()`` or ``table()``.
    """

    n_nodes: int
    n_users: int | None
    directed: bool
    first: IntArray
    second: IntArray
    weights: FloatArray
    is_used: Bools

    @classmethod
    def from_data(cls, data: Graph | Interactions) -> ObservedLinks:
        """Return the edges of a graph or the interactions."""
        rows = data.rows
        first, second = rows.row_numbers.astype(np.int64), rows.indices.astype(np.int64)
        with mute_decisions():
            weights = WeightScaling.fit(rows.csr).apply(rows.csr).data.astype(np.float64)
        weights = weights / max(weights.mean() if len(weights) else 1.0, np.finfo(float).tiny)
        n_users = data.n_users if isinstance(data, Interactions) else None
        directed = isinstance(data, Graph) and data.directed
        if n_users is not None:
            second = second + n_users
        elif not directed:
            is_upper = first <= second
            first, second, weights = first[is_upper], second[is_upper], weights[is_upper]
        is_used = first != second
        n_nodes = rows.n_rows + (0 if n_users is None else rows.n_columns)
        return cls(n_nodes, n_users, directed, first[is_used], second[is_used], weights[is_used], is_used)

    @property
    def start(self) -> int:
        """The position of the first node that may be ``second``."""
        return self.n_users or 0

    @property
    def n_pairs(self) -> int:
        """The number of pairs that might be edges."""
        if self.n_users is not None:
            return self.n_users * (self.n_nodes - self.n_users)
        return self.n_nodes * (self.n_nodes - 1) // (1 if self.directed else 2)

    def keys(self, first: IntArray, second: IntArray) -> NDArray[np.int64]:
        """Return a number for each pair; those of the edges ascend."""
        return first.astype(np.int64) * self.n_nodes + second

    def find(self, first: IntArray, second: IntArray) -> IntArray:
        """Return the position of each pair among the edges, -1 where it is none."""
        edges, wanted = self.keys(self.first, self.second), self.keys(first, second)
        position = np.minimum(np.searchsorted(edges, wanted), len(edges) - 1)
        return np.where(edges[position] == wanted, position, -1)

    def order(self, first: IntArray, second: IntArray) -> tuple[IntArray, IntArray]:
        """Return pairs in the order in which they are stored."""
        if self.directed:
            return first, second
        return np.minimum(first, second), np.maximum(first, second)

    def absent(self, first: IntArray, second: IntArray) -> Bools:
        """Return which pairs might be edges and are none."""
        is_pair = first != second
        if self.n_users is not None:
            is_pair = (first < self.n_users) & (second >= self.n_users)
        return np.asarray(is_pair & (self.find(first, second) < 0))

    def draw_absent(self, n: int, rng: Generator) -> tuple[IntArray, IntArray]:
        """Draw pairs without edges uniformly, possibly repeatedly."""
        parts: list[IntArray] = [np.zeros((2, 0), np.int64)]
        n_found = 0
        while n_found < n:
            size = 2 * (n - n_found) + 16
            first = rng.integers(self.n_users or self.n_nodes, size=size)
            pairs = np.stack(self.order(first, rng.integers(self.start, self.n_nodes, size=size)))
            parts.append(pairs[:, self.absent(*pairs)])
            n_found += parts[-1].shape[1]
        first, second = np.concatenate(parts, axis=1)[:, :n]
        return first, second

    def select(self, rows: Rows, is_kept: Bools) -> Rows:
        """Return the rows of the data with some of the edges, and with all self-loops."""
        stays = np.append(is_kept, True)  # the last is for self-loops, which are not found
        ends = rows.row_numbers.astype(np.int64), rows.indices.astype(np.int64) + self.start
        return rows.keep_entries(stays[self.find(*self.order(*ends))])


class NodeFacts:
    """What signals use beside edges: the features of the nodes, embedded and weighted."""

    def __init__(self, data: Graph | Interactions) -> None:
        self.features = self.weighted = None
        if not isinstance(data, Graph):
            return
        with mute_decisions():
            embeddings = NodeEmbeddings(data, RANK)
            if embeddings.feature_counts is not None and embeddings.weighted_features.nnz:
                self.features = embeddings.features.astype(np.float32)
                self.weighted = embeddings.weighted_features


def name_signals(links: ObservedLinks, facts: NodeFacts, n_donors: int) -> list[tuple[str, bool]]:
    """Return the names of the signals in the order of the columns of :meth:`LinkSignals.compute`.

    Beside each is whether ratios of its values matter, as of counts and probabilities, not differences.
    """
    names = [("similar neighbourhoods", False)]
    names += [("similar features", False)] * (facts.features is not None)
    names += [("copied by one endpoint", True), ("copied by both endpoints", True)] * (n_donors > 0)
    names += [("walks of length 2", True), ("walks of length 3", True)]
    ends = ("smaller degree", "larger degree")
    if links.n_users is not None:
        ends = "interactions of the user", "interactions of the item"
    names += [(end, True) for end in ends]
    if links.directed:
        names += [("reciprocal edge", False)]
        names += [("copied by the source", True), ("copied by the target", True)] * (n_donors > 0)
        names += [("directed walks of length 2", True), ("shared targets and sources", True)]
        names += [("out-degree of the source", True), ("in-degree of the target", True)]
    return names


class LinkSignals:
    """The signals of pairs of nodes, given the edges of a graph.

    ``U`` are the edges without directions, ``P`` the probabilities of donors: nodes with similar
    neighbourhoods, in proportion to the square of their cosine.
    """

    def __init__(self, links: ObservedLinks, kept: Any, facts: NodeFacts, n_donors: int) -> None:
        n = links.n_nodes
        first, second = links.first[kept], links.second[kept]
        # Held-out edges lower degrees and counts, which are therefore divided by the share of the others.
        self.share = len(first) / len(links.first)
        A = sparse.csr_array((links.weights[kept] / self.share, (first, second)), shape=(n, n))
        self.links, self.facts, self.n_donors = links, facts, n_donors
        self.U = sparse.csr_array(A.maximum(A.T))
        self.degrees = np.diff(self.U.indptr) / self.share
        self.W = _normalise(self.U)
        self.embedding = self._embed()
        donors, cosines = approximate_nearest(self.embedding, min(n_donors, n - 1))
        self.P = _as_probabilities(donors, np.maximum(cosines, 0.0) ** 2)
        if links.directed:
            self.out, self.into, self.W_out = A, sparse.csr_array(A.T), _normalise(A)
            self.W_into = sparse.csr_array(self.W_out.T)
        # Rows of P U and of W W have at most so many entries.
        sizes = np.diff(self.U.indptr)
        self.row_sizes = 1 + self.U.astype(bool) @ sizes + self.P.astype(bool) @ sizes

    def _embed(self) -> NDArray[np.float32]:
        loops = sparse.csr_array(self.U + sparse.eye_array(self.links.n_nodes)).astype(np.float32)
        features: Any = self.facts.features
        if features is None:
            return _embed_connections(loops)
        step, propagated = _normalise(loops), features
        for _ in range(N_STEPS):
            propagated = RESTART * features + (1 - RESTART) * (step @ propagated)
        return np.asarray(unit_rows(propagated), np.float32)

    def compute(self, first: IntArray, second: IntArray) -> NDArray[np.float32]:
        """Return the signals of pairs, ``[n_pairs, n_signals]``."""
        values = np.empty((len(first), len(name_signals(self.links, self.facts, self.n_donors))), np.float32)
        order = np.argsort(first, kind="stable")
        for block in split_by_size(self.row_sizes[first[order]]):
            chosen = order[block]
            values[chosen] = np.stack(self._block(first[chosen], second[chosen]), axis=1)
        return values

    def _block(self, i: IntArray, j: IntArray) -> list[Any]:
        sources, row = np.unique(i, return_inverse=True)
        values = [np.einsum("nd,nd->n", self.embedding[i], self.embedding[j])]
        if self.facts.weighted is not None:
            values.append(_dot(self.facts.weighted, i, self.facts.weighted, j))
        if self.n_donors:
            values.append(_dot(self.P, i, self.U, j) + _dot(self.P, j, self.U, i))
            values.append(_dot(self.P[sources] @ self.U, row, self.P, j))
        values.append(_dot(self.W, i, self.W, j))
        values.append(_dot(self.W[sources] @ self.W, row, self.W, j))
        degrees = np.stack([self.degrees[i], self.degrees[j]])
        values += list(degrees if self.links.n_users is not None else np.sort(degrees, axis=0))
        if self.links.directed:
            values.append(np.asarray(self.out[j, i]).ravel() > 0)
            if self.n_donors:
                values += [_dot(self.P, i, self.into, j), _dot(self.out, i, self.P, j)]
            values.append(_dot(self.W_out, i, self.W_into, j))
            values.append(_dot(self.W_out[sources] @ self.W_into, row, self.W_into, j))
            values += [np.diff(A.indptr)[end] / self.share for A, end in ((self.out, i), (self.into, j))]
        return values

    def near_pairs(self, nodes: IntArray) -> sparse.csr_array:
        """Return the normalised walks of length 2 from some nodes; of length 3 between users and items."""
        walks = self.W[nodes] @ self.W
        return sparse.csr_array(walks if self.links.n_users is None else walks @ self.W)


def split_by_size(sizes: NDArray[Any], limit: int = MAX_BLOCK_ENTRIES) -> Iterator[slice]:
    """Yield slices of successive rows whose sizes add up to about ``limit``, at least one row each."""
    block_of = np.cumsum(sizes) // limit
    bounds = [0, *(np.flatnonzero(np.diff(block_of)) + 1).tolist(), len(sizes)]
    return (slice(a, b) for a, b in itertools.pairwise(bounds) if a < b)


def _embed_connections(loops: Any) -> NDArray[np.float32]:
    """Return what ``features.embed_connections`` does, by a randomised SVD (Halko et al., 2011)."""
    once: Any = unit_rows(loops)
    n = loops.shape[0]
    with one_blas_thread():
        basis: Any = once @ np.random.default_rng(0).normal(size=(n, min(RANK, n))).astype(np.float32)
        for _ in range(N_POWERS):
            basis = once @ (once.T @ _orthonormalise(basis))
        basis = _orthonormalise(_orthonormalise(basis))
        reduced = once.T @ basis
        values, vectors = np.linalg.eigh(reduced.T @ reduced)
        rows = unit_rows(basis @ (vectors * np.sqrt(np.maximum(values, 0.0))))
    return np.asarray(unit_rows(loops @ rows), np.float32)


def _orthonormalise(basis: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return an orthonormal basis of the columns, by the Cholesky factor of their inner products."""
    inner = (basis.T @ basis).astype(np.float64)
    inner += 1e-6 * np.trace(inner) / len(inner) * np.eye(len(inner))
    return basis @ np.linalg.inv(np.linalg.cholesky(inner)).T.astype(np.float32)


def _normalise(A: sparse.csr_array) -> sparse.csr_array:
    """Return D^-1/2 A E^-1/2 with the weighted out-degrees D and in-degrees E."""
    degrees = (np.asarray(A.sum(axis=axis)) for axis in (1, 0))
    D, E = (
        np.divide(1.0, np.sqrt(degree), out=np.zeros(len(degree), A.dtype), where=degree > 0)
        for degree in degrees
    )
    return sparse.csr_array(sparse.diags_array(D) @ A @ sparse.diags_array(E))


def _as_probabilities(donors: IntArray, similarity: NDArray[Any]) -> sparse.csr_array:
    """Return the matrix of donor probabilities; a node without similar nodes has no donor."""
    n, k = donors.shape
    total = similarity.sum(axis=1, keepdims=True)
    p = np.divide(similarity, total, out=np.zeros_like(similarity), where=total > 0)
    P = sparse.csr_array((p.ravel(), donors.ravel(), np.arange(n + 1) * k), shape=(n, n))
    P.eliminate_zeros()
    P.sort_indices()
    return P


def _dot(X: Any, i: IntArray, Y: Any, j: IntArray) -> NDArray[np.float64]:
    """Return the inner products of rows i of X with rows j of Y."""
    return np.asarray(X[i].multiply(Y[j]).sum(axis=1), np.float64).ravel()


@dataclass(frozen=True, eq=False)
class AdditiveModel:
    """Log-odds a + f_1(x_1) + ... + f_m(x_m) with continuous, piecewise linear functions f.

    Functions have knots at quantiles and are constant beyond the values that they were learnt from. They
    are centred: the mean of each is zero over the pairs without an edge, so that a contribution compares a
    pair with a random one.

    Attributes
    ----------
    intercept
        The log-odds of a pair whose contributions are all zero.
    shifts
        The number that is added before the logarithm of a signal; zero for signals without.
    high
        The largest values of the (logarithms of) signals.
    knots, slopes
        Of each function, ``[m, n_knots + 1]``: where slopes change, from the smallest value, and by how much.
    centres
        What is subtracted from each function.
    """

    intercept: float
    shifts: Floats
    high: Floats
    knots: Floats
    slopes: Floats
    centres: Floats

    @classmethod
    def fit(
        cls,
        values: NDArray[Any],
        is_edge: Bools,
        *,
        is_logarithmic: Sequence[bool],
        offset: Floats,
        weights: Floats,
    ) -> AdditiveModel:
        """Fit the functions to the signals of edges and of pairs without an edge.

        ``offset`` are the log-odds by which edges are over-represented among pairs such as these, and
        ``weights`` how often each pair counts.
        """
        columns = zip(values.T, is_logarithmic, strict=True)
        shifts = np.array([_shift(x) if log else 0.0 for x, log in columns])
        x = _transform(values, shifts)
        knots = np.quantile(x, np.arange(N_KNOTS + 1) / (N_KNOTS + 1), axis=0).T
        scales = np.maximum(x.std(axis=0), 1e-9)
        # A knot that occurs again has no slope.
        is_new = np.diff(knots, prepend=-np.inf) > 0
        inputs = (np.maximum(x[:, :, None] - knots, 0.0) * (is_new / scales[:, None])).reshape(len(x), -1)
        means = inputs.mean(axis=0)
        fitted = fit_penalised_logistic(
            np.column_stack([np.ones(len(x)), inputs - means]),
            is_edge.astype(np.float64),
            penalty=np.array([0.0] + [PENALTY] * len(means)),  # all but the intercept
            max_steps=MAX_STEPS,
            offset=offset,
            weights=weights,
        )
        slopes = fitted[1:].reshape(knots.shape) / scales[:, None]
        model = cls(0.0, shifts, x.max(axis=0), knots, slopes, np.zeros(len(knots)))
        # Pairs without an edge are weighted as they are sampled: by the inverse of the odds of the offset.
        contributions = model.contributions(values[~is_edge])
        centres = np.average(contributions, axis=0, weights=np.exp(offset[~is_edge]))
        intercept = float(fitted[0] - means @ fitted[1:] + centres.sum())
        return cls(intercept, shifts, model.high, knots, slopes, centres)

    def check(self, n_signals: int) -> None:
        """Check the model of a file."""
        check_real(self.intercept, "intercept of AdditiveModel")
        for part in ("shifts", "high", "centres", "knots", "slopes"):
            values = getattr(self, part)
            shape = (n_signals, N_KNOTS + 1) if part in ("knots", "slopes") else (n_signals,)
            if values.shape != shape:
                raise InputError(f"{part} of AdditiveModel", f"must have shape {shape}; got {values.shape}.")
            check_finite(check_numbers(values, part), f"{part} of AdditiveModel")

    def contributions(self, values: NDArray[Any]) -> Floats:
        """Return what each signal adds to the log-odds of each pair."""
        x = np.minimum(_transform(values, self.shifts), self.high)
        total = -np.broadcast_to(self.centres, x.shape)
        for knots, slopes in zip(self.knots.T, self.slopes.T, strict=True):
            total += slopes * np.maximum(x - knots, 0.0)
        return total

    def log_odds(self, values: NDArray[Any]) -> Floats:
        """Return the log-odds of an edge for each pair."""
        return np.asarray(self.intercept + self.contributions(values).sum(axis=1))


def _shift(x: NDArray[Any]) -> float:
    positive = x[x > 0]
    return float(np.quantile(positive, SMALL_SHARE)) if len(positive) else 1.0


def _transform(values: NDArray[Any], shifts: Floats) -> Floats:
    x = values.astype(np.float64)
    return np.where(shifts > 0, np.log(np.maximum(x, 0.0) + np.where(shifts > 0, shifts, 1.0)), x)
