"""Matrices of EASE and CopyEASE: Gram matrices, moments of copied matrices, and ridge regression.

Dense items x items matrices are NumPy arrays or, on a GPU, torch tensors. Gram matrices and solvers have a
variant for each.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from nodecopy._core.arrays import IntArray, is_dense_product_faster
from nodecopy._core.checks import show
from nodecopy._core.imports import import_optional
from nodecopy._core.parallel import MAX_THREADS, map_on_cores
from nodecopy.errors import InputError
from nodecopy.metrics.ranking import top_items

Matrix = NDArray[np.floating[Any]]
BLOCK_SIZE = 256
BLOCK_ROWS = 1024
MAX_BLOCK_ENTRIES = 2**24
MIN_DENSE_SHARE = 0.12  # of stored entries from which a dense product with donor probabilities is faster
PANEL_BYTES = 256  # width of the columns of a sparse product: a panel of all rows then fits into the cache
MIN_THREADED_PRODUCTS = 2**24  # multiplications from which a sparse product takes several threads
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
    P: sparse.csr_array | None = None,
    *,
    dtype: Any = np.float64,
    device: str = "cpu",
) -> Any:
    """Return A'DA, or A'DPA with donor probabilities P of users, where D holds weights of users."""
    if device != "cpu":
        return _gram_tensor(matrix, weights, P, dtype, device)
    A = sparse.csr_array(matrix, dtype=dtype)
    A_t = sparse.csr_array(A.T)
    dense = A.toarray() if is_dense_product_faster(A_t) else None
    if P is not None:
        return _copied_gram(A, A_t, dense, weights, P.astype(dtype))
    if dense is None:
        right = A if weights is None else sparse.diags_array(weights.astype(dtype)) @ A
        return np.asarray((A_t @ right).toarray())
    if weights is not None:
        dense = dense * np.sqrt(weights.astype(dtype))[:, None]
    return np.asarray(dense.T @ dense)  # BLAS computes half of a product of an array with its own transpose


def _copied_gram(A: Any, A_t: Any, dense: Matrix | None, weights: Any, P: sparse.csr_array) -> Matrix:
    n_users, n_items = A.shape
    left = A if weights is None else sparse.csr_array(sparse.diags_array(weights) @ A, dtype=A.dtype)
    is_full, total = _is_full(P), np.zeros((n_items, n_items), A.dtype)
    for block in row_blocks(n_users, max(1, MAX_BLOCK_ENTRIES // max(n_items, n_users * is_full))):
        if dense is not None:
            copied = P[block].toarray() @ dense if is_full else _multiply(P[block], dense)
        else:
            copied = (A_t @ P[block].T.toarray()).T if is_full else (P[block] @ A).toarray()
        total += _multiply(sparse.csr_array(left[block].T), copied)
    return total


def copied_moments(
    matrix: sparse.csr_array,
    P: sparse.csr_array | None,
    Q: sparse.csr_array | None,
    q1: float,
    q2: float,
    weights: NDArray[Any] | None = None,
    *,
    dtype: Any = np.float64,
    device: str = "cpu",
) -> tuple[Any, Any]:
    """Return M = E[X'DX] and C = E[X'DA] of the copied input X, where D holds the weights of users.

    ``matrix`` is A, users x items, zeros and ones; P and Q are donor probabilities of users and of items,
    ``None`` for the uniform rule; q1 and q2 are their shares.
    """

    def gram(weights: Any, P: Any = None) -> Any:
        return gram_matrix(matrix, weights, P, dtype=dtype, device=device)

    q0 = 1 - q1 - q2
    G = gram(weights)
    counts = 1 * G.diagonal()
    # Off the diagonal M = S + S'. All products with Q but one are products with C', so two are enough.
    if q1:
        S = gram(_donor_weights(P, weights, matrix.shape[0], dtype))
        diagonal = q0 * counts + q1 * S.diagonal()
        S *= q1 * q1 / 2
        _add_multiple(S, q0 * q0 / 2, G)
        C_t = gram(weights, P) if P is not None else _uniform_copies(matrix, G)
        _add_multiple(S, q0 * q1, C_t)
        C_t *= q1
        _add_multiple(C_t, q0, G)
    else:
        C_t, S, diagonal = q0 * G, (q0 * q0 / 2) * G, q0 * counts
    if q2:
        rule = _as_rule(Q, G)
        GQ_t = _multiply(rule, G, is_transposed=True)
        del G
        diagonal = diagonal + q2 * (rule @ counts)
        GQ_t *= q2 / 2
        C_t += GQ_t
        _add_multiple(S, q2, _multiply(rule, C_t))
        C_t += GQ_t
        del GQ_t
    _add_transpose(S)
    set_diagonal(S, diagonal)
    return S, C_t.T


def _donor_weights(P: Any, weights: Any, n_users: int, dtype: Any) -> Any:
    """Return the expected total weight of the users whose donor is each user."""
    if P is not None:
        return np.asarray(P.astype(dtype).sum(axis=0) if weights is None else P.T @ weights)
    if weights is None or n_users == 1:
        return weights
    return (weights.sum() - weights) / (n_users - 1)


def _uniform_copies(matrix: sparse.csr_array, G: Any) -> Any:
    """Return A'DPA for the uniform rule; a single user is its own donor."""
    n_users = matrix.shape[0]
    if n_users == 1:
        return 1 * G
    return (G.diagonal()[:, None] * like(count_users(matrix), G) - G) / (n_users - 1)


def _add_multiple(total: Any, scale: float, matrix: Any) -> None:
    """Add a multiple of a matrix in place, by blocks."""
    for block in row_blocks(len(total), BLOCK_SIZE):
        total[block] += scale * matrix[block]


def _add_transpose(matrix: Any) -> None:
    blocks = list(row_blocks(len(matrix), BLOCK_SIZE))
    for number, rows in enumerate(blocks):
        for columns in blocks[number:]:
            total = matrix[rows, columns] + matrix[columns, rows].T
            matrix[rows, columns] = total
            matrix[columns, rows] = total.T


def uniform_rule(size: int, dtype: Any) -> NDArray[Any]:
    """Return equal probabilities for all others; a single node is its own donor."""
    if size == 1:
        return np.ones((1, 1), dtype)
    Q = np.full((size, size), 1 / (size - 1), dtype)
    np.fill_diagonal(Q, 0.0)
    return Q


def _as_rule(Q: sparse.csr_array | None, matrix: Any) -> Any:
    """Return donor probabilities in the form that is fastest in products."""
    if not isinstance(matrix, np.ndarray):
        return like(uniform_rule(len(matrix), np.float64), matrix) if Q is None else _csr_tensor(Q, matrix)
    if Q is None:
        return uniform_rule(len(matrix), matrix.dtype)
    Q = Q.astype(matrix.dtype)
    return Q.toarray() if _is_full(Q) else Q


def _is_full(rule: sparse.csr_array) -> bool:
    return bool(rule.nnz >= MIN_DENSE_SHARE * rule.shape[0] * rule.shape[1])


def _multiply(rule: Any, matrix: Any, *, is_transposed: bool = False) -> Any:
    """Return rule @ matrix in C order, or its transpose where the matrix is symmetric."""
    if isinstance(rule, np.ndarray):
        return matrix @ rule.T if is_transposed else rule @ matrix
    if not isinstance(matrix, np.ndarray):
        product = rule @ matrix
        return product.T.contiguous() if is_transposed else product
    shape = rule.shape[0], matrix.shape[1]
    product = np.empty(shape[::-1] if is_transposed else shape, matrix.dtype)
    target = product.T if is_transposed else product

    def multiply(panel: slice) -> None:
        target[:, panel] = rule @ np.ascontiguousarray(matrix[:, panel])

    panels = row_blocks(matrix.shape[1], PANEL_BYTES // matrix.itemsize)
    is_small = rule.nnz * matrix.shape[1] < MIN_THREADED_PRODUCTS
    list(map_on_cores(multiply, panels, 1 if is_small else MAX_THREADS))
    return product


def solve_constrained(M: Any, C: Any, regularisation: Any, *, overwrite: bool = False) -> Any:
    """Return B = K C - K diag(mu), whose diagonal is zero, with K = (M + lambda I)^-1."""
    # K = V V' with V the inverse of the Cholesky factor, so two triangular products are enough: Y = V'C, then
    # B = V (Y - V' diag(mu)), where mu is the diagonal of K C = V Y over that of K.
    if not isinstance(M, np.ndarray):
        K = invert_regularised(M, regularisation, overwrite=overwrite)
        B = K @ C
        mu = B.diagonal() / K.diagonal()
        for block in row_blocks(len(B)):
            B[block] -= K[block] * mu
        set_diagonal(B, 0.0)
        return B
    V = _factorise(M, regularisation, "trtri", overwrite)
    multiply = linalg.get_blas_funcs("trmm", (V,))
    Y = multiply(1.0, V, np.asfortranarray(C), trans_a=True, overwrite_b=overwrite)
    mu = _diagonal_of_product(V, Y) / np.einsum("ik,ik->i", V, V)
    # V' diag(mu) is lower triangular; its blocks fit into the cache.
    for block in row_blocks(len(V), BLOCK_SIZE):
        Y[block.start :, block] -= (V[block, block.start :] * mu[block, None]).T
    B = np.asarray(multiply(1.0, V, Y, overwrite_b=True))
    set_diagonal(B, 0.0)
    return B


def invert_regularised(matrix: Any, regularisation: Any, *, overwrite: bool = False) -> Any:
    """Return (matrix + lambda I)^-1 of a symmetric positive semi-definite matrix."""
    if not isinstance(matrix, np.ndarray):
        return _invert_tensor(matrix if overwrite else matrix.clone(), regularisation)
    inverse = _factorise(matrix, regularisation, "potri", overwrite)
    for block in row_blocks(len(inverse), BLOCK_SIZE):  # LAPACK computes the upper triangle only
        inverse[block, block] = np.triu(inverse[block, block]) + np.triu(inverse[block, block], 1).T
        inverse[block.stop :, block] = inverse[block, block.stop :].T
    return inverse


def _factorise(matrix: Matrix, regularisation: Any, routine: str, overwrite: bool) -> Matrix:
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
    return np.asarray(factor)


def _diagonal_of_product(V: Matrix, Y: Matrix) -> Matrix:
    """Return the diagonal of V Y for an upper triangular V, by blocks that fit into the cache."""
    diagonal, blocks = np.zeros(len(V), V.dtype), list(row_blocks(len(V), BLOCK_SIZE))
    for number, rows in enumerate(blocks):
        for columns in blocks[number:]:
            diagonal[rows] += np.einsum("ik,ki->i", V[rows, columns], Y[columns, rows])
    return diagonal


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


def in_storage_order(weights: Any) -> Any:
    """Return weights in single precision and C order."""
    if isinstance(weights, np.ndarray):
        return weights.astype(np.float32, order="C", copy=False)
    return weights.float().contiguous()


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


def _gram_tensor(matrix: sparse.csr_array, weights: Any, P: Any, dtype: Any, device: str) -> Any:
    torch, (n_users, n_items) = import_torch_for(device), matrix.shape
    kind = torch.float64 if dtype == np.float64 else torch.float32
    product = torch.empty((n_items, n_items), dtype=kind, device=device)
    scaled = matrix if weights is None else sparse.diags_array(weights) @ matrix
    transpose, left = sparse.csr_array(matrix.T), _csr_tensor(scaled.T, product)
    rule = None if P is None else _csr_tensor(P, product)
    for panel in row_blocks(n_items, max(1, 16 * MAX_BLOCK_ENTRIES // n_users)):
        columns = _csr_tensor(transpose[panel], product).to_dense().T.contiguous()
        product[:, panel] = left @ (columns if rule is None else rule @ columns)
    return product


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
