"""Linear autoencoders with an empty diagonal: scores are A B, and B has a closed form.

All of them minimise E||A - X B||^2 + lambda ||B||^2 with diag(B) = 0, where X is what the model is shown.
With M = E[X'X], C = E[X'A] and K = (M + lambda I)^-1 the answer is

    B = K C - K diag(mu),   mu_i = (K C)_ii / K_ii.

EASE (Steck, 2019) shows the observed matrix itself: M = C = A'A, and B shrinks to I - K diag(1 / K_ii).
An items x items matrix is kept; it is what bounds the number of items (10^4 take 400 MB).
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray
from scipy import linalg, sparse

from nodecopy._core.csr import is_dense_product_faster
from nodecopy._core.validation import check_choice, check_real
from nodecopy.errors import InputError
from nodecopy.interactions import Interactions
from nodecopy.recommend.base import Recommender, nonempty

Matrix = NDArray[np.floating[Any]]
BLOCK = 256
SPECTRAL_FROM = 8
"""Regularisations from which one eigendecomposition is faster than as many Cholesky factorisations."""


class LinearRecommender(Recommender):
    """Scores are A B for an items x items matrix B, so any list of items can be scored.

    Attributes
    ----------
    weights_
        The matrix B, in single precision.
    """

    regularisation: float
    precision: str
    weights_: NDArray[np.float32]

    DTYPES: ClassVar[dict[str, type]] = {"double": np.float64, "single": np.float32}

    @abstractmethod
    def _moments(self, interactions: Interactions) -> tuple[Matrix, Matrix]:
        """M = E[X'X] and C = E[X'A], in the precision that is asked for."""

    def fit_path(self, interactions: Interactions, regularisations: Sequence[float]) -> Iterator[Self]:
        """Fitted recommenders for many regularisations, from one set of moments and one factorisation.

        From ``SPECTRAL_FROM`` values on an eigendecomposition of M serves every one of them; fewer are
        factorised one by one, which is then faster. The moments are made once in any case.
        """
        known = nonempty(interactions, "interactions").binary()
        self._check()
        for value in regularisations:
            _check_regularisation(value, self)
        M, C = self._moments(known)
        if len(regularisations) >= SPECTRAL_FROM:
            solutions = constrained_path(M, C, regularisations)
        else:
            solutions = (constrained(M, C, value) for value in regularisations)
        for value, weights in zip(regularisations, solutions, strict=True):
            model = copy.copy(self)
            model.regularisation = value
            model.weights_ = model._finished(weights, known)
            model.interactions_, model._seen = known, None
            yield model

    def _check(self) -> None:
        _check_regularisation(self.regularisation, self)
        check_choice(self.precision, f"precision of {type(self).__name__}", self.DTYPES)

    def _fit(self, interactions: Interactions, validation: Interactions | None, seed: SeedSequence) -> None:
        moments = self._moments(interactions)
        self.weights_ = self._finished(constrained(*moments, self.regularisation), interactions)

    def _finished(self, weights: Matrix, interactions: Interactions) -> NDArray[np.float32]:
        """B as it is kept."""
        return weights.astype(np.float32, order="C")

    def _score_rows(self, rows: sparse.csr_array) -> NDArray[Any]:
        return np.asarray(rows @ self.weights_)

    def _state(self) -> dict[str, Any]:
        return {"weights": self.weights_}

    def _restore(self, state: dict[str, Any]) -> None:
        self.weights_ = state["weights"]


@dataclass(eq=False)
class EASE(LinearRecommender):
    """Each item from the others by ridge regression, in closed form (Steck, 2019).

    Parameters
    ----------
    regularisation
        Lambda, above 0; hundreds for dense data, tens for sparse.
    precision
        ``"double"`` or ``"single"``, in which the linear algebra is done.

    Examples
    --------
    >>> from nodecopy import Interactions
    >>> log = Interactions([[1, 1, 0], [1, 1, 1], [0, 1, 1]])
    >>> (EASE(regularisation=1.0).fit(log).weights_.round(3) + 0.0).tolist()
    [[0.0, 0.5, 0.0], [0.5, 0.0, 0.5], [0.0, 0.5, 0.0]]
    """

    regularisation: float = 300.0
    precision: str = "double"

    def _moments(self, interactions: Interactions) -> tuple[Matrix, Matrix]:
        gram = co_occurrences(interactions.matrix, self.DTYPES[self.precision])
        return gram, gram

    def _fit(self, interactions: Interactions, validation: Interactions | None, seed: SeedSequence) -> None:
        gram, _ = self._moments(interactions)
        inverse = inverted(gram, self.regularisation)
        # The inverse is symmetric, so its rows are divided in place of its columns, in the order scores need.
        weights = inverse.T / -np.diag(inverse)
        np.fill_diagonal(weights, 0.0)
        self.weights_ = self._finished(weights, interactions)


def co_occurrences(matrix: sparse.csr_array, dtype: Any, weights: NDArray[Any] | None = None) -> Matrix:
    """A'A, or A'WA with weights of users, dense and in C order."""
    right = matrix.astype(dtype)
    transpose = sparse.csr_array(matrix.T, dtype=dtype)  # CSR times CSR: SciPy would convert anything else
    if is_dense_product_faster(transpose):
        dense = right.toarray()
        if weights is not None:
            dense *= np.sqrt(weights.astype(dtype))[:, None]
        return np.asarray(dense.T @ dense)  # of one array and its transpose BLAS makes half
    if weights is not None:
        right = sparse.diags_array(weights.astype(dtype)) @ right
    return np.asarray((transpose @ right).toarray())


def inverted(matrix: Matrix, regularisation: float) -> Matrix:
    """(matrix + lambda I)^-1 of a symmetric positive semi-definite matrix, by Cholesky."""
    shifted = np.array(matrix, order="F")
    shifted.flat[:: len(shifted) + 1] += regularisation
    lapack: Any = linalg.get_lapack_funcs(("potrf", "potri"), (shifted,))
    factorise, invert = lapack
    # The upper triangle of a Fortran matrix: both routines work in place and touch nothing else.
    factor, failed = factorise(shifted, lower=False, overwrite_a=True, clean=False)
    if not failed:
        inverse, failed = invert(factor, lower=False, overwrite_c=True)
    if failed:
        raise InputError(
            f"regularisation must be larger: the matrix is singular to rounding; got {regularisation:g}."
        )
    _mirror(inverse)
    return np.asarray(inverse)


def constrained(M: Matrix, C: Matrix, regularisation: float) -> Matrix:
    """B = K C - K diag(mu) with the diagonal empty.

    K = V V' with V the inverse of the Cholesky factor, so all that is needed are two triangular products:
    Y = V'C, then B = V (Y - V' diag(mu)); the diagonals of K and K C are sums over V and Y.
    """
    V = _inverse_factor(M, regularisation)
    multiply = linalg.get_blas_funcs("trmm", (V,))
    Y = multiply(1.0, V, np.asfortranarray(C), trans_a=True)
    mu = np.einsum("ik,ki->i", V, Y) / np.einsum("ik,ik->i", V, V)
    for start in range(0, len(V), BLOCK):  # V' diag(mu) is lower triangular; blocks of it fit the cache
        some = slice(start, start + BLOCK)
        Y[start:, some] -= (V[some, start:] * mu[some, None]).T
    B = np.asarray(multiply(1.0, V, Y, overwrite_b=True))
    np.fill_diagonal(B, 0.0)
    return B


def _inverse_factor(matrix: Matrix, regularisation: float) -> Matrix:
    """The inverse V of the upper Cholesky factor of (matrix + lambda I); zeros below the diagonal."""
    shifted = np.array(matrix, order="F")
    shifted.flat[:: len(shifted) + 1] += regularisation
    lapack: Any = linalg.get_lapack_funcs(("potrf", "trtri"), (shifted,))
    factorise, invert = lapack
    factor, failed = factorise(shifted, overwrite_a=True, clean=True)
    if not failed:
        factor, failed = invert(factor, overwrite_c=True)
    if failed:
        raise InputError(
            f"regularisation must be larger: the matrix is singular to rounding; got {regularisation:g}."
        )
    return np.asarray(factor)


def constrained_path(M: Matrix, C: Matrix, regularisations: Sequence[float]) -> Iterator[Matrix]:
    """The same for many lambdas: M = V diag(w) V' makes B = V (w + lambda)^-1 (V'C - V' diag(mu))."""
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


def _mirror(matrix: Matrix) -> None:
    """Write the upper triangle over the lower one, in place, block by block."""
    for start in range(0, len(matrix), BLOCK):
        some = slice(start, start + BLOCK)
        matrix[some, some] = np.triu(matrix[some, some]) + np.triu(matrix[some, some], 1).T
        matrix[start + BLOCK :, some] = matrix[some, start + BLOCK :].T


def _check_regularisation(value: Any, model: LinearRecommender) -> None:
    name = f"regularisation of {type(model).__name__}"
    if check_real(value, name, low=0.0) == 0.0:
        raise InputError(f"{name} must be above 0; got {value!r}.")
