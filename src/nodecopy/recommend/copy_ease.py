"""CopyEASE: EASE whose input is a copied matrix, in closed form.

Every user draws a donor user and every item a donor item by node copying. Each entry of the input X is the
user's own (with probability q0), that of the donor user (q1), or the user's own at the donor item (q2).
The model learns to recover the observed matrix from X. Donors are independent, so that E[X'X] and E[X'A]
have exact expressions and nothing is sampled; ``docs/copy_ease.md`` derives them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from nodecopy._core.csr import is_dense_product_faster
from nodecopy._core.validation import check_real
from nodecopy.copying import Jaccard, NodeCopying
from nodecopy.errors import InputError
from nodecopy.interactions import Interactions
from nodecopy.recommend.constrained_ridge import Matrix, co_occurrences
from nodecopy.recommend.ease import LinearRecommender

UNIFORM = "uniform"
MAX_BLOCK_ENTRIES = 2**24
MIN_DENSE_SHARE = 0.04
"""Share of stored entries from which a dense product is faster than a sparse one."""


def default_donor_law() -> Jaccard:
    """Return the donor law of users and of items that :class:`CopyEASE` uses by default."""
    return Jaccard(include_self=False, exponent=4.0, max_donors=50)


@dataclass(eq=False)
class CopyEASE(LinearRecommender):
    """Fit EASE to recover the observed matrix from an input whose entries are copied.

    Parameters
    ----------
    user_share, item_share
        Probability that an entry of the input is that of a donor user (q1) or at a donor item (q2), 0.4
        each by default; the rest is the user's own. EASE is the case in which both are 0.
    user_law, item_law
        Donor laws of users and of items. The default is
        ``Jaccard(include_self=False, exponent=4.0, max_donors=50)``. With ``"uniform"`` all others
        have equal probability: the control that shows what similarity adds.
    regularisation
        Lambda, above 0; 60 by default.
    item_bonus
        Weight of the expected item copy A Q' in the scores, 0.2 by default.
    precision
        ``"double"`` (default) or ``"single"``, the precision of the linear algebra.

    Attributes
    ----------
    weights_
        The matrix B + bonus Q'; entry (i, j) is what item i in a history adds to the score of item j.

    Examples
    --------
    >>> from nodecopy import Interactions
    >>> from nodecopy.recommend import CopyEASE
    >>> log = Interactions([[1, 1, 0, 0], [1, 1, 1, 0], [0, 1, 1, 1], [0, 0, 1, 1]])
    >>> CopyEASE(regularisation=1.0).fit(log).recommend([0], 1)[0].tolist()
    [[2]]
    """

    user_share: float = 0.4
    item_share: float = 0.4
    user_law: Any = field(default_factory=default_donor_law)
    item_law: Any = field(default_factory=default_donor_law)
    regularisation: float = 60.0
    item_bonus: float = 0.2
    precision: str = "double"

    def check_params(self) -> None:
        super().check_params()
        user_share = check_real(self.user_share, "user_share of CopyEASE", low=0.0, high=1.0)
        item_share = check_real(self.item_share, "item_share of CopyEASE", low=0.0, high=1.0)
        if user_share + item_share > 1:
            raise InputError(
                f"user_share + item_share of CopyEASE must be at most 1; got {user_share + item_share:g}."
            )
        check_real(self.item_bonus, "item_bonus of CopyEASE", low=0.0)
        for name in ("user_law", "item_law"):
            law = getattr(self, name)
            if law != UNIFORM and (isinstance(law, (str, type)) or not hasattr(law, "fit")):
                raise InputError(
                    f"{name} of CopyEASE must be a donor law such as Jaccard() or 'uniform'; got {law!r}."
                )

    def moments(self, interactions: Interactions) -> tuple[Matrix, Matrix]:
        P = donor_matrix(self.user_law, interactions)
        transpose = Interactions(interactions.matrix.T, interactions.item_ids, interactions.user_ids)
        Q = self._item_donors = donor_matrix(self.item_law, transpose)
        # Single precision is enough for sums of counts and probabilities, but not always for the solver.
        M, C = copied_moments(interactions.matrix, P, Q, self.user_share, self.item_share, np.float32)
        dtype = self.DTYPES[self.precision]
        return M.astype(dtype, copy=False), C.astype(dtype, copy=False)

    def finish_weights(self, weights: Matrix, interactions: Interactions) -> NDArray[np.float32]:
        """Return B + bonus Q', since the scores A B + bonus A Q' are A (B + bonus Q')."""
        Q, stored = self._item_donors, super().finish_weights(weights, interactions)
        if not self.item_bonus:
            return stored
        if Q is None:
            stored += np.float32(self.item_bonus) * _uniform_law(interactions.n_items, np.float32)
        else:
            item = np.repeat(np.arange(interactions.n_items), np.diff(Q.indptr))
            stored[Q.indices, item] += (self.item_bonus * Q.data).astype(np.float32)
        return stored


def donor_matrix(law: Any, interactions: Interactions) -> sparse.csr_array | None:
    """Return the donor probabilities of a law; ``None`` stands for the uniform law over all others."""
    if isinstance(law, str):
        return None
    return NodeCopying(law).fit(interactions).distribution_.probabilities()


def copied_moments(
    matrix: sparse.csr_array,
    P: sparse.csr_array | None,
    Q: sparse.csr_array | None,
    user_share: float,
    item_share: float,
    dtype: Any = np.float64,
) -> tuple[Matrix, Matrix]:
    """Return M = E[X'X] and C = E[X'A] of the copied input X, exactly.

    Parameters
    ----------
    matrix
        A, users x items, zeros and ones.
    P, Q
        Donor probabilities of users and of items, whose rows add up to 1; ``None`` for the uniform law.
    user_share, item_share
        The probabilities q1 and q2.
    dtype
        Type of the results and of all intermediate sums.
    """
    A = sparse.csr_array(matrix, dtype=dtype)
    q1, q2 = user_share, item_share
    q0 = 1 - q1 - q2
    G = co_occurrences(A, dtype)
    counts = np.diag(G).copy()
    # Off the diagonal M = S + S'. All products with Q but one are products with C', so two are enough.
    C_t, S, diagonal = q0 * G, (q0 * q0 / 2) * G, q0 * counts
    if q1:
        H, weighted = _user_copies(A, P, G)
        diagonal = diagonal + q1 * np.diag(weighted)
        C_t += q1 * H
        H *= q0 * q1
        weighted *= q1 * q1 / 2  # both entries come from the same donor
        S += H
        S += weighted
    if q2:
        law = _uniform_law(len(G), dtype) if Q is None else _fastest_form(Q.astype(dtype))
        GQ_t = np.ascontiguousarray((law @ G).T)
        diagonal = diagonal + q2 * (law @ counts)
        GQ_t *= q2 / 2
        C_t += GQ_t
        copied = law @ C_t
        copied *= q2
        S += copied
        C_t += GQ_t
    M = S + S.T
    np.fill_diagonal(M, diagonal)
    return M, C_t.T


def _user_copies(A: sparse.csr_array, P: sparse.csr_array | None, G: Matrix) -> tuple[Matrix, Matrix]:
    """Return A'PA, and A'WA where W holds the expected number of times each user is a donor, by blocks."""
    n_users, n_items = A.shape
    counts = np.diag(G)
    if P is None:
        copied = G if n_users == 1 else (np.outer(counts, counts) - G) / (n_users - 1)
        return copied, G.copy()
    H = np.zeros_like(G)
    P, A_t = P.astype(A.dtype), sparse.csr_array(A.T)
    dense = A.toarray() if is_dense_product_faster(A_t) else None
    step = max(1, MAX_BLOCK_ENTRIES // max(n_items, n_users if _is_full(P) else 0))
    for start in range(0, n_users, step):
        block = slice(start, start + step)
        if dense is not None:
            H += dense[block].T @ (_fastest_form(P[block]) @ dense)
        else:
            copied = (A_t @ P[block].T.toarray()).T if _is_full(P) else (P[block] @ A).toarray()
            H += sparse.csr_array(A[block].T) @ copied
    return H, co_occurrences(A, A.dtype, np.asarray(P.sum(axis=0)))


def _is_full(law: sparse.csr_array) -> bool:
    return bool(law.nnz >= MIN_DENSE_SHARE * law.shape[0] * law.shape[1])


def _fastest_form(law: sparse.csr_array) -> Any:
    """Return a law as the type of matrix that is faster in products with dense matrices."""
    return law.toarray() if _is_full(law) else law


def _uniform_law(size: int, dtype: Any) -> Matrix:
    """Return equal probabilities for all others; a single node is its own donor."""
    if size == 1:
        return np.ones((1, 1), dtype)
    Q = np.full((size, size), 1 / (size - 1), dtype)
    np.fill_diagonal(Q, 0.0)
    return Q
