"""The largest eigenvalue and PageRank; large undirected graphs use compiled code."""

from __future__ import annotations

from collections.abc import Sequence
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


def spectral_statistics(graph: Graph, names: Sequence[str]) -> dict[str, Any]:
    """Return ``largest_eigenvalue``, ``pagerank`` or both; compiled code sorts the nodes once for them.

    >>> spectral_statistics(Graph([[0, 1], [1, 0]]), ["largest_eigenvalue"])
    {'largest_eigenvalue': 1.0}
    """
    if graph.directed or graph.rows.n_entries < MIN_COMPILED_ENTRIES:
        functions: dict[str, Any] = {"largest_eigenvalue": _largest_eigenvalue, "pagerank": _pagerank}
        return {name: functions[name](graph) for name in names}
    from nodecopy.inference import spectral_kernels
    from nodecopy.metrics.counting_kernels import sort_by_degree

    *rows, number = sort_by_degree(graph.rows.indptr, graph.rows.indices)
    values: dict[str, Any] = {}
    if "largest_eigenvalue" in names:
        value = spectral_kernels.largest_eigenvalue(*rows, EIGENVALUE_TOLERANCE, POWER_STEPS)
        values["largest_eigenvalue"] = float(value)
    if "pagerank" in names:
        rank = spectral_kernels.pagerank(*rows, DAMPING, RESIDUAL_TOLERANCE, MAX_PAGERANK_STEPS)
        values["pagerank"] = np.asarray(rank)[number]
    return values


def largest_eigenvalue(graph: Graph) -> float:
    """Return the largest singular value of the adjacency matrix A, the root of the eigenvalue of A^T A.

    It is the largest eigenvalue of A if the graph is undirected.
    """
    return float(spectral_statistics(graph, ["largest_eigenvalue"])["largest_eigenvalue"])


def pagerank(graph: Graph) -> NDArray[np.float64]:
    """Return the PageRank of each node, with damping 0.85; it adds up to one. Weights are ignored."""
    return np.asarray(spectral_statistics(graph, ["pagerank"])["pagerank"], np.float64)


def _largest_eigenvalue(graph: Graph) -> float:
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


def _pagerank(graph: Graph) -> NDArray[np.float64]:
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
