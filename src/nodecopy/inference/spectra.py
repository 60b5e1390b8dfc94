"""The largest eigenvalue and PageRank; large undirected graphs use compiled code."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from nodecopy.graph import Graph
from nodecopy.metrics.structure import MIN_COMPILED_ENTRIES

DAMPING, PAGERANK_TOLERANCE, MAX_PAGERANK_STEPS = 0.85, 1e-10, 200
POWER_STEPS = 300
"""Steps of the power iteration for the largest eigenvalue, at most."""
EIGENVALUE_TOLERANCE, RESIDUAL_TOLERANCE = 1e-10, 1e-8
"""Relative change of the eigenvalue, and relative residual of PageRank, at which compiled code ends."""


def _is_compiled(graph: Graph) -> bool:
    return not graph.directed and graph.rows.n_entries >= MIN_COMPILED_ENTRIES


def largest_eigenvalue(graph: Graph) -> float:
    """Return the largest singular value of the adjacency matrix A, the root of the eigenvalue of A^T A.

    It is the largest eigenvalue of A if the graph is undirected.
    """
    if _is_compiled(graph):
        from nodecopy.inference import spectral_kernels

        rows = graph.rows
        return float(
            spectral_kernels.largest_eigenvalue(rows.indptr, rows.indices, EIGENVALUE_TOLERANCE, POWER_STEPS)
        )
    matrix: Any = _pattern(graph)
    vector, value = np.ones(graph.n_nodes) / max(graph.n_nodes, 1) ** 0.5, 0.0
    for _ in range(POWER_STEPS):
        image = matrix @ vector
        image = matrix.T @ image
        length = float(np.linalg.norm(image))
        if length <= value * (1 + EIGENVALUE_TOLERANCE):
            break
        vector, value = image / length, length
    return float(value**0.5)


def pagerank(graph: Graph) -> NDArray[np.float64]:
    """Return the PageRank of each node, with damping 0.85; it adds up to one. Weights are ignored."""
    if _is_compiled(graph):
        from nodecopy.inference import spectral_kernels

        settings = DAMPING, RESIDUAL_TOLERANCE, MAX_PAGERANK_STEPS
        return np.asarray(spectral_kernels.pagerank(graph.rows.indptr, graph.rows.indices, *settings))
    n_nodes = graph.n_nodes
    out = np.maximum(graph.degrees, 1)
    transition = sparse.csr_array(_pattern(graph).T / out)
    is_sink = graph.degrees == 0
    rank = np.full(n_nodes, 1 / max(n_nodes, 1))
    for _ in range(MAX_PAGERANK_STEPS):
        previous = rank
        base = (1 - DAMPING + DAMPING * rank[is_sink].sum()) / n_nodes
        rank = DAMPING * (transition @ rank) + base
        if np.abs(rank - previous).sum() < PAGERANK_TOLERANCE:
            break
    return np.asarray(rank, np.float64)


def _pattern(graph: Graph) -> sparse.csr_array:
    rows = graph.rows
    ones = np.ones(rows.n_entries)
    return sparse.csr_array((ones, rows.indices, rows.indptr), (rows.n_rows, rows.n_columns))
