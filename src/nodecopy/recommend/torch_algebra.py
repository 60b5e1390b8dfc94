"""Dense items x items matrices on a device of torch."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from nodecopy._core.arrays import IntArray
from nodecopy._core.checks import show
from nodecopy._core.imports import import_optional
from nodecopy.errors import InputError
from nodecopy.recommend import algebra as constrained_ridge
from nodecopy.recommend import algebra as dense_algebra
from nodecopy.recommend.algebra import Algebra, max_items_in_memory, row_blocks, uniform_rule


class TorchAlgebra(Algebra):
    """Operations on a device of torch."""

    def __init__(self, device: str, dtype: Any = np.float32) -> None:
        self.torch = import_torch_for(device)
        self.device = self.torch.device(device)
        self.dtype = dtype

    def _dtype_of(self, dtype: Any) -> Any:
        return self.torch.float64 if dtype in (np.float64, "double") else self.torch.float32

    def array(self, values: NDArray[Any]) -> Any:
        return self.torch.as_tensor(np.array(values), device=self.device).to(self._dtype_of(self.dtype))

    def to_numpy(self, matrix: Any) -> NDArray[Any]:
        return np.asarray(matrix.cpu().numpy())

    def _csr(self, matrix: Any) -> Any:
        matrix = sparse.csr_array(matrix)
        indptr, indices = (
            self.torch.as_tensor(np.array(part), device=self.device)
            for part in (matrix.indptr, matrix.indices)
        )
        values = self.array(matrix.data)
        with warnings.catch_warnings(action="ignore"):  # torch calls this format a beta
            return self.torch.sparse_csr_tensor(indptr, indices, values, matrix.shape, check_invariants=False)

    def gram(
        self,
        matrix: sparse.csr_array,
        weights: NDArray[Any] | None = None,
        P: sparse.csr_array | None = None,
        name: str = "",
    ) -> Any:
        n_users, n_items = matrix.shape
        scaled = matrix if weights is None else sparse.diags_array(weights) @ matrix
        transpose, left = sparse.csr_array(matrix.T), self._csr(scaled.T)
        rule = None if P is None else self._csr(P)
        product = self.torch.empty((n_items, n_items), dtype=self._dtype_of(self.dtype), device=self.device)
        for panel in row_blocks(n_items, max(1, 16 * dense_algebra.MAX_BLOCK_ENTRIES // n_users)):
            columns = self._csr(transpose[panel]).to_dense().T.contiguous()
            product[:, panel] = left @ (columns if rule is None else rule @ columns)
        return product

    def add(self, total: Any, scale: float, matrix: Any) -> None:
        total.add_(matrix, alpha=scale)

    def rule(self, Q: sparse.csr_array | None, size: int) -> Any:
        return self.array(uniform_rule(size, np.float64)) if Q is None else self._csr(Q)

    def apply(self, donors: Any, matrix: Any) -> Any:
        return donors @ matrix

    def apply_transposed(self, donors: Any, matrix: Any) -> Any:
        return (donors @ matrix).T.contiguous()

    def set_diagonal(self, matrix: Any, values: Any) -> None:
        matrix.diagonal().copy_(values)

    def astype(self, matrix: Any, precision: str) -> Any:
        return matrix.to(self._dtype_of(precision))

    def stored(self, weights: Any) -> Any:
        return self.astype(weights, "single").contiguous()

    def entries(self, matrix: Any, rows: IntArray, columns: IntArray) -> NDArray[Any]:
        places = (self.torch.as_tensor(part.astype(np.int64), device=self.device) for part in (rows, columns))
        return self.to_numpy(matrix[tuple(places)])

    def add_transpose(self, weights: Any, scale: float, donors: sparse.csr_array | None) -> None:
        weights += scale * (
            self.rule(None, len(weights)) if donors is None else self._csr(donors.T).to_dense()
        )

    def top_items(self, rows: sparse.csr_array, weights: Any, k: int) -> IntArray:
        histories = self._csr(rows.astype(np.float32))
        scores = histories @ weights
        scores.masked_fill_(histories.to_dense() > 0, -np.inf)
        return self.to_numpy(scores.topk(k, dim=1).indices)

    def solve(self, M: Any, C: Any, regularisation: Any, overwrite: bool = False) -> Any:
        K = self.invert(M if overwrite else M.clone(), regularisation)
        B = K @ C
        mu = B.diagonal() / K.diagonal()
        for block in row_blocks(len(B)):
            B[block] -= K[block] * mu
        B.fill_diagonal_(0.0)
        return B

    def invert(self, M: Any, regularisation: Any) -> Any:
        M.diagonal().add_(self.torch.as_tensor(regularisation, dtype=M.dtype, device=M.device))
        try:
            self._invert_blocks(M)
        except RuntimeError as error:
            if "positive" not in str(error):
                raise
            raise constrained_ridge.singular_matrix(regularisation) from error
        return M

    def _invert_blocks(self, M: Any) -> None:
        """Invert a positive definite matrix in place: nearly all steps are products of matrices."""
        if len(M) <= 2 * dense_algebra.BLOCK_ROWS:
            M.copy_(self.torch.cholesky_inverse(self.torch.linalg.cholesky(M)))
            return
        half = len(M) // 2
        A, B, D = M[:half, :half], M[:half, half:], M[half:, half:]
        self._invert_blocks(A)
        T = A @ B
        D.addmm_(B.T, T, alpha=-1.0)
        self._invert_blocks(D)
        B.copy_(T @ D)
        A.addmm_(B, T.T)
        B.neg_()
        M[half:, :half].copy_(B.T)

    def max_items(self) -> int:
        if self.device.type != "cuda":
            return max_items_in_memory()
        memory = self.torch.cuda.get_device_properties(self.device).total_memory
        return int((0.8 * memory / 36) ** 0.5)  # M, C and B in double precision, with blocks of the inverse


def import_torch_for(device: str) -> Any:
    """Return torch, if it has the device."""
    torch: Any = import_optional("torch", f"device {device!r}")
    try:
        torch.empty(0, device=torch.device(device))
    except (RuntimeError, AssertionError, TypeError, ValueError) as error:
        raise InputError("device", f"must be 'cpu' or an available 'cuda'; got {show(device)}.") from error
    return torch
