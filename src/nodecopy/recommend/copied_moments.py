"""Moments of a matrix whose entries are copied from donor users and donor items, exactly.

``docs/copy_ease.md`` derives them. At most four items x items matrices are in memory at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from nodecopy.recommend.dense_algebra import Algebra, NumpyAlgebra, row_blocks


def copied_moments(
    matrix: sparse.csr_array,
    P: sparse.csr_array | None,
    Q: sparse.csr_array | None,
    user_share: float,
    item_share: float,
    weights: NDArray[Any] | None = None,
    algebra: Algebra | None = None,
) -> tuple[Any, Any]:
    """Return M = E[X'DX] and C = E[X'DA] of the copied input X, where D holds the weights of users.

    Parameters
    ----------
    matrix
        A, users x items, zeros and ones.
    P, Q
        Donor probabilities of users and of items, whose rows add up to 1; ``None`` for the uniform law.
    user_share, item_share
        The probabilities q1 and q2.
    weights
        Weight of each user in the objective, not negative; all are 1 by default.
    algebra
        Where and in which precision to compute; double precision on the CPU by default.
    """
    algebra = algebra or NumpyAlgebra(np.float64)
    q1, q2 = user_share, item_share
    q0 = 1 - q1 - q2
    # Off the diagonal M = S + S'. All products with Q but one are products with C', so two are enough.
    if q1:
        donor_weights = _donor_weights(P, weights, matrix.shape[0], algebra.dtype)
        G, S = algebra.grams(matrix, weights, donor_weights)
        counts = 1 * G.diagonal()
        diagonal = q0 * counts + q1 * S.diagonal()
        S *= q1 * q1 / 2
        algebra.add(S, q0 * q0 / 2, G)
        C_t = _user_copies(matrix, P, G, weights, algebra)
        algebra.add(S, q0 * q1, C_t)
        C_t *= q1
        algebra.add(C_t, q0, G)
    else:
        G = algebra.gram(matrix, weights, name="own")
        counts = 1 * G.diagonal()
        C_t, S, diagonal = q0 * G, (q0 * q0 / 2) * G, q0 * counts
    if q2:
        law = algebra.law(Q, len(G))
        GQ_t = algebra.apply_transposed(law, G)
        del G
        diagonal = diagonal + q2 * (law @ counts)
        GQ_t *= q2 / 2
        C_t += GQ_t
        algebra.add(S, q2, algebra.apply(law, C_t))
        C_t += GQ_t
        del GQ_t
    _add_transpose(S, algebra.block_rows)
    algebra.set_diagonal(S, diagonal)
    return S, C_t.T


def _user_copies(matrix: Any, P: Any, G: Any, weights: Any, algebra: Algebra) -> Any:
    """Return A'DPA."""
    n_users = matrix.shape[0]
    if P is not None:
        return algebra.gram(matrix, weights, P, name="copied")
    if n_users == 1:
        return 1 * G
    counts = algebra.array(np.bincount(matrix.indices, minlength=matrix.shape[1]))
    return (G.diagonal()[:, None] * counts - G) / (n_users - 1)


def _donor_weights(P: Any, weights: Any, n_users: int, dtype: Any) -> Any:
    """Return the expected total weight of the users whose donor is each user."""
    if P is not None:
        return np.asarray(P.astype(dtype).sum(axis=0) if weights is None else P.T @ weights)
    if weights is None or n_users == 1:
        return weights
    return (weights.sum() - weights) / (n_users - 1)


def _add_transpose(matrix: Any, block_rows: int) -> None:
    """Add its transpose to a square matrix in place, by blocks."""
    blocks = list(row_blocks(len(matrix), block_rows))
    for number, rows in enumerate(blocks):
        for columns in blocks[number:]:
            total = matrix[rows, columns] + matrix[columns, rows].T
            matrix[rows, columns] = total
            matrix[columns, rows] = total.T
