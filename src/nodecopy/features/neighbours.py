"""Nearest neighbours: exact ones among up to a few hundred thousand rows, approximate ones among millions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from nodecopy._core.arrays import Array, Floats, IntArray
from nodecopy._core.checks import check_finite, check_integer
from nodecopy.errors import InputError
from nodecopy.features.scaling import as_dense, check_matrix, stored_values

MAX_BLOCK_NUMBERS = 2**21  # numbers in memory at once: 16 MB for each of a handful of arrays
MAX_LEAF, N_TREES = 512, 6  # rows of a leaf, and trees, of the approximate search


class NeighbourSearch:
    """Search for nearest rows by Euclidean distance; the result is exact and the same on every machine.

    A matrix product gives all distances up to rounding. Candidates that could be among the nearest, given a
    bound on that rounding, are measured again by differences. Nodes search from their rows of ``embeddings``,
    or of ``queries``, which may also be new points (``queries_are_nodes=False``).
    """

    def __init__(
        self,
        embeddings: Any,
        *,
        queries: Any = None,
        queries_are_nodes: bool = True,
        owner: str = "NeighbourSearch",
    ) -> None:
        matrix = as_float_matrix(embeddings, f"embeddings of {owner}")
        parts = [matrix] if queries is None else [matrix, as_float_matrix(queries, f"queries of {owner}")]
        shape = matrix.shape if queries_are_nodes else (parts[-1].shape[0], matrix.shape[1])
        if parts[-1].shape != shape:
            raise InputError(f"queries of {owner}", f"must have shape {shape}; got {parts[-1].shape}.")
        self.owner, self.queries_are_nodes = owner, queries_are_nodes
        values = [stored_values(part) for part in parts]
        largest = max(float(np.abs(part).max(initial=0.0)) for part in values)
        # Products and sums of small whole numbers are exact, so nothing has to be measured again.
        self.is_exact = largest**2 * matrix.shape[1] < 2**50 if largest < 2**25 else False
        self.is_exact = self.is_exact and all(bool((part == np.floor(part)).all()) for part in values)
        # A power of two scales without rounding and keeps squares from overflowing.
        scale = 2.0 ** -np.clip(float(np.frexp(largest)[1]), -1000, 1000)
        parts = [part * scale for part in parts]
        self.matrix, self.queries = parts[0], parts[-1]
        if not (self.is_exact or sparse.issparse(matrix)):
            centre = self.matrix.mean(axis=0)
            parts = [part - centre for part in parts]
        self.centred, self.centred_queries = parts[0], parts[-1]
        norms = [np.asarray((part * part).sum(axis=1)) for part in parts]
        self.norms, self.query_norms = norms[0], norms[-1]
        self.rounding = 0.0 if self.is_exact else 16 * (matrix.shape[1] + 8) * np.finfo(float).eps

    def nearest(
        self, n_neighbours: int, *, of: IntArray | None = None, include_self: bool = True
    ) -> tuple[IntArray, IntArray]:
        """Return the nearest rows of every node, or of those in ``of``, as CSR pointers and indices.

        A node is its own first neighbour with ``include_self``; ties go to the lowest index.
        """
        n = self.matrix.shape[0]
        leaves_self_out = self.queries_are_nodes and not include_self
        limit, limit_name = (n - 1, "n_nodes - 1") if leaves_self_out else (n, "n_nodes")
        name = f"n_neighbours of {self.owner}"
        check_integer(n_neighbours, name, low=1, high=limit, high_name=limit_name)
        nodes = np.arange(self.queries.shape[0]) if of is None else of
        counts: list[IntArray] = [np.zeros(1, np.int64)]
        neighbours: list[IntArray] = [np.zeros(0, np.int64)]
        step = max(1, MAX_BLOCK_NUMBERS // max(1, n))
        for start in range(0, len(nodes), step):
            block = nodes[start : start + step]
            row, node, distance = self.candidates(block, n_neighbours, include_self)
            is_other = node != block[row] if self.queries_are_nodes else np.ones(len(row), bool)
            order = np.lexsort((node, is_other, distance, row))
            row, node = row[order], node[order]
            first = np.searchsorted(row, np.arange(len(block)))
            is_near = np.arange(len(row)) - first[row] < n_neighbours
            counts.append(np.bincount(row[is_near], minlength=len(block)))
            neighbours.append(node[is_near])
        return np.cumsum(np.concatenate(counts)), np.concatenate(neighbours)

    def candidates(
        self, nodes: IntArray, n_neighbours: int, include_self: bool
    ) -> tuple[IntArray, IntArray, Floats]:
        distance = as_dense(self.centred_queries[nodes] @ self.centred.T)
        distance *= -2.0
        distance += self.norms
        distance += self.query_norms[nodes, None]
        np.maximum(distance, 0.0, out=distance)
        if self.queries_are_nodes:
            distance[np.arange(len(nodes)), nodes] = 0.0 if include_self else np.inf
        threshold = np.partition(distance, n_neighbours - 1, axis=1)[:, n_neighbours - 1]
        threshold += self.rounding * (self.query_norms[nodes] + self.norms.max())
        row, candidate = np.nonzero(distance <= threshold[:, None])
        if self.is_exact:
            return row, candidate, distance[row, candidate]
        return row, candidate, self.squared_distances(nodes[row], candidate)

    def squared_distances(self, first: IntArray, second: IntArray) -> Floats:
        squared = np.empty(len(first))
        step = max(1, MAX_BLOCK_NUMBERS // max(1, self.matrix.shape[1]))
        for start in range(0, len(first), step):
            part = slice(start, start + step)
            difference = as_dense(self.queries[first[part]] - self.matrix[second[part]])
            squared[part] = np.square(difference).sum(axis=1)
        return squared


def as_float_matrix(values: Any, name: str) -> Any:
    """Return a finite matrix of doubles, dense or CSR, or raise an error that names the parameter."""
    matrix = check_matrix(values, name).astype(np.float64)
    check_finite(stored_values(matrix), name)
    return matrix


def approximate_nearest(embedding: Array, k: int) -> tuple[IntArray, Array]:
    """Return the ``k`` other rows with the largest cosines, and these cosines; rows have length one or zero.

    Up to a few thousand rows the result is exact. Otherwise, rows are divided at the median of random
    projections until the parts are small, several times, and neighbours come from the parts of a row: the
    time is proportional to the number of rows, and most of the nearest rows are found.
    """
    n = len(embedding)
    if k == 0:
        return np.zeros((n, 0), np.int32), np.zeros((n, 0), embedding.dtype)
    if n <= 4 * MAX_LEAF:
        return _nearest_in_leaf(embedding, np.arange(n), k)
    rng = np.random.default_rng(0)  # fixed, so that the neighbours depend on the rows only
    nearest, cosines = np.zeros((n, 0), np.int32), np.zeros((n, 0), embedding.dtype)
    earlier: list[IntArray] = []  # the part of each row in the trees before
    for _ in range(N_TREES):
        n_leaves = 2 ** int(np.ceil(np.log2(n / MAX_LEAF)))
        leaf_of = np.zeros(n, np.int32)
        while leaf_of.max() + 1 < n_leaves:
            direction: Array = rng.normal(size=(embedding.shape[1], 1)).astype(embedding.dtype)
            # The rows have length one: these products are in (-0.5, 0.5), and the parts stay in order.
            projection = (embedding @ (direction / (2.1 * np.linalg.norm(direction)))).ravel()
            order = np.argsort(leaf_of + projection.astype(np.float64))
            sizes = np.bincount(leaf_of)
            starts = np.repeat(np.cumsum(sizes) - sizes, sizes)
            is_upper = 2 * (np.arange(n) - starts) >= np.repeat(sizes, sizes)
            leaf_of[order] = 2 * leaf_of[order] + is_upper
        order = np.argsort(leaf_of, kind="stable")
        found, values = np.empty((n, k), np.int32), np.empty((n, k), embedding.dtype)
        for members in np.split(order, np.cumsum(np.bincount(leaf_of))[:-1]):
            found[members], values[members] = _nearest_in_leaf(embedding, members, k, earlier)
        earlier.append(leaf_of)
        nearest, cosines = np.hstack([nearest, found]), np.hstack([cosines, values])
        if nearest.shape[1] > k:
            best = np.argpartition(-cosines, k - 1, axis=1)[:, :k]
            nearest, cosines = (np.take_along_axis(part, best, 1) for part in (nearest, cosines))
    return nearest, cosines


def _nearest_in_leaf(
    embedding: Array, members: IntArray, k: int, earlier: Sequence[IntArray] = ()
) -> tuple[IntArray, Array]:
    """Return the other members with the largest cosines; the row itself, with cosine 0, fills up.

    Pairs that were in a part together ``earlier`` have the cosine -1.
    """
    rows = embedding[members]
    cosines = rows @ rows.T
    np.fill_diagonal(cosines, -1.0)
    for leaf_of in earlier:
        cosines[leaf_of[members, None] == leaf_of[members]] = -1.0
    n_found = min(k, len(members) - 1)
    best = np.argpartition(-cosines, max(n_found - 1, 0), axis=1)[:, :n_found]
    values = np.take_along_axis(cosines, best, 1)
    if n_found < k:
        own = np.repeat(members[:, None], k - n_found, axis=1)
        return np.hstack([members[best], own]), np.hstack([values, np.zeros(own.shape, values.dtype)])
    return members[best], values
