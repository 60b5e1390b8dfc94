"""Compiled eigenvalues and PageRank of large undirected graphs, by Krylov methods.

They need 10 to 25 products with the adjacency matrix on graphs with 10^5 nodes, where iterations of single
vectors need 40 to 60. Starting from the results of the observed graph would save none of them. Nodes are
sorted by degree before, which halves the time of a product: the lengths of rows become predictable.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nodecopy._core.compilation import njit
from nodecopy._core.csr import IntArray

compiled = njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})
in_order = njit(cache=True, nogil=True)
"""For sums over neighbours: vectors of gathered numbers, which reordering allows, take a sixth longer."""
BISECTIONS = 80


@compiled
def sort_by_degree(indptr: IntArray, indices: IntArray) -> Any:
    """Return the rows of the same graph with nodes in descending order of degree, and the new numbers."""
    n, largest = len(indptr) - 1, 0
    for u in range(n):
        largest = max(largest, indptr[u + 1] - indptr[u])
    places = np.zeros(largest + 2, np.int64)
    for u in range(n):
        places[largest - (indptr[u + 1] - indptr[u]) + 1] += 1
    for d in range(largest + 1):
        places[d + 1] += places[d]
    number, node = np.empty(n, indices.dtype), np.empty(n, indices.dtype)
    for u in range(n):
        place = largest - (indptr[u + 1] - indptr[u])
        number[u] = places[place]
        node[places[place]] = u
        places[place] += 1
    starts, targets, position = np.empty_like(indptr), np.empty_like(indices), 0
    for place in range(n):
        starts[place] = position
        for e in range(indptr[node[place]], indptr[node[place] + 1]):
            targets[position] = number[indices[e]]
            position += 1
    starts[n] = position
    return starts, targets, number


@in_order
def _sum_neighbours(indptr: IntArray, indices: IntArray, vector: Any, image: Any) -> None:
    for u in range(len(image)):
        total = 0.0
        for e in range(np.uint64(indptr[u]), np.uint64(indptr[u + 1])):
            total += vector[np.uint64(indices[e])]
        image[u] = total


@compiled
def largest_eigenvalue(indptr: IntArray, indices: IntArray, tolerance: float, max_steps: int) -> Any:
    """Return the largest eigenvalue by Lanczos steps that start from the degrees.

    Vectors are not made orthogonal again: what is lost are copies of eigenvalues, not the largest one. Nodes
    should be sorted by degree.
    """
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
    for _ in range(BISECTIONS):
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
    """Return the PageRank of each node of an undirected graph by conjugate gradients.

    With S = D^-1/2, the system x = damping A D^-1 x + 1 is symmetric in y = S x, and x is scaled to sum one
    at the end, which also distributes the rank of nodes without edges. Nodes should be sorted by degree.
    """
    n = len(indptr) - 1
    scale, rank, image, scaled = np.empty(n), np.zeros(n), np.empty(n), np.empty(n)
    for u in range(n):
        scale[u] = 1.0 / np.sqrt(max(indptr[u + 1] - indptr[u], 1))
    residual, direction = scale.copy(), scale.copy()
    square = (residual * residual).sum()
    limit = tolerance * tolerance * square
    for _ in range(max_steps):
        if square <= limit:
            break
        for u in range(n):
            scaled[u] = direction[u] * scale[u]
        curvature = 0.0
        _sum_neighbours(indptr, indices, scaled, image)
        for u in range(n):
            image[u] = direction[u] - damping * scale[u] * image[u]
            curvature += direction[u] * image[u]
        length, before, square = square / curvature, square, 0.0
        for u in range(n):
            rank[u] += length * direction[u]
            residual[u] -= length * image[u]
            square += residual[u] * residual[u]
        for u in range(n):
            direction[u] = residual[u] + square / before * direction[u]
    rank /= scale
    return rank / rank.sum()
