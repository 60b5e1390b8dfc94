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

from nodecopy._core.worker_pools import map_on_cores
from nodecopy.recommend.sparse_kernels import (
    ROWS_PER_TASK,
    largest_products,
    largest_sums,
    solve_neighbourhoods,
)

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
    """Return S and C' of :func:`.copied_moments`, where M = S + S', with the largest entries of each row.

    Largest are those of the largest importance: the value of an entry (i, j) divided by the root of one plus
    the number of users of j. Sums are computed by blocks of rows, and their terms are deleted, so that the
    peak is about eight matrices with ``n_entries`` entries per row.
    """
    n_entries = ENTRIES_PER_NEIGHBOUR * n_neighbours
    q1, q2 = user_share, item_share
    q0 = 1 - q1 - q2
    A = sparse.csr_array(matrix.astype(np.float32))
    w = np.ones(A.shape[0]) if weights is None else weights
    importance = 1 / np.sqrt(1.0 + np.bincount(A.indices, minlength=A.shape[1]))

    def product(left: Any, right: Any) -> sparse.csr_array:
        return largest_products(sparse.csr_array(left), sparse.csr_array(right), n_entries, importance)

    def total(*terms: tuple[float, sparse.csr_array], has_diagonal: bool = True) -> sparse.csr_array:
        return largest_sums(terms, 2 * n_entries, importance, has_diagonal)

    G = product(_scale_rows(A, w).T, A)
    counts = np.asarray(_scale_rows(A, w).sum(axis=0))
    diagonal, S_terms, C_terms = q0 * counts, [(q0 * q0 / 2, G)], [(q0, G)]
    if q1 and P is not None:
        donor_weights = P.T @ w
        diagonal = diagonal + q1 * np.asarray(_scale_rows(A, donor_weights).sum(axis=0))
        H = product(_scale_rows(A, w).T, product(P, A))
        C_terms += [(q1, H)]
        S_terms += [(q0 * q1, H), (q1 * q1 / 2, product(_scale_rows(A, donor_weights).T, A))]
        del H
    has_items = bool(q2 and Q is not None)
    S = total(*S_terms, has_diagonal=has_items)
    del S_terms
    C_t = total(*C_terms, has_diagonal=has_items)
    del C_terms
    if Q is not None and has_items:
        diagonal = diagonal + q2 * (Q @ counts)
        QG = product(Q, G)
        del G
        GQ_t = sparse.csr_array(QG.T)
        del QG
        C_t = total((1.0, C_t), (q2 / 2, GQ_t))
        S = total((1.0, S), (q2, product(Q, C_t)), has_diagonal=False)
        C_t = total((1.0, C_t), (q2 / 2, GQ_t), has_diagonal=False)
        del GQ_t
    return sparse.csr_array(S + sparse.diags_array((diagonal / 2).astype(np.float32), format="csr")), C_t


def solve_sparse(
    S: sparse.csr_array, C_t: sparse.csr_array, regularisation: Any, n_neighbours: int
) -> sparse.csr_array:
    """Return the weights B, whose column j holds the regression of item j on its neighbours; M is S + S'.

    ``regularisation`` is lambda, or that of each item.
    """
    penalties = np.broadcast_to(np.asarray(regularisation, np.float32), (S.shape[0],))
    # The gain of a regression on the item i alone is C_ij^2 / (M_ii + lambda).
    importance = 1 / np.sqrt(2 * S.diagonal() + penalties)
    targets = largest_sums([(1.0, C_t)], n_neighbours, importance)

    def solve(first: int) -> NDArray[np.float32]:
        last = min(first + ROWS_PER_TASK, targets.shape[0])
        return solve_neighbourhoods(S, targets, penalties, first, last)

    blocks = range(0, targets.shape[0], ROWS_PER_TASK)
    data = np.concatenate(list(map_on_cores(solve, blocks)))
    B_t = sparse.csr_array((data, targets.indices, targets.indptr), shape=targets.shape)
    return sparse.csr_array(B_t.T)


def _scale_rows(matrix: sparse.csr_array, scale: NDArray[Any]) -> sparse.csr_array:
    data = matrix.data * np.repeat(scale.astype(np.float32), np.diff(matrix.indptr))
    return sparse.csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)
