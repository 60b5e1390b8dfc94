"""The sparse form of linear recommenders: each item is predicted from its most important items.

For 10^5 items and more, dense items x items matrices do not fit into memory. Here every matrix keeps the
``n_entries`` most important entries of each row, and the weights of an item are the ridge regression on
``n_neighbours`` other items, a small dense system for each item. The systems are exact for these
neighbours up to the entries that were left out of the moments.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from nodecopy._core.csr import keep_entries
from nodecopy.recommend import sparse_kernels

ENTRIES_PER_NEIGHBOUR = 4
"""Entries in each row of the moments, as a multiple of the number of neighbours."""


def sparse_moments(
    matrix: sparse.csr_array,
    P: sparse.csr_array | None,
    Q: sparse.csr_array | None,
    user_share: float,
    item_share: float,
    weights: NDArray[Any] | None,
    n_neighbours: int,
) -> tuple[sparse.csr_array, sparse.csr_array]:
    """Return M and C' of :func:`.copied_moments` with the most important entries of each row.

    The importance of an entry (i, j) is its value divided by the root of one plus the number of users of j.
    """
    n_largest = ENTRIES_PER_NEIGHBOUR * n_neighbours
    q1, q2 = user_share, item_share
    q0 = 1 - q1 - q2
    A = sparse.csr_array(matrix.astype(np.float32))
    w = np.ones(A.shape[0]) if weights is None else weights
    importance = 1 / np.sqrt(1.0 + np.bincount(A.indices, minlength=A.shape[1]))

    def product(left: Any, right: Any) -> sparse.csr_array:
        return sparse_kernels.largest_products(
            sparse.csr_array(left), sparse.csr_array(right), n_largest, importance
        )

    def gram(user_weights: NDArray[Any]) -> sparse.csr_array:
        return product(_scale_rows(A, user_weights).T, A)

    def shorten(matrix: Any) -> sparse.csr_array:
        return sparse_kernels.largest_entries_of(sparse.csr_array(matrix), 2 * n_largest, importance)

    G = gram(w)
    counts = np.asarray(_scale_rows(A, w).sum(axis=0))
    C_t, S, diagonal = q0 * G, (q0 * q0 / 2) * G, q0 * counts
    if q1 and P is not None:
        donor_weights = P.T @ w
        diagonal = diagonal + q1 * np.asarray(_scale_rows(A, donor_weights).sum(axis=0))
        H = product(_scale_rows(A, w).T, product(P, A))
        C_t = C_t + q1 * H
        S = shorten(S + q0 * q1 * H)
        del H
        S = shorten(S + (q1 * q1 / 2) * gram(donor_weights))
    if q2 and Q is not None:
        diagonal = diagonal + q2 * (Q @ counts)
        GQ_t = (q2 / 2) * sparse.csr_array(product(Q, G).T)
        del G
        C_t = shorten(C_t + GQ_t)
        S = shorten(S + q2 * product(Q, C_t))
        C_t = shorten(C_t + GQ_t)
        del GQ_t
    C_t = _without_diagonal(sparse.csr_array(C_t.astype(np.float32)))
    S = _without_diagonal(sparse.csr_array(S.astype(np.float32)))
    M = S + sparse.csr_array(S.T) + sparse.diags_array(diagonal.astype(np.float32), format="csr")
    return sparse.csr_array(M.astype(np.float32)), C_t


def solve_sparse(
    M: sparse.csr_array, C_t: sparse.csr_array, regularisation: Any, n_neighbours: int
) -> sparse.csr_array:
    """Return the weights B, whose column j holds the regression of item j on its neighbours.

    ``regularisation`` is lambda, or that of each item.
    """
    penalties = np.broadcast_to(np.asarray(regularisation, np.float32), (M.shape[0],))
    # The gain of a regression on the item i alone is C_ij^2 / (M_ii + lambda).
    importance = 1 / np.sqrt(M.diagonal() + penalties)
    targets = sparse_kernels.largest_entries_of(C_t, n_neighbours, importance)

    def solve(first: int) -> NDArray[np.float32]:
        last = min(first + sparse_kernels.ROWS_PER_TASK, targets.shape[0])
        return sparse_kernels.solve_neighbourhoods(M, targets, penalties, first, last)

    blocks = range(0, targets.shape[0], sparse_kernels.ROWS_PER_TASK)
    data = np.concatenate(list(sparse_kernels.run_tasks(solve, blocks)))
    B_t = sparse.csr_array((data, targets.indices, targets.indptr), shape=targets.shape)
    return sparse.csr_array(B_t.T)


def _scale_rows(matrix: sparse.csr_array, scale: NDArray[Any]) -> sparse.csr_array:
    data = matrix.data * np.repeat(scale.astype(np.float32), np.diff(matrix.indptr))
    return sparse.csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)


def _without_diagonal(matrix: sparse.csr_array) -> sparse.csr_array:
    row = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    return keep_entries(matrix, row != matrix.indices)
