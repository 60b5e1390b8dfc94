"""Graphs where only features are observed: nearest neighbours, or weights learnt from smooth signals."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, cg

from nodecopy._core.csr import FloatArray, IntArray
from nodecopy._core.validation import check_choice, check_integer
from nodecopy.features.neighbours import Search, number_matrix
from nodecopy.graph import Graph

ALLOWED = 3
"""Edges are learnt among this many times as many nearest neighbours as are wanted."""
MOST_ROUNDS, CLOSE_ENOUGH = 20, 0.02
"""How long to look for the wanted mean degree, and the relative error at which to stop."""
MOST_STEPS, PRECISION = 100, 1e-10
"""Of Newton's method."""
ROUNDING = 1e-14
"""Relative error of a price, generously."""
FAR = 100.0
"""From this cost on an edge costs less than it should: its weight is next to nothing in any case."""


def graph_from(
    features: Any,
    method: str = "knn",
    *,
    k: int = 10,
    metric: str = "euclidean",
    labels: ArrayLike | None = None,
    node_ids: ArrayLike | None = None,
) -> Graph:
    """An undirected graph of nodes whose features are alike, for node copying where no graph is observed.

    Parameters
    ----------
    features
        One row per node, dense or SciPy sparse, finite. They stay with the graph.
    method
        ``"knn"``: binary; two nodes are joined if either is among the other's ``k`` nearest, and of nodes
        equally far the lower number wins. ``"learned"``: weighted; the log-degree model of Kalofolias
        (2016), with about ``k`` neighbours per node on average.
    k
        Nearest neighbours, or the wanted mean number of neighbours.
    metric
        ``"euclidean"``, or ``"cosine"``: rows count as if they had unit length, and a row of zeros is
        equally far from all others.
    labels, node_ids
        As in :class:`~nodecopy.Graph`.

    Notes
    -----
    The learned weights W minimise

        scale * sum_ij W_ij d_ij^2 - sum_i log(sum_j W_ij) + sum_ij W_ij^2 / 2

    over symmetric W of at least zero, so nearby nodes get large weights and no node is left alone. As
    Kalofolias and Perraudin (2019) do it, only edges between nearest neighbours (three times as many as
    wanted) may have weights, and their estimate of the scale that gives the wanted mean degree is where
    the search for it begins. The minimum is unique; it is found to full precision through the dual, which
    has one number per node, by Newton's method. Where many nodes are equally far, say duplicates, no
    scale may give the wanted degree; the nearest is taken.

    Outliers do little harm: edges of nodes so far from all others that their weights would add up to less
    than 1/100 are made a little less faint. Features spread over many orders of magnitude do: the search for
    the minimum may end before it is there. Take their logarithms first.

    Examples
    --------
    >>> graph_from([[0.0], [1.0], [3.0], [4.0]], k=1)
    Graph(4 nodes, 2 undirected edges, binary, 1 features)
    >>> graph_from([[0.0], [1.0], [3.0], [4.0]], "learned", k=1).adjacency.toarray().round(2).tolist()
    [[0.0, 0.82, 0.0, 0.0], [0.82, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.82], [0.0, 0.0, 0.82, 0.0]]
    """
    check_choice(method, "method of graph_from", ["knn", "learned"])
    check_choice(metric, "metric of graph_from", ["euclidean", "cosine"])
    rows = number_matrix(features, "features of graph_from")
    search = Search(_unit_rows(rows) if metric == "cosine" else rows, owner="graph_from")
    adjacency = _nearest(search, k) if method == "knn" else _learned(search, k)
    return Graph(adjacency, features, labels, node_ids)


def _unit_rows(rows: Any) -> Any:
    """Rows of unit length; those of zeros stay."""
    if not rows.shape[1]:
        return rows
    largest: Any = abs(rows).max(axis=1)
    largest = np.asarray(largest.toarray() if hasattr(largest, "toarray") else largest).ravel()
    scaled = _divided(rows, largest)  # so that squares neither overflow nor vanish
    return _divided(scaled, np.sqrt(np.asarray((scaled * scaled).sum(axis=1)).ravel()))


def _divided(rows: Any, divisors: FloatArray) -> Any:
    """Rows over their divisors; those over zero become zero."""
    if isinstance(rows, np.ndarray):
        return np.divide(rows, divisors[:, None], out=np.zeros(rows.shape), where=divisors[:, None] > 0)
    rows = rows.tocsr().astype(np.float64, copy=True)
    each = np.repeat(divisors, np.diff(rows.indptr))
    rows.data = np.divide(rows.data, each, out=np.zeros(len(each)), where=each > 0)
    return rows


def _nearest(search: Search, k: int) -> sparse.csr_array:
    indptr, indices = search.nearest(k, include_self=False)
    n = len(indptr) - 1
    return sparse.csr_array((np.ones(len(indices), np.float32), indices, indptr), shape=(n, n))


def _learned(search: Search, k: int) -> sparse.csr_array:
    """Weights with about ``k`` neighbours per node."""
    n = search.matrix.shape[0]
    check_integer(k, "k of graph_from", low=1, high=n - 1, high_name="n_nodes - 1")
    pattern = _nearest(search, min(ALLOWED * k, n - 1))
    source = np.repeat(np.arange(n), np.diff(pattern.indptr))
    by_node = search.measure(source, pattern.indices).reshape(n, -1)  # nearest first
    unit = by_node.mean() or 1.0
    both = sparse.triu(sparse.csr_array(pattern + pattern.T), 1, format="coo")
    first, second = both.row.astype(np.int64), both.col.astype(np.int64)
    lengths = search.measure(first, second)
    weights = weights_of_degree(first, second, lengths / unit, by_node / unit, k)
    kept = weights > 0
    return sparse.csr_array((weights[kept], (first[kept], second[kept])), shape=(n, n))


def weights_of_degree(
    first: IntArray, second: IntArray, lengths: FloatArray, by_node: FloatArray, k: int
) -> NDArray[np.float64]:
    """Weights of edges at the scale, searched by bisection, that gives ``k`` edges per node or nearly so."""
    n = len(by_node)
    scale = estimated_scale(by_node, k)
    low, high = 0.0, np.inf
    best, error = np.zeros(len(lengths)), np.inf
    for _ in range(MOST_ROUNDS):
        costs = _bearable(scale * lengths)
        prices = node_prices(first, second, costs, prices_alone(_bearable(scale * by_node)))
        weights = weights_at(first, second, costs, prices)
        for node in np.flatnonzero(_per_node(first, second, weights, n) == 0):  # rounded away
            edges = np.flatnonzero((first == node) | (second == node))
            weights[edges[costs[edges].argmin()]] = 1 / prices[node]
        degree = 2.0 * np.count_nonzero(weights) / n
        if abs(degree - k) < error:
            best, error = weights, abs(degree - k)
        if error <= CLOSE_ENOUGH * k:
            break
        low, high = (scale, high) if degree > k else (low, scale)
        scale = 2 * low if high == np.inf else high / 2 if low == 0 else np.sqrt(low * high)
    return best


def prices_alone(costs: FloatArray) -> NDArray[np.float64]:
    """Prices if the other end of every edge had the same: where to begin.

    ``costs`` holds those of every node's edges in ascending order. With t edges of the sum s the price solves
    t p - s = 1 / p; as many edges are taken as makes it least.
    """
    n_taken, total = np.arange(1, costs.shape[1] + 1), np.cumsum(costs, axis=1)
    prices: NDArray[np.float64] = ((total + np.sqrt(total**2 + 4 * n_taken)) / (2 * n_taken)).min(axis=1)
    return prices


def _bearable(costs: FloatArray) -> NDArray[np.float64]:
    """Costs that grow like their logarithm where they are large.

    A weight is a price less a cost, and the price of a node that is far from all others is about the cost
    of its nearest edge. Of numbers with sixteen digits little is left then, and the search for the minimum
    has to weigh such nodes against all others.
    """
    found: NDArray[np.float64] = np.where(
        costs > FAR, FAR * (1 + np.log(np.maximum(costs, FAR) / FAR)), costs
    )
    return found


def estimated_scale(by_node: FloatArray, k: int) -> float:
    """The scale at which a node alone with its neighbours would take ``k`` of them, in the mean of all.

    ``by_node`` holds every node's squared distances in ascending order. With z_j the j-th and b the sum of
    the first k, k are taken for scales between (k z^2 - b z)^-1/2 at z_k+1 and at z_k; the geometric mean
    of the mean bounds is taken. Nodes with ties at a bound have none there and do not count.
    """
    total = by_node[:, :k].sum(axis=1)
    bounds = []
    for z in (by_node[:, min(k, by_node.shape[1] - 1)], by_node[:, k - 1]):
        square = k * z**2 - total * z
        counted = square > 1e-12 * z**2 * k
        bounds += [np.mean(square[counted] ** -0.5)] if counted.any() else []
    return float(np.exp(np.mean(np.log(bounds)))) if bounds else 1.0


def weights_at(
    first: IntArray, second: IntArray, costs: FloatArray, prices: FloatArray
) -> NDArray[np.float64]:
    """The weights that go with prices of nodes, which are one over their weighted degrees."""
    found: NDArray[np.float64] = np.maximum((prices[first] + prices[second]) / 2 - costs, 0.0)
    return found


def node_prices(
    first: IntArray, second: IntArray, costs: FloatArray, start: FloatArray
) -> NDArray[np.float64]:
    """Minimise the dual, the sum of squared weights less the logarithms of the prices, by Newton's method."""

    def dual(at: FloatArray) -> float:
        return float(np.square(weights_at(first, second, costs, at)).sum() - np.log(at).sum())

    prices = np.array(start, np.float64)
    for _ in range(MOST_STEPS):
        weights = weights_at(first, second, costs, prices)
        gradient = _per_node(first, second, weights, len(prices)) - 1 / prices
        if (np.abs(gradient * prices) <= PRECISION + ROUNDING * prices**2).all():
            break
        step = _newton_step(first, second, weights > 0, prices, gradient)
        fall = step < 0
        length = min(1.0, 0.9 * float(np.min(-prices[fall] / step[fall], initial=np.inf)))
        now, slope = dual(prices), float(gradient @ step)
        rounding = 1e-13 * abs(now)
        while length > 1e-12 and dual(prices + length * step) > now + 1e-4 * length * slope + rounding:
            length /= 2
        prices = prices + length * step
    return prices


def _newton_step(
    first: IntArray, second: IntArray, joined: NDArray[np.bool_], prices: FloatArray, gradient: FloatArray
) -> NDArray[np.float64]:
    """Conjugate gradients, the more precise the nearer the minimum."""
    n, halves = len(prices), joined / 2.0

    def curved(v: FloatArray) -> NDArray[np.float64]:
        return _per_node(first, second, halves * (v[first] + v[second]), n) + v / prices**2

    diagonal = _per_node(first, second, halves, n) + prices**-2
    error = min(0.1, float(np.abs(gradient * prices).max()))
    found: NDArray[np.float64] = cg(
        LinearOperator((n, n), curved, dtype=np.float64),
        -gradient,
        rtol=error**1.5,
        M=LinearOperator((n, n), lambda v: v / diagonal, dtype=np.float64),
    )[0]
    return found


def _per_node(first: IntArray, second: IntArray, values: FloatArray, n: int) -> NDArray[np.float64]:
    """Sums over the edges at every node."""
    return np.asarray(np.bincount(first, values, n) + np.bincount(second, values, n), np.float64)
