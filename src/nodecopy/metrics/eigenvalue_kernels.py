"""Compiled eigenvalues and PageRank of large undirected graphs, by Krylov methods.

Nodes should be sorted by degree, which halves the time of a product: the lengths of rows are predictable.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nodecopy._core.arrays import IntArray
from nodecopy._core.kernels import njit

compiled = njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})
in_order = njit(cache=True, nogil=True)  # sums over neighbours take a sixth longer if reordered
MAX_BISECTIONS = 80
SINGLE_PRECISION_RANGE = 1e-6  # factor by which residuals fall before they are recomputed in double precision


@in_order
def _sum_neighbours(indptr: IntArray, indices: IntArray, vector: Any, image: Any) -> None:
    for u in range(len(image)):
        total = 0.0
        for e in range(np.uint64(indptr[u]), np.uint64(indptr[u + 1])):
            total += vector[np.uint64(indices[e])]
        image[u] = total


@compiled
def largest_eigenvalue(indptr: IntArray, indices: IntArray, tolerance: float, max_steps: int) -> Any:
    """Return the largest eigenvalue by Lanczos steps that start from the degrees."""
    n = len(indptr) - 1
    vector, previous, image = np.empty(n), np.zeros(n), np.empty(n)
    for u in range(n):
        vector[u] = indptr[u + 1] - indptr[u]
    vector /= np.sqrt((vector * vector).sum())
    diagonal, beside = np.empty(max_steps), np.zeros(max_steps + 1)
    value = 0.0
    for k in range(max_steps):
        product = square = 0.0
        _sum_neighbours(indptr, indices, vector, image)
        for u in range(n):
            product += image[u] * vector[u]
        diagonal[k] = product
        for u in range(n):
            image[u] -= product * vector[u] + beside[k] * previous[u]
            square += image[u] * image[u]
        beside[k + 1] = np.sqrt(square)
        last, value = value, _largest_of_tridiagonal(diagonal[: k + 1], beside[: k + 1], value)
        if (k and value - last <= tolerance * value) or beside[k + 1] <= tolerance * value:
            break
        for u in range(n):
            previous[u], vector[u] = vector[u], image[u] / beside[k + 1]
    return value


@compiled
def _largest_of_tridiagonal(diagonal: Any, beside: Any, low: float) -> float:
    """Return the largest eigenvalue, which is at least ``low``, by bisection with Sturm's count."""
    size = len(diagonal)
    high = low
    for i in range(size):
        high = max(high, diagonal[i] + beside[i] + (beside[i + 1] if i + 1 < size else 0.0))
    for _ in range(MAX_BISECTIONS):
        middle = 0.5 * (low + high)
        pivot, is_below = 1.0, False
        for i in range(size):
            pivot = diagonal[i] - middle - (beside[i] * beside[i] / pivot if i else 0.0)
            pivot = 1e-300 if pivot == 0.0 else pivot
            is_below |= pivot > 0.0
        low, high = (middle, high) if is_below else (low, middle)
        if high - low <= 1e-15 * high:
            break
    return high


@compiled
def pagerank(indptr: IntArray, indices: IntArray, damping: float, tolerance: float, max_steps: int) -> Any:
    """Return the PageRank of each node of an undirected graph by preconditioned conjugate gradients.

    The system x = damping A D^-1 x + 1 is symmetric in z = D^-1 x: (D - damping A) z = 1, with D as the
    preconditioner. Then x is scaled to sum one, which also distributes the rank of nodes without edges.
    Steps are in single precision; each time that the residual has fallen by ``SINGLE_PRECISION_RANGE`` it is
    recomputed in double precision (van der Vorst and Ye, 2000).
    """
    n, factor = len(indptr) - 1, np.float32(damping)
    solution, degrees, inverse = np.zeros(n), np.empty(n, np.float32), np.empty(n, np.float32)
    for u in range(n):
        degrees[u] = max(indptr[u + 1] - indptr[u], 1)
        inverse[u] = np.float32(1.0) / degrees[u]
    residual, direction, image = np.ones(n, np.float32), inverse.copy(), np.empty(n, np.float32)
    square = _squared_norm(residual, inverse)
    limit, next_replacement = tolerance * tolerance * square, SINGLE_PRECISION_RANGE**2 * square
    for _ in range(max_steps):
        if square <= limit:
            break
        _sum_neighbours(indptr, indices, direction, image)
        curvature = 0.0
        for u in range(n):
            image[u] = degrees[u] * direction[u] - factor * image[u]
            curvature += np.float64(image[u] * direction[u])
        length, before = square / curvature, square
        step = np.float32(length)
        for u in range(n):
            solution[u] += length * direction[u]
            residual[u] -= step * image[u]
        square = _squared_norm(residual, inverse)
        if square <= next_replacement:
            _replace_residual(indptr, indices, damping, solution, residual)
            square = _squared_norm(residual, inverse)
            next_replacement = SINGLE_PRECISION_RANGE**2 * square
        ratio = np.float32(square / before)
        for u in range(n):
            direction[u] = residual[u] * inverse[u] + ratio * direction[u]
    total = 0.0
    for u in range(n):
        solution[u] *= degrees[u]
        total += solution[u]
    return solution / total


@compiled
def _replace_residual(indptr: IntArray, indices: IntArray, damping: float, x: Any, residual: Any) -> None:
    """Write 1 - (D - damping A) x, computed in double precision."""
    image = np.empty(len(residual))
    _sum_neighbours(indptr, indices, x, image)
    for u in range(len(residual)):
        residual[u] = 1.0 - max(indptr[u + 1] - indptr[u], 1) * x[u] + damping * image[u]


@compiled
def _squared_norm(residual: Any, inverse: Any) -> float:
    """Return the sum of the squares of D^-1/2 times the residual."""
    total = 0.0
    for u in range(len(residual)):
        total += np.float64(residual[u]) * np.float64(residual[u] * inverse[u])
    return total
