"""Communities of a graph without labels, by spectral clustering."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from nodecopy._core.arrays import FloatArray, IntArray
from nodecopy._core.checks import check_integer
from nodecopy._core.random import Rng, generator
from nodecopy.generators.base import binary_adjacency
from nodecopy.graph import Graph
from nodecopy.io import GraphLike, convert_graph

MAX_COMMUNITIES = 30
MAX_DENSE_NODES = 600  # nodes up to which all eigenvalues are computed; larger graphs use subspace iteration
N_EXTRA_VECTORS, N_ITERATIONS = 10, 20
N_STARTS, MAX_KMEANS_STEPS = 5, 100


def count_communities(graph: GraphLike) -> int:
    """Return the number of communities that differ from chance, at least 1 and at most 30.

    This is the number of negative eigenvalues of the Bethe-Hessian matrices (r^2 - 1) I - r A + D with
    r^2 = sum d^2 / sum d - 1 (Le and Levina, 2022), for r > 0 and r < 0 (Saade et al., 2014), which finds
    groups with few edges inside. Directions and weights are ignored.
    """
    adjacency = _undirected_adjacency(convert_graph(graph, "graph"))
    degrees = adjacency.sum(axis=0)
    total = degrees.sum()
    r = np.sqrt(max((degrees**2).sum() / total - 1, 1.0)) if total else 1.0
    basis = _span(_normalise(adjacency), MAX_COMMUNITIES)
    diagonal = basis.T @ ((degrees + (r**2 - 1))[:, None] * basis)
    links = r * (basis.T @ (adjacency @ basis))
    linked, unlinked = (int((np.linalg.eigvalsh(diagonal - s * links) < -1e-8).sum()) for s in (1, -1))
    return min(max(linked, 1) + unlinked, MAX_COMMUNITIES)


def spectral_communities(
    graph: GraphLike, n_communities: int | None = None, *, rng: Rng = 0
) -> NDArray[np.int64]:
    """Return the community of each node by spherical spectral clustering of the regularised adjacency.

    D^-1/2 A D^-1/2 is regularised by adding the mean degree to all degrees. The rows of its eigenvectors with
    the largest absolute eigenvalues are scaled to length one and clustered by k-means (Qin and Rohe, 2013).
    Directions and weights are ignored.

    Parameters
    ----------
    graph
        The graph, or any object that :func:`.as_graph` converts.
    n_communities
        Number of communities, by default :func:`count_communities`.
    rng
        Seed or generator of the starts of k-means; 0 by default, so that the result is reproducible.

    Examples
    --------
    >>> import numpy as np
    >>> from nodecopy import Graph
    >>> from nodecopy.inference import spectral_communities
    >>> cliques = np.kron(np.eye(2), np.ones((10, 10))) - np.eye(20)
    >>> np.unique(spectral_communities(Graph(cliques)), return_counts=True)[1].tolist()
    [10, 10]
    """
    graph = convert_graph(graph, "graph")
    if n_communities is None:
        n_communities = count_communities(graph)
    check_integer(n_communities, "n_communities", low=1, high=max(graph.n_nodes, 1), high_name="n_nodes")
    if n_communities == 1:
        return np.zeros(graph.n_nodes, np.int64)
    matrix = _normalise(_undirected_adjacency(graph))
    basis = _span(matrix, n_communities)
    values, vectors = np.linalg.eigh(basis.T @ (matrix @ basis))
    vectors = basis @ vectors[:, np.argsort(-np.abs(values), kind="stable")[:n_communities]]
    rows = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    starts = generator(rng)
    _, best = min((_cluster(rows, n_communities, starts) for _ in range(N_STARTS)), key=lambda run: run[0])
    return np.unique(best, return_inverse=True)[1].astype(np.int64)


def _cluster(rows: FloatArray, k: int, rng: np.random.Generator) -> tuple[float, IntArray]:
    """Return the loss and the clusters of k-means, initialised by k-means++."""
    centres = rows[rng.integers(len(rows), size=1)]
    while len(centres) < k:
        distances = _squared_distances(rows, centres).min(axis=1)
        total = distances.sum()
        weights = distances / total if total > 0 else None
        centres = np.vstack([centres, rows[rng.choice(len(rows), p=weights)]])
    nearest = np.full(len(rows), -1)
    for _ in range(MAX_KMEANS_STEPS):
        distances = _squared_distances(rows, centres)
        previous, nearest = nearest, distances.argmin(axis=1)
        if np.array_equal(previous, nearest):
            break
        sizes = np.bincount(nearest, minlength=k)
        sums = sparse.csr_array((np.ones(len(rows)), (nearest, np.arange(len(rows)))), (k, len(rows))) @ rows
        centres = np.where(sizes[:, None] > 0, sums / np.maximum(sizes, 1)[:, None], centres)
    return float(distances.min(axis=1).sum()), nearest


def _squared_distances(rows: FloatArray, centres: FloatArray) -> FloatArray:
    distances = (rows**2).sum(axis=1)[:, None] - 2 * rows @ centres.T + (centres**2).sum(axis=1)
    return np.asarray(np.maximum(distances, 0.0))


def _undirected_adjacency(graph: Graph) -> sparse.csr_array:
    """Return the adjacency matrix without directions, weights and self-loops."""
    return binary_adjacency(graph.undirected()).astype(np.float64)


def _normalise(adjacency: sparse.csr_array) -> sparse.csr_array:
    """Return D^-1/2 A D^-1/2 with the mean degree, at least 1, added to all degrees."""
    degrees = adjacency.sum(axis=0)
    mean = degrees.sum() / max(len(degrees), 1)
    scale = sparse.diags_array(1 / np.sqrt(degrees + max(mean, 1.0)))
    return sparse.csr_array(scale @ adjacency @ scale)


def _span(matrix: sparse.csr_array, k: int) -> FloatArray:
    """Return an orthonormal basis nearly containing the ``k`` leading eigenvectors, by subspace iteration."""
    n_nodes = matrix.shape[0]
    if n_nodes <= MAX_DENSE_NODES:
        return np.eye(n_nodes)
    size = min(k + N_EXTRA_VECTORS, n_nodes)
    basis = np.random.default_rng(0).normal(size=(n_nodes, size))  # fixed, to be reproducible
    for _ in range(N_ITERATIONS):
        basis = np.linalg.qr(matrix @ basis)[0]
    return basis
