"""Gram matrices that follow new interactions: only users of whom something changed are multiplied again."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from nodecopy._core.csr import IntArray
from nodecopy.errors import InputError
from nodecopy.interactions import Interactions
from nodecopy.recommend.dense_algebra import Algebra, NumpyAlgebra


class _Product(NamedTuple):
    """A'DA or A'DPA with its factors."""

    matrix: sparse.csr_array
    weights: NDArray[np.float64]
    P: sparse.csr_array | None
    result: NDArray[np.float64]


class RunningAlgebra(NumpyAlgebra):
    """Operations on the CPU in double precision that update the last Gram matrix of each name.

    What changed is determined by comparison, so that the result is exact whatever changed: entries and
    weights of users, their donors, and the rows of their donors. Users and items may be appended.
    """

    def __init__(self) -> None:
        super().__init__(np.float64)
        self.products: dict[str, _Product] = {}

    def gram(
        self,
        matrix: sparse.csr_array,
        weights: NDArray[Any] | None = None,
        P: sparse.csr_array | None = None,
        name: str = "",
    ) -> Any:
        A = sparse.csr_array(matrix.astype(np.float64))
        w = np.ones(A.shape[0]) if weights is None else np.asarray(weights, np.float64)
        if name not in self.products or (self.products[name].P is None) != (P is None):
            self.products[name] = _Product(A, w, P, super().gram(matrix, weights, P))
            return self.products[name].result.copy()
        old = _pad(self.products[name], A.shape)
        ratio = np.divide(w, old.weights, out=np.zeros_like(w), where=old.weights > 0)
        scale = float(np.median(ratio[ratio > 0])) if (ratio > 0).any() else 1.0
        is_new = _differs(A, old.matrix)
        changed = is_new | ~np.isclose(w, scale * old.weights, rtol=1e-12, atol=0.0)
        if P is not None and old.P is not None:
            for law in (P, old.P):
                changed |= law @ is_new.astype(np.float64) > 0
            changed |= _differs(P, old.P)
        rows, result = np.flatnonzero(changed), old.result
        # Computed first: an interrupted update must not leave a product that does not fit its factors.
        change = _part(A, w, P, rows) - _part(old.matrix, scale * old.weights, old.P, rows)
        result *= scale
        result += change
        self.products[name] = _Product(A, w, P, result)
        return result.copy()

    grams = Algebra.grams  # each is updated by itself


def append_interactions(train: Interactions, new: Interactions) -> Interactions:
    """Return both tables together; users and items that are new come after those of training."""
    ids = []
    for name, old, other in (
        ("users", train.user_ids, new.user_ids),
        ("items", train.item_ids, new.item_ids),
    ):
        if (old.dtype.kind == "U") != (other.dtype.kind == "U"):
            kind = "strings" if old.dtype.kind == "U" else "integers"
            raise InputError(f"ids of {name} must be {kind}, as in training; got {other.tolist()[0]!r}.")
        ids.append(np.concatenate([old, other[~np.isin(other, old)]]))
    users, items = (np.concatenate(pair) for pair in zip(train.table()[:2], new.table()[:2], strict=True))
    return Interactions.from_table(users, items, user_ids=ids[0], item_ids=ids[1]).binary()


def _pad(product: _Product, shape: tuple[int, int]) -> _Product:
    """Return a product with rows and columns of zeros for new users and items."""
    n_users, n_items = shape
    (old_users, old_items), P = product.matrix.shape, product.P
    if (old_users, old_items) == shape:
        return product
    result = np.zeros((n_items, n_items))
    result[:old_items, :old_items] = product.result
    weights = np.append(product.weights, np.zeros(n_users - old_users))
    law = None if P is None else _enlarge(P, (n_users, n_users))
    return _Product(_enlarge(product.matrix, shape), weights, law, result)


def _enlarge(matrix: sparse.csr_array, shape: tuple[int, int]) -> sparse.csr_array:
    larger: Any = sparse.csr_array(matrix, copy=True)
    larger.resize(shape)
    return sparse.csr_array(larger)


def _differs(first: sparse.csr_array, second: sparse.csr_array) -> NDArray[np.bool_]:
    """Return which rows of two matrices differ."""
    difference: Any = sparse.csr_array(first - second)
    difference.eliminate_zeros()
    return np.asarray(np.diff(difference.indptr) > 0)


def _part(A: Any, w: NDArray[np.float64], P: Any, rows: IntArray) -> NDArray[np.float64]:
    """Return the part of A'DA or A'DPA that comes from some users."""
    left = sparse.csr_array(sparse.diags_array(w[rows]) @ A[rows])
    right = A[rows] if P is None else P[rows] @ A
    return np.asarray((left.T @ right).toarray())
