"""Dense items x items matrices on the CPU (NumPy, SciPy) and, in :mod:`.torch_algebra`, on a GPU.

Both kinds of arrays share slices, products, sums and ``diagonal``, so that the moments and the models are
written once. What differs is in the algebras: Gram matrices of sparse data, products with donor laws, and
solvers.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from nodecopy._core.csr import IntArray, is_dense_product_faster
from nodecopy._core.worker_pools import MAX_THREADS, map_on_cores
from nodecopy.metrics.top_items import top_items
from nodecopy.recommend import constrained_ridge

BLOCK_ROWS = 1024
MAX_BLOCK_ENTRIES = 2**24
MIN_DENSE_SHARE = 0.12
"""Share of stored entries from which a dense product with a law is faster than a sparse one."""
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
        """Return A'DA, or A'DPA with a law P of users, where D holds weights of users.

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
    def law(self, Q: sparse.csr_array | None, size: int) -> Any:
        """Return a law in the form that is fastest in products; ``None`` is the uniform law of all others."""

    @abstractmethod
    def apply(self, law: Any, matrix: Any) -> Any:
        """Return the product of a law with a dense matrix, in C order."""

    @abstractmethod
    def apply_transposed(self, law: Any, matrix: Any) -> Any:
        """Return the transpose of the product of a law with a symmetric matrix, in C order."""

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
    def add_transpose(self, weights: Any, scale: float, law: sparse.csr_array | None) -> None:
        """Add a multiple of the transpose of a law, ``None`` for the uniform one, to weights in place."""

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
            return constrained_ridge.co_occurrences(A, self.dtype, weights)
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
        return constrained_ridge.co_occurrence_pair(matrix, self.dtype, own, donors)

    def add(self, total: Any, scale: float, matrix: Any) -> None:
        for block in row_blocks(len(total), self.block_rows):
            total[block] += scale * matrix[block]

    def law(self, Q: sparse.csr_array | None, size: int) -> Any:
        if Q is None:
            return uniform_law(size, self.dtype)
        Q = Q.astype(self.dtype)
        return Q.toarray() if _is_full(Q) else Q

    def apply(self, law: Any, matrix: Any) -> Any:
        if isinstance(law, np.ndarray):
            return law @ matrix
        product = np.empty((law.shape[0], matrix.shape[1]), matrix.dtype)

        def multiply(panel: slice) -> None:
            product[:, panel] = law @ np.ascontiguousarray(matrix[:, panel])

        _for_panels(multiply, law, matrix)
        return product

    def apply_transposed(self, law: Any, matrix: Any) -> Any:
        if isinstance(law, np.ndarray):
            return matrix @ law.T
        product = np.empty((matrix.shape[1], law.shape[0]), matrix.dtype)

        def multiply(panel: slice) -> None:
            product[panel] = (law @ np.ascontiguousarray(matrix[panel].T)).T

        _for_panels(multiply, law, matrix)
        return product

    def set_diagonal(self, matrix: Any, values: Any) -> None:
        np.fill_diagonal(matrix, values)

    def astype(self, matrix: Any, precision: str) -> Any:
        return matrix.astype({"single": np.float32, "double": np.float64}[precision], copy=False)

    def stored(self, weights: Any) -> Any:
        return weights.astype(np.float32, order="C", copy=False)

    def entries(self, matrix: Any, rows: IntArray, columns: IntArray) -> NDArray[Any]:
        return np.asarray(matrix[rows, columns])

    def add_transpose(self, weights: Any, scale: float, law: sparse.csr_array | None) -> None:
        if law is None:
            weights += np.float32(scale) * uniform_law(len(weights), np.float32)
        else:
            weights[law.indices, law.tocoo().row] += (scale * law.data).astype(np.float32)

    def top_items(self, rows: sparse.csr_array, weights: Any, k: int) -> IntArray:
        scores: Any = rows @ weights
        scores = scores.toarray() if isinstance(scores, sparse.csr_array) else scores
        scores[rows.nonzero()] = -np.inf
        return top_items(scores, k)

    def solve(self, M: Any, C: Any, regularisation: Any, overwrite: bool = False) -> Any:
        return constrained_ridge.solve_constrained(M, C, regularisation, overwrite=overwrite)

    def invert(self, M: Any, regularisation: Any) -> Any:
        return constrained_ridge.invert_regularised(M, regularisation, overwrite=True)

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


def uniform_law(size: int, dtype: Any) -> NDArray[Any]:
    """Return equal probabilities for all others; a single node is its own donor."""
    if size == 1:
        return np.ones((1, 1), dtype)
    Q = np.full((size, size), 1 / (size - 1), dtype)
    np.fill_diagonal(Q, 0.0)
    return Q


def _for_panels(multiply: Callable[[slice], None], law: sparse.csr_array, matrix: NDArray[Any]) -> None:
    """Call a function for panels of columns, from several threads where there is much to multiply."""
    panels = row_blocks(matrix.shape[1], PANEL_BYTES // matrix.itemsize)
    is_small = law.nnz * matrix.shape[1] < MIN_THREADED_PRODUCTS
    list(map_on_cores(multiply, panels, 1 if is_small else MAX_THREADS))


def _is_full(law: sparse.csr_array) -> bool:
    return bool(law.nnz >= MIN_DENSE_SHARE * law.shape[0] * law.shape[1])
