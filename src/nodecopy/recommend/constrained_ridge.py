"""Ridge regression of each item on the others, in closed form: the solver of EASE and CopyEASE.

Both minimise E||A - X B||^2 + lambda ||B||^2 with diag(B) = 0, where A is the observed matrix and X the
model's input. With M = E[X'X], C = E[X'A] and K = (M + lambda I)^-1 the solution is

    B = K C - K diag(mu),   mu_i = (K C)_ii / K_ii.

Lambda may also be a vector, with a value for each item; lambda I is then a diagonal matrix.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from nodecopy._core.csr import is_dense_product_faster
from nodecopy.errors import InputError

Matrix = NDArray[np.floating[Any]]
BLOCK_SIZE = 256


def co_occurrences(matrix: sparse.csr_array, dtype: Any, weights: NDArray[Any] | None = None) -> Matrix:
    """Return A'A, or A'WA with weights of users, as a dense array in C order."""
    right = matrix.astype(dtype)
    transpose = sparse.csr_array(matrix.T, dtype=dtype)  # SciPy would convert any other format in a product
    if is_dense_product_faster(transpose):
        return _dense_co_occurrences(right.toarray(), weights)
    if weights is not None:
        right = sparse.diags_array(weights.astype(dtype)) @ right
    return np.asarray((transpose @ right).toarray())


def co_occurrence_pair(
    matrix: sparse.csr_array, dtype: Any, first: NDArray[Any] | None, second: NDArray[Any] | None
) -> tuple[Matrix, Matrix]:
    """Return A'WA for two vectors of weights of users, ``None`` for ones.

    Sparse products take most of their time for positions, which are the same: the second weights are the
    imaginary part of one product.
    """
    transpose = sparse.csr_array(matrix.T, dtype=dtype)
    if is_dense_product_faster(transpose):
        dense = matrix.astype(dtype).toarray()
        return _dense_co_occurrences(dense, first), _dense_co_occurrences(dense, second)
    weights = np.empty(matrix.shape[0], np.result_type(dtype, np.complex64))
    weights.real, weights.imag = (1.0 if part is None else part for part in (first, second))
    values = np.repeat(weights, np.diff(matrix.indptr)) * matrix.data.astype(dtype, copy=False)
    right = sparse.csr_array((values, matrix.indices, matrix.indptr), shape=matrix.shape)
    product = transpose.astype(weights.dtype) @ right
    real, imaginary = (
        sparse.csr_array((np.ascontiguousarray(part), product.indices, product.indptr), shape=product.shape)
        for part in (product.data.real, product.data.imag)
    )
    return np.asarray(real.toarray()), np.asarray(imaginary.toarray())


def _dense_co_occurrences(dense: Matrix, weights: NDArray[Any] | None) -> Matrix:
    if weights is not None:
        dense = dense * np.sqrt(weights.astype(dense.dtype))[:, None]
    # BLAS computes half of a product of an array with its own transpose.
    return np.asarray(dense.T @ dense)


def invert_regularised(matrix: Matrix, regularisation: Any, *, overwrite: bool = False) -> Matrix:
    """Return (matrix + lambda I)^-1 of a symmetric positive semi-definite matrix."""
    inverse = _factorise(matrix, regularisation, "potri", overwrite)
    for start in range(0, len(inverse), BLOCK_SIZE):  # LAPACK computes the upper triangle only
        block = slice(start, start + BLOCK_SIZE)
        inverse[block, block] = np.triu(inverse[block, block]) + np.triu(inverse[block, block], 1).T
        inverse[start + BLOCK_SIZE :, block] = inverse[block, start + BLOCK_SIZE :].T
    return inverse


def solve_constrained(M: Matrix, C: Matrix, regularisation: Any, *, overwrite: bool = False) -> Matrix:
    """Return B = K C - K diag(mu), whose diagonal is zero; ``overwrite`` may destroy both matrices.

    K = V V' with V the inverse of the Cholesky factor, so two triangular products are enough: Y = V'C, then
    B = V (Y - V' diag(mu)). The diagonals of K and K C are sums of products of entries of V and Y.
    """
    V = _factorise(M, regularisation, "trtri", overwrite)
    multiply = linalg.get_blas_funcs("trmm", (V,))
    Y = multiply(1.0, V, np.asfortranarray(C), trans_a=True, overwrite_b=overwrite)
    mu = _diagonal_of_product(V, Y) / np.einsum("ik,ik->i", V, V)
    # V' diag(mu) is lower triangular; its blocks fit into the cache.
    for start in range(0, len(V), BLOCK_SIZE):
        block = slice(start, start + BLOCK_SIZE)
        Y[start:, block] -= (V[block, start:] * mu[block, None]).T
    B = np.asarray(multiply(1.0, V, Y, overwrite_b=True))
    np.fill_diagonal(B, 0.0)
    return B


def _diagonal_of_product(V: Matrix, Y: Matrix) -> Matrix:
    """Return the diagonal of V Y for an upper triangular V, by blocks that fit into the cache."""
    diagonal, blocks = np.zeros(len(V), V.dtype), range(0, len(V), BLOCK_SIZE)
    for start in blocks:
        rows = slice(start, start + BLOCK_SIZE)
        for inner in blocks[start // BLOCK_SIZE :]:
            columns = slice(inner, inner + BLOCK_SIZE)
            diagonal[rows] += np.einsum("ik,ki->i", V[rows, columns], Y[columns, rows])
    return diagonal


def solve_constrained_path(M: Matrix, C: Matrix, regularisations: Sequence[float]) -> Iterator[Matrix]:
    """Yield what :func:`solve_constrained` returns for each of many lambdas, from one eigendecomposition.

    With M = V diag(w) V' the solution is B = V (w + lambda)^-1 (V'C - V' diag(mu)).
    """
    w, V = linalg.eigh(M, driver="evd")
    w, V = np.maximum(w, 0.0), np.ascontiguousarray(V)
    V_t = np.ascontiguousarray(V.T)
    rotated = V_t @ C
    squares, products = V * V, V * rotated.T
    for regularisation in regularisations:
        inverse = 1.0 / (w + regularisation)
        inner = V_t * -(products @ inverse / (squares @ inverse))
        inner += rotated
        inner *= inverse[:, None]
        B = V @ inner
        np.fill_diagonal(B, 0.0)
        yield B


def _factorise(matrix: Matrix, regularisation: Any, routine: str, overwrite: bool) -> Matrix:
    """Return what a routine of LAPACK computes from the upper Cholesky factor of (matrix + lambda I).

    Lower triangles are zero. Everything is computed in place in one Fortran matrix, which is the transpose of
    the symmetric matrix itself if it may be overwritten.
    """
    is_free = overwrite and matrix.flags.c_contiguous and matrix.flags.writeable
    shifted = matrix.T if is_free else np.array(matrix, order="F")
    np.einsum("ii->i", shifted)[:] += regularisation
    lapack: Any = linalg.get_lapack_funcs(("potrf", routine), (shifted,))
    factorise, finish = lapack
    factor, failed = factorise(shifted, overwrite_a=True, clean=True)
    if not failed:
        factor, failed = finish(factor, overwrite_c=True)
    if failed:
        raise singular_matrix(regularisation)
    return np.asarray(factor)


def singular_matrix(regularisation: Any) -> InputError:
    """Return the error of a matrix that has no Cholesky factor."""
    return InputError(
        f"regularisation must be larger: the matrix is singular to rounding; got {np.min(regularisation):g}."
    )
