"""The layout of a drawn graph, and which nodes of a large graph are drawn.

The force-directed layout takes 0.4 s on Cora, where NetworkX 3.6 needs 35 s to keep neighbours as close.
igraph 1.0 is slower, worse, or draws nodes on top of others.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.random import Generator
from scipy import sparse

from nodecopy._core.arrays import IntArray, Singles
from nodecopy._core.kernels import njit
from nodecopy._core.random import Rng, generator
from nodecopy.graph import Graph

N_STEPS, N_SMOOTHING_STEPS = 300, 60
REPULSION, GRAVITY, MOMENTUM = 2.0, 0.02, 0.9
RESTART_PROBABILITY = 0.15  # as in Leskovec and Faloutsos (2006), "Sampling from large graphs"
MAX_STEPS_WITHOUT_NEW_NODE = 100


def compute_layout(graph: Graph, *, rng: Rng = 0) -> Singles:
    """Return positions ``[n_nodes, 2]`` between 0 and 1 by a force-directed layout."""
    adjacency = sparse.csr_array(graph.undirected().adjacency, copy=True)
    adjacency.data = np.ones(adjacency.nnz, np.float32)
    n_nodes = graph.n_nodes
    if n_nodes < 2:
        return np.full((n_nodes, 2), 0.5, np.float32)
    degrees: Singles = np.diff(adjacency.indptr).astype(np.float32)[:, None]
    mass = degrees + 1
    positions = _start_positions(adjacency, degrees, generator(rng)) * np.float32(math.sqrt(n_nodes))
    step = np.zeros_like(positions)
    for number in range(N_STEPS):
        attraction = adjacency @ positions - degrees * positions
        force = attraction + mass * (REPULSION * _repel(positions, mass[:, 0]) - GRAVITY * positions)
        # Division by the mass is Newton's step for the attraction, so that hubs do not overshoot.
        step = (1 - MOMENTUM) * force / mass + MOMENTUM * step
        length = np.linalg.norm(step, axis=1, keepdims=True)
        max_length = 0.1 * math.sqrt(n_nodes) * (1 - number / N_STEPS) + 1e-3  # cools down
        shorter = np.minimum(1, max_length / np.maximum(length, 1e-9))
        positions = (positions + step * shorter).astype(np.float32)
    positions = positions - positions.mean(axis=0)
    positions = positions @ np.linalg.svd(positions, full_matrices=False)[2].T
    low, high = positions.min(axis=0), positions.max(axis=0)
    scaled: Singles = 0.5 + (positions - (low + high) / 2) / np.maximum((high - low).max(), np.float32(1e-9))
    return scaled


def _start_positions(adjacency: sparse.csr_array, degrees: Singles, rng: Generator) -> Singles:
    positions: Singles = rng.normal(size=(len(degrees), 2)).astype(np.float32)
    for _ in range(N_SMOOTHING_STEPS):
        smoothed = (positions + (adjacency @ positions) / np.maximum(degrees, 1)) / 2
        basis = np.linalg.qr(smoothed - smoothed.mean(axis=0))[0]
        positions = (basis * math.sqrt(len(positions))).astype(np.float32)
    return (positions + rng.normal(scale=0.05, size=positions.shape)).astype(np.float32)


def _repel(positions: Singles, mass: Singles) -> Singles:
    """Return the sum over other nodes of mass times direction over distance."""
    x, y = np.ascontiguousarray(positions.T)
    forces = np.empty_like(positions)
    _add_forces(x, y, np.ascontiguousarray(mass), forces)
    return forces


# These options let the compiler vectorise the inner loop.
@njit(cache=True, nogil=True, fastmath=True, error_model="numpy")
def _add_forces(x, y, mass, forces):
    for i in range(len(x)):
        own_x, own_y = x[i], y[i]
        total_x, total_y = np.float32(0), np.float32(0)
        for j in range(len(x)):
            dx, dy = own_x - x[j], own_y - y[j]
            weight = mass[j] / (dx * dx + dy * dy + np.float32(1e-4))
            total_x += dx * weight
            total_y += dy * weight
        forces[i, 0], forces[i, 1] = total_x, total_y


def choose_nodes(graph: Graph, *, max_nodes: int, max_edges: int, rng: Rng = 0) -> IntArray:
    """Return the nodes to draw, ascending: the first ones of a random walk with restarts."""
    if graph.n_nodes <= max_nodes and graph.n_edges <= max_edges:
        return np.arange(graph.n_nodes)
    visited = _walk(graph.undirected(), min(max_nodes, graph.n_nodes), generator(rng))
    part = graph.subgraph(visited)
    # An edge is drawn as soon as the later of its ends is.
    later = np.maximum(part.rows.row_numbers, part.rows.indices)
    n_edges = np.cumsum(np.bincount(later, minlength=len(visited))) // (1 if graph.directed else 2)
    return np.sort(visited[: max(1, int(np.searchsorted(n_edges, max_edges, side="right")))])


def _walk(graph: Graph, n_visited: int, rng: Generator) -> IntArray:
    indptr, indices = graph.rows.indptr, graph.rows.indices
    visited: dict[int, None] = {}
    unvisited = (node for node in rng.permutation(graph.n_nodes).tolist() if node not in visited)
    start = node = next(unvisited)
    n_steps = 0
    while True:
        n_steps = n_steps + 1 if node in visited else 0
        visited[node] = None
        if len(visited) == n_visited:
            return np.array(list(visited), np.int64)
        low, high = int(indptr[node]), int(indptr[node + 1])
        if n_steps > MAX_STEPS_WITHOUT_NEW_NODE or (node == start and low == high):
            start = node = next(unvisited)
        elif low == high or rng.random() < RESTART_PROBABILITY:
            node = start
        else:
            node = int(indices[rng.integers(low, high)])
