"""CopyEASE: EASE whose input is a copied matrix, in closed form.

Every user draws a donor user and every item a donor item by node copying. Each entry of the input X is the
user's own (with probability q0), that of the donor user (q1), or the user's own at the donor item (q2).
``docs/copy_ease.md`` derives E[X'X] and E[X'A], so that nothing is sampled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

from nodecopy._core.checks import check_settings, show
from nodecopy._core.parallel import map_on_cores
from nodecopy.copying import Jaccard, NodeCopying
from nodecopy.errors import InputError
from nodecopy.interactions import Interactions
from nodecopy.recommend import algebra
from nodecopy.recommend.algebra import copied_moments
from nodecopy.recommend.ease import LinearRecommender, Moments
from nodecopy.recommend.tuning import Coordinate

UNIFORM, AUTO = "uniform", "auto"
MAX_UNIFORM = 10_000
BONUS_SHARE = 0.75  # the automatic bonus as a multiple of the regression coefficient
EXPONENTS = (1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0)
SHARES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6)


def default_donors() -> Jaccard:
    """Return the default donor rule of users and of items."""
    return Jaccard(include_self=False, exponent=2.5, max_donors=50)


@dataclass(eq=False)
class CopyEASE(LinearRecommender):
    """Fit EASE to recover the observed matrix from an input whose entries are copied.

    Parameters
    ----------
    user_share, item_share
        Probability that an entry of the input is that of a donor user (q1) or at a donor item (q2). With
        both 0, the model is EASE.
    user_donors, item_donors
        Donor rules of users and of items, ``Jaccard(include_self=False, exponent=2.5, max_donors=50)`` by
        default. With ``"uniform"``, a control, all others have equal probability.
    item_bonus
        Weight of the expected item copy A Q' in the scores. ``"auto"`` is 0.75 times the coefficient of the
        regression of the weights B on Q'.
    regularisation, regularisation_exponent, precision, degree_exponent, popularity_penalty
        As in :class:`.EASE`.
    device, n_neighbours, low_pass, low_pass_rank
        As in :class:`.EASE`.

    Attributes
    ----------
    weights_, n_neighbours_, low_pass_, singular_values_
        As in :class:`.EASE`; the weights are B + bonus Q', divided by the popularity penalty, and the filter.
    item_bonus_
        The weight of A Q' that was used.

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
    user_donors: Any = field(default_factory=default_donors)
    item_donors: Any = field(default_factory=default_donors)
    regularisation: float = 60.0
    item_bonus: float | str = AUTO
    precision: str = "auto"
    degree_exponent: float = 0.3
    device: str = "cpu"
    n_neighbours: int | str | None = "auto"
    regularisation_exponent: float = 0.0
    popularity_penalty: float = 0.1
    low_pass: float = 0.4
    low_pass_rank: int | str = AUTO

    def check_params(self) -> None:
        super().check_params()
        check_settings(self, user_share=(0.0, 1.0), item_share=(0.0, 1.0))
        if (total := self.user_share + self.item_share) > 1:
            raise InputError(f"user_share + item_share of CopyEASE must be at most 1; got {total:g}.")
        if not (isinstance(self.item_bonus, str) and self.item_bonus == AUTO):
            check_settings(self, item_bonus=0.0)
        for name in ("user_donors", "item_donors"):
            rule = getattr(self, name)
            is_uniform = isinstance(rule, str) and rule == UNIFORM
            if not is_uniform and (isinstance(rule, (str, type)) or not hasattr(rule, "fit")):
                allowed = "must be a donor rule such as Jaccard() or 'uniform'"
                raise InputError(f"{name} of CopyEASE", f"{allowed}; got {show(rule)}.")

    def dense_moments(self, A: sparse.csr_array, P: Any, Q: Any, weights: Any) -> Any:
        # Single precision is enough for sums, but not always for the solver.
        return copied_moments(A, P, Q, *self.shares, weights, dtype=np.float32, device=self.device)

    def set_state(self, state: dict[str, Any]) -> None:
        super().set_state(state)
        if state:
            check_settings(self, item_bonus_=0.0)

    @property
    def shares(self) -> tuple[float, float]:
        return self.user_share, self.item_share

    def donor_probabilities(self, train: Interactions, rules: dict[Any, Any] | None = None) -> Sequence[Any]:
        known: dict[Any, Any] = {} if rules is None else rules
        transpose = Interactions(train.matrix.T, train.item_ids, train.user_ids)

        def fit(side: str) -> Any:
            rule = self.user_donors if side == "users" else self.item_donors
            key = side, repr(rule)
            if key not in known:
                known[key] = donor_matrix(rule, train if side == "users" else transpose)
            return known[key]

        return list(map_on_cores(fit, ("users", "items")))  # most of it is done without the GIL

    def finish_weights(self, weights: Any, moments: Moments) -> Any:
        """Return B + bonus Q', since A B + bonus A Q' are the scores."""
        Q: Any = moments.Q
        weights = weights if moments.is_sparse else algebra.cast(weights, "single")
        bonus: Any = self.item_bonus
        if bonus == AUTO:
            bonus = BONUS_SHARE * max(0.0, _coefficient(weights, Q))
        if bonus and moments.is_sparse:
            weights = sparse.csr_array((weights + bonus * Q.T).astype(np.float32))
        elif bonus:
            places = Q.indices.astype(np.int64), Q.tocoo().row.astype(np.int64)
            weights[places] += algebra.like((bonus * Q.data).astype(np.float32), weights)
        self.item_bonus_ = float(bonus)
        return super().finish_weights(weights, moments)

    def coordinates(self) -> list[Coordinate]:
        rules = [name for name in ("user_donors", "item_donors") if isinstance(getattr(self, name), Jaccard)]
        exponents = tuple(f"{rule}__exponent" for rule in rules)
        n_donors = tuple(f"{rule}__max_donors" for rule in rules)
        regularisation, *others = super().coordinates()
        return [
            regularisation,
            Coordinate(exponents, EXPONENTS),
            *others,
            Coordinate(("user_share",), SHARES),
            Coordinate(("item_share",), SHARES),
            Coordinate(n_donors, (20, 50, 100, 200)),
            *(Coordinate((exponent,), EXPONENTS) for exponent in exponents),
            Coordinate(("item_bonus",), (0.0, 0.1, AUTO, 0.2, 0.4)),
        ]


def _coefficient(weights: Any, Q: sparse.csr_array) -> float:
    """Return the coefficient of the regression of the weights on Q'."""
    if isinstance(weights, sparse.csr_array):
        total = (weights * Q.T).sum()
    else:
        places = Q.indices.astype(np.int64), Q.tocoo().row.astype(np.int64)
        total = algebra.to_numpy(weights[places]) @ Q.data
    return float(total / (Q.data @ Q.data))


def donor_matrix(donors: Any, interactions: Interactions) -> sparse.csr_array:
    """Return the donor probabilities of a rule; in the uniform one, a single node is its own donor."""
    if isinstance(donors, str):
        n = interactions.n_users
        if n > MAX_UNIFORM:
            allowed = f"is possible for at most {MAX_UNIFORM:,} users and items, as a control"
            raise InputError("donors 'uniform'", f"{allowed}; got {n:,}. Use Jaccard().")
        return sparse.csr_array((np.ones((n, n)) - np.eye(n)) / (n - 1) if n > 1 else np.ones((1, 1)))
    return NodeCopying(donors).fit(interactions).distribution_.probabilities()
