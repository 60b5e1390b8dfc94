"""Dense items x items matrices on the CPU (NumPy, SciPy) and, in :mod:`.torch_algebra`, on a GPU.

Both kinds of arrays share slices, products, sums and ``diagonal``, so that the moments and the models are
written once. What differs is in the algebras: Gram matrices of sparse data, products with donor rules, and
solvers.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from nodecopy._core.arrays import IntArray, is_dense_product_faster
from nodecopy._core.parallel import MAX_THREADS, map_on_cores
from nodecopy.errors import InputError
from nodecopy.metrics.ranking import top_items

# Ridge regression of each item on the others, in closed form: the solver of EASE and CopyEASE.


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
        "regularisation",
        f"must be larger: the matrix is singular to rounding; got {np.min(regularisation):g}.",
    )


BLOCK_ROWS = 1024
MAX_BLOCK_ENTRIES = 2**24
MIN_DENSE_SHARE = 0.12
"""Share of stored entries from which a dense product with a donor rule is faster than a sparse one."""
PANEL_BYTES = 256
"""Width of the columns of a product with a sparse matrix: a panel of all rows then fits into the cache."""
MIN_THREADED_PRODUCTS = 2**24
"""Multiplications from which a product with a sparse matrix is computed by several threads."""
MAX_CONDITION = 1e5
"""Condition number up to which single precision serves: errors of weights stay below a percent."""

BYTES_PER_PAIR = 24
"""Bytes for each pair of items: the solver holds M and C of CopyEASE in single and in double precision."""
ASSUMED_MEMORY = 2**34
"""Bytes of memory on Windows, which does not say how many there are."""


def row_blocks(size: int, step: int = BLOCK_ROWS) -> Iterator[slice]:
    """Yield slices that cover ``size`` rows."""
    return (slice(start, min(start + step, size)) for start in range(0, size, step))


class Algebra(ABC):
    """Operations on dense matrices in one precision on one device."""

    dtype: Any
    block_rows = BLOCK_ROWS
    """Rows and columns of blocks in operations on whole matrices."""

    @abstractmethod
    def array(self, values: NDArray[Any]) -> Any:
        """Return an array of NumPy in the form of this algebra."""

    @abstractmethod
    def to_numpy(self, matrix: Any) -> NDArray[Any]:
        """Return a matrix as an array of NumPy."""

    @abstractmethod
    def gram(
        self,
        matrix: sparse.csr_array,
        weights: NDArray[Any] | None = None,
        P: sparse.csr_array | None = None,
        name: str = "",
    ) -> Any:
        """Return A'DA, or A'DPA with a donor rule P of users, where D holds weights of users.

        ``name`` distinguishes the products of one model for an algebra that updates them.
        """

    def grams(
        self, matrix: sparse.csr_array, own: NDArray[Any] | None, donors: NDArray[Any] | None
    ) -> tuple[Any, Any]:
        """Return A'DA for two vectors of weights, ``None`` for ones."""
        return self.gram(matrix, own, name="own"), self.gram(matrix, donors, name="donors")

    @abstractmethod
    def add(self, total: Any, scale: float, matrix: Any) -> None:
        """Add a multiple of a matrix to another one in place, both in C order."""

    @abstractmethod
    def rule(self, Q: sparse.csr_array | None, size: int) -> Any:
        """Return a donor rule in the form that is fastest in products; ``None`` is the uniform donor rule of all others."""

    @abstractmethod
    def apply(self, donors: Any, matrix: Any) -> Any:
        """Return the product of a donor rule with a dense matrix, in C order."""

    @abstractmethod
    def apply_transposed(self, donors: Any, matrix: Any) -> Any:
        """Return the transpose of the product of a donor rule with a symmetric matrix, in C order."""

    @abstractmethod
    def set_diagonal(self, matrix: Any, values: Any) -> None:
        """Set the diagonal of a matrix in place."""

    @abstractmethod
    def astype(self, matrix: Any, precision: str) -> Any:
        """Return a matrix in ``"double"`` or ``"single"`` precision, without a copy where it has it."""

    @abstractmethod
    def stored(self, weights: Any) -> Any:
        """Return weights in single precision and C order."""

    @abstractmethod
    def entries(self, matrix: Any, rows: IntArray, columns: IntArray) -> NDArray[Any]:
        """Return some entries of a matrix as an array of NumPy."""

    @abstractmethod
    def add_transpose(self, weights: Any, scale: float, donors: sparse.csr_array | None) -> None:
        """Add a multiple of the transpose of a donor rule, ``None`` for the uniform one, to weights in place."""

    @abstractmethod
    def top_items(self, rows: sparse.csr_array, weights: Any, k: int) -> IntArray:
        """Return the ``k`` items with the best scores ``rows @ weights`` that are not in the row."""

    @abstractmethod
    def solve(self, M: Any, C: Any, regularisation: Any, overwrite: bool = False) -> Any:
        """Return the weights of :func:`.solve_constrained`; ``overwrite`` may destroy both matrices.

        ``regularisation`` is lambda, or that of each item.
        """

    @abstractmethod
    def invert(self, M: Any, regularisation: Any) -> Any:
        """Return (M + lambda I)^-1, and destroy M."""

    @abstractmethod
    def max_items(self) -> int:
        """Return the number of items whose dense matrices fit into the memory with room to spare."""

    def choose_precision(self, M: Any, regularisation: Any, precision: str) -> str:
        """Return the precision itself, or for ``"auto"`` the one that M + lambda I needs.

        No eigenvalue is below the smallest lambda, and none above the largest one plus the largest sum of a
        row.
        """
        if precision != "auto":
            return precision
        largest = max(float(abs(M[block]).sum(1).max()) for block in row_blocks(len(M)))
        bound = MAX_CONDITION * np.min(regularisation)
        return "single" if largest + np.max(regularisation) <= bound else "double"


class NumpyAlgebra(Algebra):
    """Operations on the CPU."""

    block_rows = 256

    def __init__(self, dtype: Any = np.float32) -> None:
        self.dtype = dtype

    def array(self, values: NDArray[Any]) -> Any:
        return values.astype(self.dtype)

    def to_numpy(self, matrix: Any) -> NDArray[Any]:
        return np.asarray(matrix)

    def gram(
        self,
        matrix: sparse.csr_array,
        weights: NDArray[Any] | None = None,
        P: sparse.csr_array | None = None,
        name: str = "",
    ) -> Any:
        A = sparse.csr_array(matrix, dtype=self.dtype)
        if P is None:
            return co_occurrences(A, self.dtype, weights)
        n_users, n_items = A.shape
        left = A if weights is None else sparse.csr_array(sparse.diags_array(weights) @ A, dtype=self.dtype)
        P, A_t, is_full = P.astype(self.dtype), sparse.csr_array(A.T), _is_full(P)
        dense = A.toarray() if is_dense_product_faster(A_t) else None
        H: Any = None
        for block in row_blocks(n_users, max(1, MAX_BLOCK_ENTRIES // max(n_items, n_users * is_full))):
            if dense is not None:
                copied = P[block].toarray() @ dense if is_full else self.apply(P[block], dense)
            else:
                copied = (A_t @ P[block].T.toarray()).T if is_full else (P[block] @ A).toarray()
            part = self.apply(sparse.csr_array(left[block].T), copied)
            if H is None:
                H = part
            else:
                H += part
        return H

    def grams(
        self, matrix: sparse.csr_array, own: NDArray[Any] | None, donors: NDArray[Any] | None
    ) -> tuple[Any, Any]:
        return co_occurrence_pair(matrix, self.dtype, own, donors)

    def add(self, total: Any, scale: float, matrix: Any) -> None:
        for block in row_blocks(len(total), self.block_rows):
            total[block] += scale * matrix[block]

    def rule(self, Q: sparse.csr_array | None, size: int) -> Any:
        if Q is None:
            return uniform_rule(size, self.dtype)
        Q = Q.astype(self.dtype)
        return Q.toarray() if _is_full(Q) else Q

    def apply(self, donors: Any, matrix: Any) -> Any:
        if isinstance(donors, np.ndarray):
            return donors @ matrix
        product = np.empty((donors.shape[0], matrix.shape[1]), matrix.dtype)

        def multiply(panel: slice) -> None:
            product[:, panel] = donors @ np.ascontiguousarray(matrix[:, panel])

        _for_panels(multiply, donors, matrix)
        return product

    def apply_transposed(self, donors: Any, matrix: Any) -> Any:
        if isinstance(donors, np.ndarray):
            return matrix @ donors.T
        product = np.empty((matrix.shape[1], donors.shape[0]), matrix.dtype)

        def multiply(panel: slice) -> None:
            product[panel] = (donors @ np.ascontiguousarray(matrix[panel].T)).T

        _for_panels(multiply, donors, matrix)
        return product

    def set_diagonal(self, matrix: Any, values: Any) -> None:
        np.fill_diagonal(matrix, values)

    def astype(self, matrix: Any, precision: str) -> Any:
        return matrix.astype({"single": np.float32, "double": np.float64}[precision], copy=False)

    def stored(self, weights: Any) -> Any:
        return weights.astype(np.float32, order="C", copy=False)

    def entries(self, matrix: Any, rows: IntArray, columns: IntArray) -> NDArray[Any]:
        return np.asarray(matrix[rows, columns])

    def add_transpose(self, weights: Any, scale: float, donors: sparse.csr_array | None) -> None:
        if donors is None:
            weights += np.float32(scale) * uniform_rule(len(weights), np.float32)
        else:
            weights[donors.indices, donors.tocoo().row] += (scale * donors.data).astype(np.float32)

    def top_items(self, rows: sparse.csr_array, weights: Any, k: int) -> IntArray:
        scores: Any = rows @ weights
        scores = scores.toarray() if isinstance(scores, sparse.csr_array) else scores
        scores[rows.nonzero()] = -np.inf
        return top_items(scores, k)

    def solve(self, M: Any, C: Any, regularisation: Any, overwrite: bool = False) -> Any:
        return solve_constrained(M, C, regularisation, overwrite=overwrite)

    def invert(self, M: Any, regularisation: Any) -> Any:
        return invert_regularised(M, regularisation, overwrite=True)

    def max_items(self) -> int:
        return max_items_in_memory()


def algebra_on(device: str, dtype: Any = np.float32) -> Algebra:
    """Return the algebra of a device: NumPy on ``"cpu"``, torch elsewhere."""
    if device == "cpu":
        return NumpyAlgebra(dtype)
    from nodecopy.recommend.torch_algebra import TorchAlgebra  # which is built on this module

    return TorchAlgebra(device, dtype)


def usable_memory() -> float:
    """Return the bytes of the machine's memory that a fit may take."""
    memory = ASSUMED_MEMORY
    if hasattr(os, "sysconf"):
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return 0.6 * memory


def max_items_in_memory() -> int:
    """Return the number of items whose dense matrices fit into the memory with room to spare."""
    return int((usable_memory() / BYTES_PER_PAIR) ** 0.5)


def uniform_rule(size: int, dtype: Any) -> NDArray[Any]:
    """Return equal probabilities for all others; a single node is its own donor."""
    if size == 1:
        return np.ones((1, 1), dtype)
    Q = np.full((size, size), 1 / (size - 1), dtype)
    np.fill_diagonal(Q, 0.0)
    return Q


def _for_panels(multiply: Callable[[slice], None], donors: sparse.csr_array, matrix: NDArray[Any]) -> None:
    """Call a function for panels of columns, from several threads where there is much to multiply."""
    panels = row_blocks(matrix.shape[1], PANEL_BYTES // matrix.itemsize)
    is_small = donors.nnz * matrix.shape[1] < MIN_THREADED_PRODUCTS
    list(map_on_cores(multiply, panels, 1 if is_small else MAX_THREADS))


def _is_full(donors: sparse.csr_array) -> bool:
    return bool(donors.nnz >= MIN_DENSE_SHARE * donors.shape[0] * donors.shape[1])


# Moments of a matrix whose entries are copied from donor users and donor items, exactly.


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
        Donor probabilities of users and of items, whose rows add up to 1; ``None`` for the uniform donor rule.
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
        rule = algebra.rule(Q, len(G))
        GQ_t = algebra.apply_transposed(rule, G)
        del G
        diagonal = diagonal + q2 * (rule @ counts)
        GQ_t *= q2 / 2
        C_t += GQ_t
        algebra.add(S, q2, algebra.apply(rule, C_t))
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
