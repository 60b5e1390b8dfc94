"""EASE shown a copied matrix: each entry the user's own, a donor user's or a donor item's.

Every user draws a donor user and every item a donor item by node copying, and each entry of the input X
takes one of three values: the user's own (with probability q0), that of the donor user (q1) or, at the
donor item, the user's own (q2). The model learns to recover the observed matrix from X. Donors are
independent, so E[X'X] and E[X'A] are exact and nothing is sampled. ``docs/copy_ease.md`` derives it.
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
from nodecopy.recommend.ease import LinearRecommender, Matrix, co_occurrences

UNIFORM = "uniform"
ENTRIES_AT_ONCE = 2**24
SPARSE_BELOW = 0.04
"""Share of stored entries below which a sparse product beats a dense one."""


def default_donor_law() -> Jaccard:
    """Return the default donor law of users and of items."""
    return Jaccard(include_self=False, exponent=4.0, max_donors=50)


@dataclass(eq=False)
class CopyEASE(LinearRecommender):
    """EASE fitted to recover the observed matrix from one whose entries were copied.

    Parameters
    ----------
    user_share, item_share
        Probability that an entry is a donor user's (q1) or a donor item's (q2); what is left is the
        user's own. Both 0 make EASE.
    user_law, item_law
        Donor laws of users and of items, such as :class:`.Jaccard`; or ``"uniform"``, everybody else with
        equal probability, the control that shows what similarity adds.
    regularisation
        Lambda, above 0.
    item_bonus
        How much of the expected item copy A Q' is added to the scores.
    precision
        ``"double"`` or ``"single"``.

    Examples
    --------
    >>> from nodecopy import Interactions
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

    def _check(self) -> None:
        super()._check()
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

    def _moments(self, interactions: Interactions) -> tuple[Matrix, Matrix]:
        P = donor_matrix(self.user_law, interactions)
        self._item_donors = donor_matrix(self.item_law, _transposed(interactions))
        # Sums of counts and probabilities lose nothing that matters in single precision; the solve can.
        M, C = moments(
            interactions.matrix, P, self._item_donors, self.user_share, self.item_share, np.float32
        )
        dtype = self.DTYPES[self.precision]
        return M.astype(dtype, copy=False), C.astype(dtype, copy=False)

    def _finished(self, weights: Matrix, interactions: Interactions) -> NDArray[np.float32]:
        """Scores A B + bonus A Q' are A (B + bonus Q')."""
        donors = self._item_donors
        kept = super()._finished(weights, interactions)
        if not self.item_bonus:
            return kept
        if donors is None:
            kept += np.float32(self.item_bonus) * _uniform(interactions.n_items, np.float32)
        else:
            item = np.repeat(np.arange(interactions.n_items), np.diff(donors.indptr))
            kept[donors.indices, item] += (self.item_bonus * donors.data).astype(np.float32)
        return kept

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        self._item_donors = None


def donor_matrix(law: Any, interactions: Interactions) -> sparse.csr_array | None:
    """P of a donor law; ``None`` stands for everybody else with equal probability."""
    if isinstance(law, str):
        return None
    return NodeCopying(law).fit(interactions).distribution_.probabilities()


def moments(
    matrix: sparse.csr_array,
    P: sparse.csr_array | None,
    Q: sparse.csr_array | None,
    user_share: float,
    item_share: float,
    dtype: Any = np.float64,
) -> tuple[Matrix, Matrix]:
    """M = E[X'X] and C = E[X'A] of the copied input X, exactly.

    Parameters
    ----------
    matrix
        A, users x items, zeros and ones.
    P, Q
        Donor laws of users and of items, rows adding up to one; ``None``: uniform over all others.
    user_share, item_share
        q1 and q2.
    dtype
        Of the results and of all sums on the way.
    """
    A = sparse.csr_array(matrix, dtype=dtype)
    q1, q2 = user_share, item_share
    q0 = 1 - q1 - q2
    G = co_occurrences(A, dtype)
    counts = np.diag(G).copy()
    # Off the diagonal M = S + S'. Every product with Q but one is a product with C', so two are enough.
    C_t, S, diagonal = q0 * G, (q0 * q0 / 2) * G, q0 * counts
    if q1:
        H, weighted = _user_copies(A, P, G)
        diagonal = diagonal + q1 * np.diag(weighted)
        C_t += q1 * H
        H *= q0 * q1
        weighted *= q1 * q1 / 2  # both from one donor, who has or has not both items
        S += H
        S += weighted
    if q2:
        law = _uniform(len(G), dtype) if Q is None else _fastest(Q.astype(dtype))
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
    """A'PA, and A'WA where W holds how often each user is a donor on average; by blocks of users."""
    n_users, n_items = A.shape
    counts = np.diag(G)
    if P is None:
        copied = G if n_users == 1 else (np.outer(counts, counts) - G) / (n_users - 1)
        return copied, G.copy()
    H = np.zeros_like(G)
    P, A_t = P.astype(A.dtype), sparse.csr_array(A.T)
    dense = A.toarray() if is_dense_product_faster(A_t) else None
    step = max(1, ENTRIES_AT_ONCE // max(n_items, n_users if _is_full(P) else 0))
    for start in range(0, n_users, step):
        some = slice(start, start + step)
        if dense is not None:
            H += dense[some].T @ (_fastest(P[some]) @ dense)
        else:
            copied = (A_t @ P[some].T.toarray()).T if _is_full(P) else (P[some] @ A).toarray()
            H += sparse.csr_array(A[some].T) @ copied
    return H, co_occurrences(A, A.dtype, np.asarray(P.sum(axis=0)))


def _is_full(law: sparse.csr_array) -> bool:
    return bool(law.nnz >= SPARSE_BELOW * law.shape[0] * law.shape[1])


def _fastest(law: sparse.csr_array) -> Any:
    """The form of a law that is faster in products with dense matrices."""
    return law.toarray() if _is_full(law) else law


def _uniform(size: int, dtype: Any) -> Matrix:
    """Everybody else with equal probability; one alone is the own donor."""
    if size == 1:
        return np.ones((1, 1), dtype)
    Q = np.full((size, size), 1 / (size - 1), dtype)
    np.fill_diagonal(Q, 0.0)
    return Q


def _transposed(interactions: Interactions) -> Interactions:
    return Interactions(interactions.matrix.T, interactions.item_ids, interactions.user_ids)
