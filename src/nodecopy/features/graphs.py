"""Graphs for data without an observed graph: nearest neighbours, or weights learned from smooth signals."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, cg

from nodecopy._core.arrays import FloatArray, IntArray
from nodecopy._core.checks import as_array, check_choice, check_integer
from nodecopy._core.files import TableLike, reading
from nodecopy._core.messages import log_decision
from nodecopy.errors import InputError
from nodecopy.features.neighbours import NeighbourSearch, as_float_matrix
from nodecopy.features.scaling import FeatureScaling
from nodecopy.graph import Graph
from nodecopy.io import FeatureEncoder
from nodecopy.io.columns import describe, unify_ids
from nodecopy.io.node_tables import read_node_tables

PURPOSE = "to measure distances"  # what features are scaled for, in messages
CANDIDATES_PER_NEIGHBOUR = 3  # nearest neighbours that may become edges, per ``n_neighbours``
MAX_ROUNDS, DEGREE_TOLERANCE = 20, 0.02  # of the search for the scale; relative error of the mean degree
MAX_NEWTON_STEPS, GRADIENT_TOLERANCE, DUAL_ROUNDING = 100, 1e-10, 1e-14
MAX_LINEAR_COST = 100.0  # larger costs grow logarithmically; such edges have weights near zero


def graph_from_features(
    features: Any,
    method: str = "knn",
    *,
    n_neighbours: int = 10,
    scale: str = "none",
    labels: ArrayLike | None = None,
    node_ids: ArrayLike | None = None,
) -> Graph:
    """Return an undirected graph that connects nodes with similar features.

    Parameters
    ----------
    features
        Matrix with one row per node, dense or SciPy sparse, finite. The graph keeps it unscaled.
    method
        ``"knn"`` (default): a binary graph; two nodes are connected if either is among the other's nearest
        neighbours, ties go to the lowest index. ``"learned"``: a weighted graph by the log-degree model of
        Kalofolias (2016).
    n_neighbours
        Number of nearest neighbours, or the target mean degree of a learned graph; 10 by default.
    scale
        How features are scaled before distances are measured, ``"none"`` (default), ``"auto"`` (columns on
        different scales count alike), ``"standardise"``, ``"unit"``, ``"rows"`` or ``"binary"``.
    labels, node_ids
        As in :class:`~nodecopy.Graph`.

    Notes
    -----
    The learned weights W minimise

        scale * sum_ij W_ij d_ij^2 - sum_i log(sum_j W_ij) + sum_ij W_ij^2 / 2

    over symmetric, non-negative W, so nearby nodes get large weights and every node has an edge. As in
    Kalofolias and Perraudin (2019), only pairs of nearest neighbours (three times ``n_neighbours``) may have
    weights. The scale is the one whose mean degree is closest to ``n_neighbours``. The minimum is unique;
    Newton's method on the dual problem finds it to full precision. Take logarithms of features that spread
    over many orders of magnitude, which can stop it early.

    Examples
    --------
    >>> points = [[0.0], [1.0], [3.0], [4.0]]
    >>> graph_from_features(points, n_neighbours=1)
    Graph(4 nodes, 2 undirected edges, binary, 1 features)
    >>> graph_from_features(points, "learned", n_neighbours=1).adjacency.toarray().round(2).tolist()
    [[0.0, 0.82, 0.0, 0.0], [0.82, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.82], [0.0, 0.0, 0.82, 0.0]]
    """
    owner = "graph_from_features"
    check_choice(method, f"method of {owner}", ["knn", "learned"])
    matrix = as_float_matrix(features, f"features of {owner}")
    if scale != "none":
        scaling = FeatureScaling.fit(matrix, scale, name="scale", purpose=PURPOSE)
        matrix = scaling.apply_to_rows(matrix).astype(np.float64)
    search = NeighbourSearch(matrix, owner=owner)
    build = _neighbour_graph if method == "knn" else _learned_graph
    return Graph(build(search, n_neighbours), features, labels, node_ids)


def _neighbour_graph(search: NeighbourSearch, n_neighbours: int) -> sparse.csr_array:
    indptr, indices = search.nearest(n_neighbours, include_self=False)
    n = len(indptr) - 1
    return sparse.csr_array((np.ones(len(indices), np.float32), indices, indptr), shape=(n, n))


def _learned_graph(search: NeighbourSearch, n_neighbours: int) -> sparse.csr_array:
    n = search.matrix.shape[0]
    name = f"n_neighbours of {search.owner}"
    check_integer(n_neighbours, name, low=1, high=n - 1, high_name="n_nodes - 1")
    candidates = _neighbour_graph(search, min(CANDIDATES_PER_NEIGHBOUR * n_neighbours, n - 1))
    source = np.repeat(np.arange(n), np.diff(candidates.indptr))
    by_node = search.squared_distances(source, candidates.indices).reshape(n, -1)  # nearest first
    unit = by_node.mean() or 1.0
    pairs = sparse.triu(sparse.csr_array(candidates + candidates.T), 1, format="coo")
    first, second = pairs.row.astype(np.int64), pairs.col.astype(np.int64)
    distances = search.squared_distances(first, second) / unit
    weights = weights_for_degree(first, second, distances, by_node / unit, n_neighbours)
    is_edge = weights > 0
    return sparse.csr_array((weights[is_edge], (first[is_edge], second[is_edge])), shape=(n, n))


def weights_for_degree(
    first: IntArray, second: IntArray, distances: FloatArray, by_node: FloatArray, degree: int
) -> FloatArray:
    """Return the weights at the scale, computed by bisection, whose mean degree is closest to ``degree``."""
    n = len(by_node)
    scale = estimate_scale(by_node, degree)
    low, high, error = 0.0, np.inf, np.inf
    best: FloatArray = np.zeros(len(distances))
    for _ in range(MAX_ROUNDS):
        costs = _compress_costs(scale * distances)
        duals = solve_dual(first, second, costs, initial_duals(_compress_costs(scale * by_node)))
        weights = primal_weights(first, second, costs, duals)
        for node in np.flatnonzero(_sum_by_node(first, second, weights, n) == 0):  # rounded to zero
            edges = np.flatnonzero((first == node) | (second == node))
            weights[edges[costs[edges].argmin()]] = 1 / duals[node]
        mean_degree = 2.0 * np.count_nonzero(weights) / n
        if abs(mean_degree - degree) < error:
            best, error = weights, abs(mean_degree - degree)
        if error <= DEGREE_TOLERANCE * degree:
            break
        low, high = (scale, high) if mean_degree > degree else (low, scale)
        scale = 2 * low if high == np.inf else high / 2 if low == 0 else np.sqrt(low * high)
    return best


def estimate_scale(by_node: FloatArray, degree: int) -> float:
    """Return the scale at which a node alone with its neighbours has ``degree`` edges, averaged over nodes.

    ``by_node`` holds ascending squared distances. With z_j the j-th and b the sum of the first k, a node has
    k edges for scales between (k z^2 - b z)^-1/2 at z_k+1 and at z_k; the result is the geometric mean of the
    mean bounds, without nodes that tie there.
    """
    total = by_node[:, :degree].sum(axis=1)
    bounds = []
    for z in (by_node[:, min(degree, by_node.shape[1] - 1)], by_node[:, degree - 1]):
        square = degree * z**2 - total * z
        is_defined = square > 1e-12 * z**2 * degree
        bounds += [np.mean(square[is_defined] ** -0.5)] if is_defined.any() else []
    return float(np.exp(np.mean(np.log(bounds)))) if bounds else 1.0


def initial_duals(costs: FloatArray) -> FloatArray:
    """Return the dual variables that hold if both ends of every edge had the same one, by ascending costs.

    With t edges of total cost s the variable solves t p - s = 1 / p; t minimises it.
    """
    n_edges, total = np.arange(1, costs.shape[1] + 1), np.cumsum(costs, axis=1)
    return np.asarray(((total + np.sqrt(total**2 + 4 * n_edges)) / (2 * n_edges)).min(axis=1))


def primal_weights(first: IntArray, second: IntArray, costs: FloatArray, duals: FloatArray) -> FloatArray:
    """Return the edge weights that belong to dual variables, which are the inverse weighted degrees."""
    return np.maximum((duals[first] + duals[second]) / 2 - costs, 0.0)


def solve_dual(first: IntArray, second: IntArray, costs: FloatArray, start: FloatArray) -> FloatArray:
    """Minimise the sum of squared weights minus the logarithms of the dual variables by Newton's method."""

    def objective(duals: FloatArray) -> float:
        return float(np.square(primal_weights(first, second, costs, duals)).sum() - np.log(duals).sum())

    duals = np.array(start, np.float64)
    for _ in range(MAX_NEWTON_STEPS):
        weights = primal_weights(first, second, costs, duals)
        gradient = _sum_by_node(first, second, weights, len(duals)) - 1 / duals
        if (np.abs(gradient * duals) <= GRADIENT_TOLERANCE + DUAL_ROUNDING * duals**2).all():
            break
        step = _newton_step(first, second, weights > 0, duals, gradient)
        decreases = step < 0
        length = min(1.0, 0.9 * float(np.min(-duals[decreases] / step[decreases], initial=np.inf)))
        value, slope = objective(duals), float(gradient @ step)
        rounding = 1e-13 * abs(value)
        while length > 1e-12 and objective(duals + length * step) > value + 1e-4 * length * slope + rounding:
            length /= 2
        duals = duals + length * step
    return duals


def _newton_step(
    first: IntArray, second: IntArray, is_edge: NDArray[np.bool_], duals: FloatArray, gradient: FloatArray
) -> FloatArray:
    n, halves = len(duals), is_edge / 2.0

    def multiply_hessian(v: FloatArray) -> FloatArray:
        return _sum_by_node(first, second, halves * (v[first] + v[second]), n) + v / duals**2

    diagonal = _sum_by_node(first, second, halves, n) + duals**-2
    error = min(0.1, float(np.abs(gradient * duals).max()))
    hessian = LinearOperator((n, n), multiply_hessian, dtype=np.float64)
    preconditioner = LinearOperator((n, n), lambda v: v / diagonal, dtype=np.float64)
    return np.asarray(cg(hessian, -gradient, rtol=error**1.5, M=preconditioner)[0])


def _compress_costs(costs: FloatArray) -> FloatArray:
    """Replace large costs by their logarithm, since differences of large numbers lose digits."""
    logarithmic = MAX_LINEAR_COST * (1 + np.log(np.maximum(costs, MAX_LINEAR_COST) / MAX_LINEAR_COST))
    return np.where(costs > MAX_LINEAR_COST, logarithmic, costs)


def _sum_by_node(first: IntArray, second: IntArray, values: FloatArray, n: int) -> FloatArray:
    return np.asarray(np.bincount(first, values, n) + np.bincount(second, values, n), np.float64)


def read_feature_graph(
    features: TableLike,
    *,
    labels: TableLike | None = None,
    n_neighbours: int = 10,
    scale: str = "auto",
    encoder: FeatureEncoder | None = None,
    header: bool | None = None,
    id: str | None = None,
    label: str | None = None,
) -> Graph:
    """Return the graph that connects each node of a file of features to its nearest neighbours.

    Parameters
    ----------
    features, labels
        As in :func:`~nodecopy.read_graph`; nodes are in the order of the features.
    n_neighbours, scale
        As in :func:`~nodecopy.graph_from_features`. With fewer nodes, all others are neighbours.
    encoder, header, id, label
        As in :func:`~nodecopy.read_graph`.

    Examples
    --------
    >>> import pandas
    >>> from nodecopy.features import read_feature_graph
    >>> people = pandas.DataFrame({"id": ["ann", "bob", "cleo", "dan"], "age": [31, 33, 52, 55]})
    >>> read_feature_graph(people, n_neighbours=1)
    Graph(4 nodes, 2 undirected edges, binary, 1 features)
    """
    if features is None:
        raise InputError("features", "must be a file or a table; got None.")
    check_integer(n_neighbours, "n_neighbours", low=1)
    labels = features if labels is None and label else labels
    *tables, rows = read_node_tables(labels, features, encoder=encoder, header=header, id=id, label=label)
    ids = unify_ids([rows.ids])[0]
    if len(ids) < 2:
        raise InputError(f"{describe(features)} must hold features of at least two nodes; got {len(ids)}.")
    settings, n_neighbours = {"n_neighbours": n_neighbours}, min(n_neighbours, len(ids) - 1)
    with reading(features):
        scaling = FeatureScaling.fit(rows.values, scale, encoder=rows.encoder, name="scale", purpose=PURPOSE)
        graph = graph_from_features(
            rows.values, n_neighbours=n_neighbours, scale=scaling.kind, node_ids=as_array(ids, "ids")
        )
    log_decision(
        f"{describe(features)}: there are no edges, so each node is connected to its {n_neighbours} "
        "nearest neighbours by features.",
        "n_neighbours",
    )
    graph = graph.with_feature_encoder(rows.encoder).with_edge_settings(**settings, scale=scaling.kind)
    for table in tables:
        with reading(labels):
            graph = table.attach(graph)
    return graph
