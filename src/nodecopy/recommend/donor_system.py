"""The equations behind the weights of EASE and CopyEASE, solved for one score.

The weights of item j are a regression on other items S, all but j in the exact form:
B_Sj = (M_SS + lambda I)^-1 C_Sj. The score of a history a is therefore t'C_Sj with
t = (M_SS + lambda I)^-1 a_S, and C is a sum over the rows and columns that the copied input is made of
(``docs/copy_ease.md``), which gives the part of each of them in the score. With few items the inverse serves
all scores; with more, M is never computed, since conjugate gradients need products with it only.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, cg

from nodecopy._core.csr import IntArray
from nodecopy._core.hints import Hint
from nodecopy._core.notices import warn_about_data
from nodecopy.recommend.copied_moments import copied_moments

Values = NDArray[np.float64]
MAX_INVERTED_ITEMS = 2000
COLUMNS_PER_BLOCK = 256
ENTRIES_PER_BLOCK = 2**24
"""Entries of a dense users x columns matrix, which the uniform law needs."""
TOLERANCE, MAX_STEPS = 1e-9, 2000
"""When conjugate gradients end: the residual divided by the right side, and the number of steps."""
MIN_WEIGHT_SHARE = 1e-6
"""Share of a weight in the sparse form below which the bonus is all of it but rounding."""


class DonorSystem:
    """The parts of donors in the scores of a linear recommender.

    Parameters
    ----------
    matrix
        A, users x items, zeros and ones.
    regularisation
        Lambda, or that of each item.
    weights
        Weight of each user in the objective; all are 1 by default.
    P, Q
        Donor probabilities of users and of items; ``None`` for the uniform law.
    user_share, item_share, item_bonus
        The probabilities q1 and q2, and the weight of A Q' in the scores.
    """

    def __init__(
        self,
        matrix: sparse.csr_array,
        regularisation: Any,
        weights: Values | None = None,
        P: sparse.csr_array | None = None,
        Q: sparse.csr_array | None = None,
        user_share: float = 0.0,
        item_share: float = 0.0,
        item_bonus: float = 0.0,
    ) -> None:
        self.A = sparse.csr_array(matrix.astype(np.float64))
        n_users, n_items = self.A.shape
        self.q0, self.q1, self.q2 = 1 - user_share - item_share, user_share, item_share
        self.penalties, self.bonus = np.broadcast_to(regularisation, (n_items,)), item_bonus
        self.w = np.ones(n_users) if weights is None else weights
        self.P = _law(P, n_users, bool(user_share))
        self.Q = _law(Q, n_items, bool(item_share or item_bonus))
        self.W = self.P.T @ self.w  # the expected weight of the users whose donor is each user
        self._diagonals: dict[str, Values] = {
            name: np.full(n_items, np.nan) for name in ("moment", "product")
        }

    def parts(self, history: IntArray, item: int, weights: Values | None = None) -> tuple[Values, Values]:
        """Return what every donor user and every donor item adds to the score of an item.

        Parameters
        ----------
        history
            Columns of the user's items.
        item
            Column of the item.
        weights
            The weights of the item in the sparse form, whose items are those of the regression; by default
            all but the item itself.
        """
        n_items = self.A.shape[1]
        bonus = self.bonus * (self.Q.T @ np.eye(1, n_items, item)[0])
        a = np.zeros(n_items)
        a[history] = 1
        if weights is None and n_items <= MAX_INVERTED_ITEMS:
            t = self.inverse @ a
            t -= self.inverse[:, item] * (t[item] / self.inverse[item, item])
        else:
            # What only the bonus gives a weight in the sparse form is no neighbour.
            is_input = np.ones(n_items, bool)
            if weights is not None:
                is_input = np.abs(weights - bonus) > MIN_WEIGHT_SHARE * np.abs(weights)
            columns = np.flatnonzero(is_input & (np.arange(n_items) != item))
            t = np.zeros(n_items)
            t[columns] = self._solve(a[columns], columns)
        y = np.zeros(len(self.w))
        owners = self.columns.indices[self.columns.indptr[item] : self.columns.indptr[item + 1]]
        y[owners] = self.w[owners]
        users = (self.A @ t) * (self.q0 * y + self.q1 * (self.P.T @ y))
        items = self.q2 * (self.Q.T @ t) * (self.A.T @ y) + bonus * a
        return np.asarray(users), np.asarray(items)

    @cached_property
    def columns(self) -> sparse.csc_array:
        """The matrix A by columns."""
        return sparse.csc_array(self.A)

    @cached_property
    def inverse(self) -> Values:
        """(M + lambda I)^-1, of which the system without an item differs by a multiple of its column."""
        P, Q = (None if isinstance(law, UniformLaw) else law for law in (self.P, self.Q))
        M, _ = copied_moments(self.A, P, Q, self.q1, self.q2, self.w)
        return np.asarray(np.linalg.inv(M + np.diag(self.penalties)))

    def _solve(self, right: Values, columns: IntArray) -> Values:
        """Return (M_SS + lambda I)^-1 b."""
        A, P, w, A_S, Q_S = self.A, self.P, self.w, self.A[:, columns], self.Q[columns]
        Q_St = Q_S.T
        A_t, P_t = A.T, P.T
        A_St = A_S.T
        (moment, product), penalties = self._diagonal(columns), self.penalties[columns]

        def multiply(v: Values) -> Values:
            own = A_S @ v
            donor = P @ own
            x = w * (self.q0 * own + self.q1 * donor + self.q2 * (A @ (Q_St @ v)))
            same_donor = self.q1 * self.q1 * (self.W * own - P_t @ (w * donor))
            result = A_St @ (self.q0 * x + self.q1 * (P_t @ x) + same_donor) + self.q2 * (Q_S @ (A_t @ x))
            return np.asarray(result + (moment - product + penalties) * v)

        n, scale = len(columns), moment + penalties
        operator = LinearOperator((n, n), matvec=multiply, dtype=np.float64)
        jacobi = LinearOperator((n, n), matvec=lambda v: v / scale, dtype=np.float64)
        solution, n_failed = cg(operator, right, rtol=TOLERANCE, maxiter=MAX_STEPS, M=jacobi)
        if n_failed:
            warn_about_data(
                f"the parts of donors are approximate: conjugate gradients did not converge in {n_failed:,} "
                "steps. The remainder says what is missing.",
                Hint("A larger {} makes them converge.", regularisation=...),
            )
        return np.asarray(solution)

    def _diagonal(self, columns: IntArray) -> tuple[Values, Values]:
        """Return the diagonal of M at some items, and that of the formula that holds off the diagonal."""
        moment, product = self._diagonals["moment"], self._diagonals["product"]
        unknown = columns[np.isnan(moment[columns])]
        counts = self.A.T @ self.w
        is_dense = isinstance(self.P, UniformLaw) or isinstance(self.Q, UniformLaw)
        step = min(COLUMNS_PER_BLOCK, 1 + ENTRIES_PER_BLOCK // len(self.w) if is_dense else COLUMNS_PER_BLOCK)
        for start in range(0, len(unknown), step):
            block = unknown[start : start + step]
            A: Any = self.A[:, block]
            unit: Any = sparse.eye_array(self.A.shape[1], format="csc")[:, block]
            if is_dense:
                A, unit = A.toarray(), unit.toarray()
            Q, donor = self.Q[block], self.P @ A
            x = self.q0 * A + self.q1 * donor + self.q2 * (self.A @ (self.Q.T @ unit))
            own, same_donor = A.T @ self.w, A.T @ self.W
            moment[block] = self.q0 * own + self.q1 * same_donor + self.q2 * (Q @ counts)
            squares = _square(x).T @ self.w - self.q1**2 * (_square(donor).T @ self.w)
            product[block] = squares + self.q1**2 * same_donor
        return moment[columns], product[columns]


class UniformLaw:
    """The donor probabilities of the uniform law over the other n - 1, which are no matrix in memory.

    Parameters
    ----------
    n
        Number of users or of items, at least 2.
    """

    def __init__(self, n: int) -> None:
        self.n = n

    def __matmul__(self, values: Values) -> Values:
        return np.asarray((values.sum(axis=0) - values) / (self.n - 1))

    @property
    def T(self) -> UniformLaw:  # noqa: N802
        """The transpose, which is the same."""
        return self

    def __getitem__(self, rows: IntArray) -> LinearOperator:
        """Return the probabilities of some users or items."""

        def spread(v: Values) -> Values:
            full = np.zeros(self.n)
            full[rows] = v.ravel()
            return np.asarray(self @ full)

        shape = len(rows), self.n
        return LinearOperator(shape, lambda v: (self @ v.ravel())[rows], spread, dtype=np.float64)


def _law(probabilities: sparse.csr_array | None, n: int, is_used: bool) -> Any:
    """Return donor probabilities as a matrix or operator, without entries where nothing is copied."""
    if not is_used:
        return sparse.csr_array((n, n))
    if probabilities is not None:
        return sparse.csr_array(probabilities.astype(np.float64))
    return UniformLaw(n) if n > 1 else sparse.csr_array(np.ones((1, 1)))


def _square(matrix: Any) -> Any:
    return np.square(matrix) if isinstance(matrix, np.ndarray) else matrix.power(2)
