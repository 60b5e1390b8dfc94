"""Matrices of EASE and CopyEASE: Gram matrices, moments of copied matrices, and ridge regression.

Dense items x items matrices are NumPy arrays or, on a GPU, torch tensors, which have the same operators.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from nodecopy._core.arrays import IntArray
from nodecopy._core.checks import show
from nodecopy._core.imports import import_optional
from nodecopy._core.parallel import MAX_THREADS, map_on_cores
from nodecopy.errors import InputError
from nodecopy.metrics.ranking import top_items

BLOCK_SIZE = 256
BLOCK_ROWS = 1024
MAX_BLOCK_ENTRIES = 2**24
MAX_DENSE_ENTRIES = 2**26
COMPILED_SHARE, SPARSE_SHARE = 1 / 75, 1 / 400  # sparse multiplications in the time of one of BLAS
MIN_COMPILED_PRODUCTS = 2**25  # from which loading compiled code pays off
USERS_PER_BLOCK = 2**15  # whose expected copies are in memory at once, as a sparse matrix
PANEL_ENTRIES, MIN_PANEL = 2**21, 16  # columns of all users that fit into the cache, and how many at least
N_POWER_STEPS = 3  # by which the largest eigenvalue is bounded
MAX_CONDITION = 1e5  # up to which single precision is used: errors of weights stay below a percent
BYTES_PER_PAIR = 24  # of items: M and C of CopyEASE in single and in double precision
RANK_PER_ROOT = 1.25  # of the number of items: the automatic rank of the low-pass filter
N_SUBSPACE_STEPS, MIN_OVERSAMPLING, MIN_SINGULAR_VALUE = 6, 10, 1e-4  # of its singular vectors
ASSUMED_MEMORY = 2**34  # on Windows, where Python does not know it


def row_blocks(size: int, step: int = BLOCK_ROWS) -> Iterator[slice]:
    """Return slices that cover ``size`` rows."""
    return (slice(start, min(start + step, size)) for start in range(0, size, step))


def count_users(matrix: sparse.csr_array) -> IntArray:
    """Return the number of users of each item."""
    return np.bincount(matrix.indices, minlength=matrix.shape[1])


def gram_matrix(
    matrix: sparse.csr_array,
    weights: NDArray[Any] | None = None,
    *,
    dtype: Any = np.float64,
    device: str = "cpu",
) -> Any:
    """Return A'DA, where D holds weights of users."""
    A, gram = sparse.csr_array(matrix, dtype=dtype), _zeros(matrix.shape[1], dtype, device)
    add_product(gram, scaled_transpose(A, weights), A)
    return gram


def copied_moments(
    matrix: sparse.csr_array,
    P: sparse.csr_array,
    Q: sparse.csr_array,
    q1: float,
    q2: float,
    weights: NDArray[Any] | None = None,
    *,
    dtype: Any = np.float64,
    device: str = "cpu",
) -> tuple[Any, Any, NDArray[Any]]:
    """Return M = E[X'DX] and C = E[X'DA] of the copied input X, where D holds the weights of users.

    The third result is what the formula of M off the diagonal gives on it. ``matrix`` is A, users x items,
    zeros and ones; P and Q are donor probabilities of users and of items, q1 and q2 their shares. No other
    dense items x items matrix is in memory.
    """
    q0, (n_users, n_items) = 1 - q1 - q2, matrix.shape
    A, P, Q = (sparse.csr_array(part, dtype=dtype) for part in (matrix, P, Q))
    w = np.ones(n_users, dtype) if weights is None else weights.astype(dtype)
    W = P.T @ w  # the expected weight of the users whose donor is each user
    M, C_t = _zeros(n_items, dtype, device), _zeros(n_items, dtype, device)
    for users in row_blocks(n_users, USERS_PER_BLOCK):
        own = A[users]
        add_product(C_t, scaled_transpose(own, q0 * w[users]), own)
        if q1:
            add_product(C_t, scaled_transpose(own, q1 * w[users]), sparse.csr_array(P[users] @ A))
        add_product(M, scaled_transpose(own, (q1 * q1 / 2) * W[users] - (q0 * q0 / 2) * w[users]), own)
    A_t, left, items = sparse.csr_array(A.T), scaled_transpose(A, (q2 / 2) * w), Q
    if device != "cpu":
        A, left, items = (_csr_tensor(part, M) for part in (A, left, items))

    def add_columns(columns: slice) -> None:
        """Complete columns of S and of C', where M = S + S' off the diagonal."""
        half = left @ _to_dense(A @ _columns(Q, columns, M)) if q2 else 0.0  # of the part of donor items
        both = C_t[:, columns] + half
        M[:, columns] += q0 * C_t[:, columns] + (q2 * (items @ both) if q2 else 0.0)
        C_t[:, columns] = both + half

    # The columns of all users fit into the cache; the products of a GPU are threaded themselves.
    width = max(MIN_PANEL, (PANEL_ENTRIES if device == "cpu" else MAX_BLOCK_ENTRIES) // max(n_users, n_items))
    list(map_on_cores(add_columns, row_blocks(n_items, width), MAX_THREADS if device == "cpu" else 1))
    counts = A_t @ w
    for rows in row_blocks(n_items, BLOCK_SIZE):
        total = M[rows, rows.start :] + M[rows.start :, rows].T
        M[rows, rows.start :], M[rows.start :, rows] = total, total.T
        upper, lower = 1 * C_t[rows, rows.start :], 1 * C_t[rows.start :, rows]
        C_t[rows, rows.start :], C_t[rows.start :, rows] = lower.T, upper.T
    products = to_numpy(1 * M.diagonal())
    set_diagonal(M, like(q0 * counts + q1 * (A_t @ W) + q2 * (Q @ counts), M))
    return M, C_t, products  # C_t is C now


def add_product(total: Any, left: sparse.csr_array, right: sparse.csr_array) -> None:
    """Add the product of two sparse matrices to a dense one, in the way that is fastest."""
    if not isinstance(total, np.ndarray):
        left = _csr_tensor(left, total)
        right_t = sparse.csr_array(right.T)
        for columns in row_blocks(len(total), max(1, MAX_BLOCK_ENTRIES // right.shape[0])):
            total[:, columns] += left @ _columns(right_t, columns, total)
        return
    n_products = float(np.bincount(left.indices, minlength=left.shape[1]) @ np.diff(right.indptr))
    is_compiled = max(n_products, total.size / 2) > MIN_COMPILED_PRODUCTS
    n_dense = (COMPILED_SHARE if is_compiled else SPARSE_SHARE) * len(total) ** 2 * left.shape[1]
    if n_products > n_dense and right.shape[0] * right.shape[1] <= MAX_DENSE_ENTRIES:
        total += left.toarray() @ right.toarray()
    elif is_compiled:
        from nodecopy.recommend.sparse_ridge import add_sparse_product  # imports numba, which is slow

        add_sparse_product(total, left, right)
    else:
        total += _to_dense(left @ right)


def scaled_transpose(matrix: sparse.csr_array, scale: Any) -> sparse.csr_array:
    """Return the transpose of a matrix whose rows are scaled."""
    transpose = sparse.csr_array(matrix.T)
    if scale is not None:
        transpose.data *= scale.astype(transpose.dtype)[transpose.indices]
    return transpose


def _zeros(size: int, dtype: Any, device: str) -> Any:
    """Return a square array, or tensor of a device, of zeros."""
    if device == "cpu":
        return np.zeros((size, size), dtype)
    torch = import_torch_for(device)
    return torch.zeros((size, size), dtype=getattr(torch, np.dtype(dtype).name), device=device)


def _columns(transpose: sparse.csr_array, columns: slice, array: Any) -> Any:
    """Return columns of a matrix, given its transpose: a sparse matrix, or a dense tensor like ``array``."""
    part = transpose[columns]
    return part.T if isinstance(array, np.ndarray) else _csr_tensor(part, array).to_dense().T.contiguous()


def _to_dense(matrix: Any) -> Any:
    return matrix.toarray() if hasattr(matrix, "toarray") else matrix


def solve_constrained(M: Any, C: Any, regularisation: Any, *, overwrite: bool = False) -> Any:
    """Return B = K C - K diag(mu), whose diagonal is zero, with K = (M + lambda I)^-1."""
    if not isinstance(M, np.ndarray):
        K, B = invert_regularised(M, regularisation, overwrite=overwrite), C if overwrite else C.clone()
        for columns in row_blocks(len(B)):
            part = K @ B[:, columns]
            mu = part[columns].diagonal() / K.diagonal()[columns]
            B[:, columns] = part - K[:, columns] * mu
        set_diagonal(B, 0.0)
        return B
    # K = V V' with V the inverse of the Cholesky factor, so two triangular products are enough:
    # B' = (Y - diag(mu) V) V' with Y = C'V, where mu is the diagonal of Y V' over that of K.
    V = _factorise(M, regularisation, "trtri", overwrite)
    multiply = linalg.get_blas_funcs("trmm", (V,))
    Y = multiply(1.0, V, np.asfortranarray(C.T), side=1, overwrite_b=overwrite)
    mu = np.einsum("ki,ki->i", Y.T, V.T) / np.einsum("ki,ki->i", V.T, V.T)
    for rows in row_blocks(len(V), BLOCK_SIZE):
        Y.T[rows] -= V.T[rows] * mu
    B = np.asarray(multiply(1.0, V, Y, side=1, trans_a=True, overwrite_b=True).T)
    set_diagonal(B, 0.0)
    return B


def invert_regularised(matrix: Any, regularisation: Any, *, overwrite: bool = False) -> Any:
    """Return (matrix + lambda I)^-1 of a symmetric positive semi-definite matrix."""
    if not isinstance(matrix, np.ndarray):
        return _invert_tensor(matrix if overwrite else matrix.clone(), regularisation)
    inverse = _factorise(matrix, regularisation, "potri", overwrite).T
    for rows in row_blocks(len(inverse), BLOCK_SIZE):  # LAPACK computes one triangle only
        inverse[rows, rows] += np.tril(inverse[rows, rows], -1).T
        inverse[rows, rows.stop :] = inverse[rows.stop :, rows].T
    return inverse


def _factorise(matrix: Any, regularisation: Any, routine: str, overwrite: bool) -> Any:
    """Return the result of a LAPACK routine for the upper Cholesky factor of matrix + lambda I."""
    # In one Fortran matrix: the transpose of the symmetric matrix itself if it may be overwritten.
    is_free = overwrite and matrix.flags.c_contiguous and matrix.flags.writeable
    shifted = matrix.T if is_free else np.array(matrix, order="F")
    np.einsum("ii->i", shifted)[:] += regularisation
    lapack: Any = linalg.get_lapack_funcs(("potrf", routine), (shifted,))
    factor, failed = lapack[0](shifted, overwrite_a=True, clean=True)
    if not failed:
        factor, failed = lapack[1](factor, overwrite_c=True)
    if failed:
        raise singular_matrix(regularisation)
    return factor


def _invert_tensor(M: Any, regularisation: Any) -> Any:
    """Invert M + lambda I in place of M."""
    M.diagonal().add_(M.new_tensor(regularisation))
    try:
        _invert_blocks(M)
    except RuntimeError as error:
        if "positive" not in str(error):
            raise
        raise singular_matrix(regularisation) from error
    return M


def _invert_blocks(M: Any) -> None:
    """Invert a positive definite tensor in place: nearly all steps are products of matrices."""
    if len(M) <= 2 * BLOCK_ROWS:
        M.copy_(import_optional("torch", "a device").linalg.cholesky(M).cholesky_inverse())
        return
    half = len(M) // 2
    A, B, D = M[:half, :half], M[:half, half:], M[half:, half:]
    _invert_blocks(A)
    T = A @ B
    D.addmm_(B.T, T, alpha=-1.0)
    _invert_blocks(D)
    B.copy_(T @ D)
    A.addmm_(B, T.T)
    B.neg_()
    M[half:, :half].copy_(B.T)


def singular_matrix(regularisation: Any) -> InputError:
    """Return the error of a singular matrix."""
    smallest = np.min(regularisation)
    return InputError("regularisation", f"must be larger: the matrix is singular; got {smallest:g}.")


def choose_precision(M: Any, regularisation: Any, precision: str) -> str:
    """Return ``precision`` itself, or for ``"auto"`` the one that M + lambda I needs."""
    if precision != "auto":
        return precision
    # Entries are not negative: for any positive x the largest (M x)_i / x_i is a bound of the eigenvalues.
    x, largest = M.sum(1), np.inf
    for _ in range(N_POWER_STEPS):
        x, before = M @ x, x
        largest = min(largest, float((x[before > 0] / before[before > 0]).max()))
    bound = MAX_CONDITION * np.min(regularisation)
    return "single" if largest + np.max(regularisation) <= bound else "double"


def like(values: NDArray[Any], array: Any) -> Any:
    """Return values as an array of the type, precision and device of another one."""
    return values.astype(array.dtype) if isinstance(array, np.ndarray) else array.new_tensor(values)


def to_numpy(matrix: Any) -> Any:
    """Return a tensor as an array; arrays and sparse matrices stay as they are."""
    return matrix.cpu().numpy() if hasattr(matrix, "cpu") else matrix


def cast(matrix: Any, precision: str) -> Any:
    """Return a matrix in ``"double"`` or ``"single"`` precision, without a copy where it has it."""
    if isinstance(matrix, np.ndarray):
        return matrix.astype({"single": np.float32, "double": np.float64}[precision], copy=False)
    return matrix.double() if precision == "double" else matrix.float()


def set_diagonal(matrix: Any, values: Any) -> None:
    """Set the diagonal of an array or tensor in place."""
    places = np.arange(len(matrix))
    matrix[places, places] = values


def multiply_rows(rows: sparse.csr_array, weights: Any) -> Any:
    """Return ``rows @ weights`` as a dense array, or as a tensor if the weights are one."""
    is_tensor = not isinstance(weights, (np.ndarray, sparse.csr_array))
    scores: Any = (_csr_tensor(rows, weights) if is_tensor else rows) @ weights
    return scores.toarray() if isinstance(scores, sparse.csr_array) else scores


def best_unseen(rows: sparse.csr_array, scores: Any, k: int) -> IntArray:
    """Return the ``k`` items with the best scores, which are overwritten, that are not in the row."""
    scores[rows.nonzero()] = -np.inf
    if not isinstance(scores, np.ndarray):
        return np.asarray(scores.topk(k, dim=1).indices.cpu().numpy())
    return top_items(scores, k)


def low_pass_filter(
    matrix: sparse.csr_array, rank: int | str, max_rank: int | None = None
) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
    """Return a factor F and singular values s of a low-pass filter of binary interactions.

    The filter is the items x items matrix D^-1 F'F = D^-1/2 V diag(s) V' D^1/2, where D holds the number of
    users of each item, and s and V are the largest singular values and the right singular vectors of the
    matrix whose entries are divided by the roots of the degrees of their user and item. The automatic rank
    is a multiple of the root of the number of items, at most ``max_rank``.
    """
    degrees, counts = (np.maximum(part, 1) for part in (np.diff(matrix.indptr), count_users(matrix)))
    values = np.repeat(degrees, np.diff(matrix.indptr)) * counts[matrix.indices]
    parts = (1 / np.sqrt(values)).astype(np.float32), matrix.indices, matrix.indptr
    A = sparse.csr_array(parts, shape=matrix.shape)
    A_t = sparse.csr_array(A.T)
    if isinstance(rank, str):
        rank = int(min(round(RANK_PER_ROOT * len(counts) ** 0.5), max_rank or len(counts)))
    width = min(rank + MIN_OVERSAMPLING + rank // 2, *matrix.shape)
    # Subspace iteration from a fixed start: the same filter in every fit.
    V = np.random.default_rng(0).standard_normal((len(counts), width), np.float32)
    for _ in range(N_SUBSPACE_STEPS):
        V = linalg.qr(A_t @ (A @ V), mode="economic", overwrite_a=True, check_finite=False)[0]
    _, s, rotation = linalg.svd(A @ V, full_matrices=False, check_finite=False)
    s = s[: min(rank, np.count_nonzero(s > MIN_SINGULAR_VALUE))]
    factor = np.sqrt(s)[:, None] * (rotation[: len(s)] @ V.T) * np.sqrt(counts, dtype=np.float32)
    return np.ascontiguousarray(factor, np.float32), s.astype(np.float64)


def low_pass_scores(rows: sparse.csr_array, counts: IntArray, factor: Any) -> NDArray[np.float32]:
    """Return the product of the rows of a matrix with a low-pass filter D^-1 F'F."""
    scaled = rows @ sparse.diags_array((1 / np.maximum(counts, 1)).astype(np.float32))
    return np.asarray((scaled @ factor.T) @ factor)


def add_low_pass(weights: Any, counts: IntArray, factor: NDArray[np.float32]) -> None:
    """Add a low-pass filter D^-1 F'F to dense weights in place."""
    F, F_t = like(factor, weights), like((factor / np.maximum(counts, 1)).T, weights)
    for block in row_blocks(len(weights)):
        weights[block] += F_t[block] @ F


def import_torch_for(device: str) -> Any:
    """Return torch, if it has the device."""
    torch: Any = import_optional("torch", f"device {device!r}")
    try:
        torch.empty(0, device=torch.device(device))
    except (RuntimeError, AssertionError, TypeError, ValueError) as error:
        raise InputError("device", f"must be 'cpu' or an available 'cuda'; got {show(device)}.") from error
    return torch


def _csr_tensor(matrix: Any, array: Any) -> Any:
    torch, matrix = import_optional("torch", "a device"), sparse.csr_array(matrix)
    parts = (torch.tensor(part, device=array.device) for part in (matrix.indptr, matrix.indices))
    with warnings.catch_warnings(action="ignore"):  # torch calls this format a beta
        values = array.new_tensor(matrix.data)
        return torch.sparse_csr_tensor(*parts, values, matrix.shape, check_invariants=False)


def usable_memory() -> float:
    """Return the bytes of memory that a fit may take."""
    memory = ASSUMED_MEMORY
    if hasattr(os, "sysconf"):
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return 0.6 * memory


def max_items(device: str) -> int:
    """Return the largest number of items whose dense matrices fit into memory."""
    if not device.startswith("cuda"):
        return int((usable_memory() / BYTES_PER_PAIR) ** 0.5)
    memory = import_torch_for(device).cuda.get_device_properties(device).total_memory
    return int((0.8 * memory / 36) ** 0.5)  # M, C and B in double precision, with blocks of the inverse
