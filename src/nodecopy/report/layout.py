"""Where the nodes of a picture stand, and which nodes of a large graph it shows."""

from __future__ import annotations

import math

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy import sparse

from nodecopy._core.csr import IntArray
from nodecopy._core.random import Rng, generator
from nodecopy.graph import Graph

Float = NDArray[np.float32]

N_STEPS = 300
REPULSION, GRAVITY, STILL = 2.0, 0.02, 0.9
RESTART = 0.15
"""Probability that a walk starts anew, as in Leskovec and Faloutsos (2006), "Sampling from large graphs"."""
PATIENCE = 100


def places(graph: Graph, *, rng: Rng = 0) -> Float:
    """Places ``[n_nodes, 2]`` between 0 and 1: edges pull, all nodes push each other away.

    The forces are those of ForceAtlas2 (Jacomy et al., 2014): pulls grow with the length of an edge,
    pushes with the product of the degrees over the distance.
    """
    adjacency = sparse.csr_array(graph.undirected().adjacency, copy=True)
    adjacency.data = np.ones(adjacency.nnz, np.float32)
    n_nodes = graph.n_nodes
    if n_nodes < 2:
        return np.full((n_nodes, 2), 0.5, np.float32)
    from nodecopy.report.layout_kernels import repulsion

    degrees: Float = np.diff(adjacency.indptr).astype(np.float32)[:, None]
    mass = degrees + 1
    here = _smooth(adjacency, degrees, generator(rng)) * np.float32(math.sqrt(n_nodes))
    step = np.zeros_like(here)
    for number in range(N_STEPS):
        pull = adjacency @ here - degrees * here
        force = pull + mass * (REPULSION * repulsion(here, mass[:, 0]) - GRAVITY * here)
        # Newton's step for the pulls alone, so that hubs do not overshoot; it cools down to rest.
        step = (1 - STILL) * force / mass + STILL * step
        length = np.linalg.norm(step, axis=1, keepdims=True)
        longest = 0.1 * math.sqrt(n_nodes) * (1 - number / N_STEPS) + 1e-3
        here = (here + step * np.minimum(1, longest / np.maximum(length, 1e-9))).astype(np.float32)
    here = here - here.mean(axis=0)
    here = here @ np.linalg.svd(here, full_matrices=False)[2].T  # lying down, since screens are wide
    low, high = here.min(axis=0), here.max(axis=0)
    centred: Float = 0.5 + (here - (low + high) / 2) / np.maximum((high - low).max(), np.float32(1e-9))
    return centred


def _smooth(adjacency: sparse.csr_array, degrees: Float, draws: Generator) -> Float:
    """Random places that neighbours were let agree upon for a while: nearly the first eigenvectors."""
    here: Float = draws.normal(size=(len(degrees), 2)).astype(np.float32)
    for _ in range(60):
        agreed = (here + (adjacency @ here) / np.maximum(degrees, 1)) / 2
        basis = np.linalg.qr(agreed - agreed.mean(axis=0))[0]
        here = (basis * math.sqrt(len(here))).astype(np.float32)
    return (here + draws.normal(scale=0.05, size=here.shape)).astype(np.float32)


def view(graph: Graph, *, most_nodes: int, most_edges: int, rng: Rng = 0) -> IntArray:
    """Nodes of a part that can be drawn, ascending: those that a random walk with restarts meets first.

    All nodes, where they and their edges are not too many.
    """
    if graph.n_nodes <= most_nodes and graph.n_edges <= most_edges:
        return np.arange(graph.n_nodes)
    found = _walk(graph.undirected(), min(most_nodes, graph.n_nodes), generator(rng))
    part = graph.subgraph(found)
    # An edge is there as soon as the later of its ends is.
    later = np.maximum(part.rows.row_numbers, part.rows.indices)
    n_edges = np.cumsum(np.bincount(later, minlength=len(found))) // (1 if graph.directed else 2)
    return np.sort(found[: max(1, int(np.searchsorted(n_edges, most_edges, side="right")))])


def _walk(graph: Graph, n_wanted: int, draws: Generator) -> IntArray:
    """The first nodes of a walk; where it has met nobody new for long, it goes on from a node not met yet."""
    indptr, indices = graph.rows.indptr, graph.rows.indices
    found: dict[int, None] = {}
    fresh = (node for node in draws.permutation(graph.n_nodes).tolist() if node not in found)
    start = here = next(fresh)
    idle = 0
    while True:
        idle = idle + 1 if here in found else 0
        found[here] = None
        if len(found) == n_wanted:
            return np.array(list(found), np.int64)
        low, high = int(indptr[here]), int(indptr[here + 1])
        if idle > PATIENCE or (here == start and low == high):
            start = here = next(fresh)
        elif low == high or draws.random() < RESTART:
            here = start
        else:
            here = int(indices[draws.integers(low, high)])
