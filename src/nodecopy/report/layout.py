"""Which nodes of a large graph are drawn."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from nodecopy._core.arrays import IntArray
from nodecopy._core.random import Rng, generator
from nodecopy.graph import Graph

RESTART_PROBABILITY = 0.15  # as in Leskovec and Faloutsos (2006), "Sampling from large graphs"
MAX_STEPS_WITHOUT_NEW_NODE = 100


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
