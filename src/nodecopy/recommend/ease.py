"""EASE and CopyEASE: linear models whose weights have a closed form.

Scores are A B, where B predicts each item from the others by ridge regression. The input of EASE (Steck,
2019) is the observed matrix, so that M = C = A'A, and B = I - K diag(1 / K_ii) with K = (M + lambda I)^-1.

The input of CopyEASE is a copied matrix: every user draws a donor user and every item a donor item by node
copying. Each entry of the input X is the user's own (with probability q0), that of the donor user (q1), or
the user's own at the donor item (q2). ``docs/copy_ease.md`` derives E[X'X] and E[X'A], so that nothing is
sampled.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, cg

from nodecopy._core.arrays import IntArray
from nodecopy._core.checks import check_settings, check_vector, show, type_name
from nodecopy._core.messages import log_decision, warn_about_data
from nodecopy._core.parallel import map_on_cores
from nodecopy.copying import Jaccard, NodeCopying
from nodecopy.errors import InputError
from nodecopy.interactions import Interactions
from nodecopy.io import InteractionsLike
from nodecopy.recommend import algebra
from nodecopy.recommend.base import Recommender, append_interactions, check_nonempty
from nodecopy.recommend.baselines import relative_popularity
from nodecopy.recommend.tuning import REGULARISATIONS, Coordinate

Values = NDArray[np.float64]
MIN_NEIGHBOURS, DEFAULT_NEIGHBOURS = 10, 100
BYTES_PER_NEIGHBOUR = 400  # of each item in the sparse form, with donor rules (measured)
N_SCALED_USERS = 1024  # whose scores give the scale of the low-pass filter
# Parameters on which the moments do not depend
NO_MOMENTS = (
    *("regularisation", "regularisation_exponent", "item_bonus", "popularity_penalty", "precision"),
    *("low_pass", "low_pass_rank"),
)
TOLERANCE, MAX_STEPS = 1e-7, 2000  # of conjugate gradients
MIN_WEIGHT_SHARE = 1e-6  # of a weight in the sparse form; less beside the bonus is rounding
UNIFORM, AUTO = "uniform", "auto"
MAX_UNIFORM = 10_000
BONUS_SHARE = 0.75  # the automatic bonus as a multiple of the regression coefficient
EXPONENTS = (1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0)
SHARES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6)


class Moments(NamedTuple):
    """The matrices and data that determine the weights."""

    M: Any  # E[X'DX] for the input X and weights D of users; in the sparse form S, where M = S + S'
    C: Any  # E[X'DA]; in the sparse form its transpose
    train: Interactions
    popularity: Values
    filters: dict[Any, Any]  # low-pass filters by their rank
    Q: sparse.csr_array | None = None  # donor probabilities of items; None in EASE

    @property
    def is_sparse(self) -> bool:
        return isinstance(self.M, sparse.csr_array)


class LinearRecommender(Recommender):
    """A model whose scores are A B for an items x items matrix B."""

    regularisation: float
    degree_exponent: float
    regularisation_exponent: float
    popularity_penalty: float
    low_pass: float
    low_pass_rank: int | str
    precision: str
    device: str
    n_neighbours: int | str | None
    weights_: Any
    low_pass_: NDArray[np.float32] | None = None
    singular_values_: Values | None = None
    n_neighbours_: int | None

    is_linear: ClassVar[bool] = True
    products_: Values | None = None
    _donors: Sequence[Any] | None = None  # donor probabilities of the fit, which a file does not hold
    _fitted_as: str = ""  # the parameters of the fit, except the device

    @abstractmethod
    def dense_moments(self, A: sparse.csr_array, P: Any, Q: Any, weights: Any) -> Any:
        """Return M, C, and what the formula of M off the diagonal gives on it."""

    @property
    def shares(self) -> tuple[float, float]:
        """The shares of donor users and donor items in the input."""
        return 0.0, 0.0

    def donor_probabilities(self, train: Interactions, rules: dict[Any, Any] | None = None) -> Sequence[Any]:
        """Return donor probabilities of users and of items, if there are donors."""
        return None, None

    def moments(self, train: Interactions, rules: Any = None) -> Moments:
        """Return moments, possibly from donor probabilities in ``rules``."""
        self.n_neighbours_ = self.sparse_neighbours(train.n_items)
        P, Q = self._donors = self.donor_probabilities(train, rules)
        weights = self.user_weights(train)
        if self.n_neighbours_:
            from nodecopy.recommend.sparse_ridge import sparse_moments  # imports numba, which is slow

            parts = sparse_moments(train.matrix, P, Q, *self.shares, weights, self.n_neighbours_)
            self.products_ = None
        else:
            *parts, products = self.dense_moments(train.matrix, P, Q, weights)
            self.products_ = products.astype(np.float64)
        return Moments(*parts, train, relative_popularity(train), {}, Q)

    def check_params(self) -> None:
        check_settings(self, regularisation=0.0, precision=["double", "single", "auto"], low_pass=0.0)
        check_settings(self, regularisation_exponent=-np.inf, popularity_penalty=-np.inf)
        check_settings(self, degree_exponent=(0.0, 10.0))
        if self.regularisation == 0.0:
            name = f"regularisation of {type(self).__name__}"
            raise InputError(name, f"must be above 0; got {self.regularisation!r}.")
        for name, without in (("n_neighbours", (None, "auto")), ("low_pass_rank", ("auto",))):
            if getattr(self, name) not in without:
                check_settings(self, **{name: 1})
        if self.device != "cpu":
            algebra.import_torch_for(self.device)

    def user_weights(self, interactions: Interactions) -> Values | None:
        """Return the weight of each user in the objective; ``None`` where all are 1."""
        if not self.degree_exponent:
            return None
        degrees = interactions.rows.degrees.astype(np.float64)
        weights = np.maximum(degrees, 1.0) ** -self.degree_exponent
        return np.asarray(weights * (degrees.sum() / (degrees @ weights)))

    def item_penalties(self, popularity: Values) -> Any:
        """Return lambda, or the lambda of each item where they differ."""
        if not self.regularisation_exponent:
            return self.regularisation
        return self.regularisation * popularity**self.regularisation_exponent

    def score_factors(self, popularity: Values) -> NDArray[np.float32] | None:
        """Return the factor of the scores of each item; ``None`` where all are 1."""
        if not self.popularity_penalty:
            return None
        return (popularity**-self.popularity_penalty).astype(np.float32)

    def fit_interactions(self, interactions: Interactions, validation: Any, seed: SeedSequence) -> None:
        moments = self.moments(interactions)
        self._store(self.solve(moments, overwrite=True), moments)

    def partial_fit(self, interactions: InteractionsLike) -> Self:
        """Add interactions to the training interactions; the result equals a fit to all of them.

        Users and items may be new. The weights are fitted again, which takes as long as a fit.

        >>> from nodecopy import Interactions
        >>> from nodecopy.recommend import EASE
        >>> model = EASE(1.0).fit(Interactions.from_table(["ann", "ann"], ["tea", "jam"]))
        >>> new = Interactions.from_table(["bob", "bob"], ["tea", "bread"])
        >>> model.partial_fit(new).recommend(["ann"], 1)[0].tolist()
        [['bread']]
        """
        if not hasattr(self, "interactions_"):
            return self.fit(interactions)
        new = check_nonempty(interactions, "interactions")
        self.check_params()
        train, is_all_seen = append_interactions(self.interactions_, new), self.seen_ is self.interactions_
        seen = train if is_all_seen else append_interactions(self.seen_, new)
        self.fit_interactions(train, None, SeedSequence(0))
        self.interactions_, self.seen_ = train, seen
        return self

    def sparse_neighbours(self, n_items: int) -> int | None:
        """Return the number of neighbours in the sparse form; ``None`` for the exact solution."""
        if not isinstance(self.n_neighbours, str):
            return self.n_neighbours
        max_items = algebra.max_items(self.device)
        if n_items <= max_items:
            return None
        n_neighbours = int(algebra.usable_memory() / (BYTES_PER_NEIGHBOUR * n_items))
        n_neighbours = min(max(n_neighbours, MIN_NEIGHBOURS), DEFAULT_NEIGHBOURS)
        log_decision(
            f"{type(self).__name__} predicts each item from {n_neighbours} others, because the exact weights "
            f"of {n_items:,} items do not fit into memory (at most {max_items:,} on {self.device!r}).",
            "n_neighbours",
        )
        return n_neighbours

    def solve(self, moments: Moments, overwrite: bool = False) -> Any:
        """Return the solution B, which may ``overwrite`` M and C."""
        penalties = self.item_penalties(moments.popularity)
        if moments.is_sparse:
            from nodecopy.recommend.sparse_ridge import solve_sparse  # imports numba, which is slow

            return solve_sparse(moments.M, moments.C, penalties, self.n_neighbours_ or 0)
        return self.solve_dense(*self._in_precision(moments), penalties, overwrite)

    def solve_dense(self, M: Any, C: Any, penalties: Any, overwrite: bool) -> Any:
        return algebra.solve_constrained(M, C, penalties, overwrite=overwrite)

    def _in_precision(self, moments: Moments) -> tuple[Any, Any]:
        penalties = self.item_penalties(moments.popularity)
        precision = algebra.choose_precision(moments.M, penalties, self.precision)
        M = algebra.cast(moments.M, precision)
        return M, M if moments.C is moments.M else algebra.cast(moments.C, precision)

    def finish_weights(self, weights: Any, moments: Moments) -> Any:
        """Return the weights as they are stored, on the device of the model."""
        factors = self.score_factors(moments.popularity)
        weights = weights if moments.is_sparse else algebra.cast(weights, "single")
        if factors is not None and moments.is_sparse:
            weights.data *= factors[weights.indices]
        elif factors is not None:
            weights *= algebra.like(factors, weights)
        self.low_pass_ = self.singular_values_ = None
        if not self.low_pass:
            return weights
        A, counts = moments.train.matrix, algebra.count_users(moments.train.matrix)
        rank = self.low_pass_rank
        if rank not in moments.filters:
            moments.filters[rank] = algebra.low_pass_filter(A, rank, self.n_neighbours_)
        factor, self.singular_values_ = moments.filters[rank]
        users = np.flatnonzero(moments.train.rows.degrees)
        rows = A[users[np.linspace(0, len(users) - 1, min(N_SCALED_USERS, len(users))).astype(int)]]
        scores = algebra.to_numpy(algebra.multiply_rows(rows, weights))
        deviation = algebra.low_pass_scores(rows, counts, factor).std()
        scale = self.low_pass * scores.std() / deviation if deviation else 0.0
        self.low_pass_ = factor * np.float32(np.sqrt(scale))
        if not moments.is_sparse:
            algebra.add_low_pass(weights, counts, self.low_pass_)
        return weights

    def _store(self, solution: Any, moments: Moments) -> None:
        self.weights_ = algebra.to_numpy(self.finish_weights(solution, moments))
        self._fitted_as = self._describe_parameters()
        vars(self).pop("_donor_system", None)

    def set_state(self, state: dict[str, Any]) -> None:
        factor, values, log = map(state.get, ("low_pass_", "singular_values_", "interactions_"))
        if log is not None:  # a part of a hybrid has none
            shape = None if values is None else (len(values), log.n_items)
            if getattr(factor, "shape", None) != shape:
                raise InputError("low_pass_", f"must be a matrix of shape {shape}; got {type_name(factor)}.")
            if (products := state.get("products_")) is not None:
                check_vector(products, "products_", length=log.n_items, per="item")
        super().set_state(state)
        self._fitted_as = self._describe_parameters()

    def _describe_parameters(self) -> str:
        return repr(self.get_params(deep=False) | {"device": None})

    def coordinates(self) -> list[Coordinate]:
        """Return the parameters that :meth:`tune` searches, in this order."""
        return [
            Coordinate(("regularisation",), REGULARISATIONS),
            Coordinate(("degree_exponent",), (0.0, 0.15, 0.3, 0.45, 0.6, 0.8)),
            Coordinate(("low_pass",), (0.0, 0.05, 0.1, 0.2, 0.4, 0.8)),
            Coordinate(("popularity_penalty",), (-0.1, -0.05, 0.0, 0.05, 0.1, 0.15, 0.2, 0.3)),
            Coordinate(("regularisation_exponent",), (-0.25, 0.0, 0.25, 0.5)),
        ]

    def fit_trial(self, train: Interactions, shared: dict[str, Any]) -> None:
        """Fit with the moments of the last trial if they are the same; weights stay on the device."""
        params = self.get_params(deep=False).items()
        fixed = repr({name: value for name, value in params if name not in NO_MOMENTS})
        if shared.get("fixed") != fixed:
            shared.pop("moments", None)  # frees the memory first
            shared["moments"] = self.moments(train, rules=shared.setdefault("rules", {})), self.n_neighbours_
            shared["fixed"] = fixed
        moments, self.n_neighbours_ = shared["moments"]
        self.interactions_ = train
        self.weights_ = self.finish_weights(self.solve(moments), moments)

    def score_rows(self, rows: sparse.csr_array) -> NDArray[Any]:
        scores: Any = algebra.multiply_rows(rows, self.weights_)
        if isinstance(self.weights_, sparse.csr_array) and self.low_pass_ is not None:
            counts = algebra.count_users(self.interactions_.matrix)
            scores += algebra.low_pass_scores(rows, counts, self.low_pass_)
        return scores  # type: ignore[no-any-return]

    def similarity_rows(self, rows: sparse.csr_array) -> NDArray[Any]:
        return self.score_rows(rows)

    @cached_property
    def _donor_system(self) -> DonorSystem:
        train = self.interactions_
        penalties, weights = self.item_penalties(relative_popularity(train)), self.user_weights(train)
        P, Q = self._donors or self.donor_probabilities(train)
        bonus = getattr(self, "item_bonus_", 0.0)
        return DonorSystem(train.matrix, penalties, weights, P, Q, *self.shares, bonus, self.products_)

    def donor_parts(self, history: IntArray, column: int) -> tuple[NDArray[Any], NDArray[Any]]:
        self.check_params()
        if self._fitted_as != self._describe_parameters():
            name, got = f"parameters of {type(self).__name__}", self._describe_parameters()
            raise InputError(name, f"must be as in fit, {self._fitted_as}; got {got}. Call fit again.")
        factors = self.score_factors(relative_popularity(self.interactions_))
        factor = 1.0 if factors is None else factors[column]
        column_weights = None
        if isinstance(self.weights_, sparse.csr_array):
            column_weights = self.weights_[:, [column]].toarray()[:, 0] / factor
        users, items = self._donor_system.parts(history, column, column_weights)
        users, items = factor * users, factor * items
        if (F := self.low_pass_) is not None and (s := self.singular_values_) is not None:
            # V s V' = V (1 / s) V' R'R, a sum over users; R is A divided by the roots of the degrees.
            A, degrees = self.interactions_.matrix, np.maximum(self.interactions_.rows.degrees, 1)
            counts = np.maximum(algebra.count_users(A), 1)
            spread = F.T @ ((F[:, history] @ (1 / counts[history])) / s**2)
            users = users + A[:, [column]].toarray()[:, 0] / degrees * (A @ (spread / counts))
        return users, items


@dataclass(eq=False)
class EASE(LinearRecommender):
    """Predict each item from the others by ridge regression, in closed form (Steck, 2019).

    Parameters
    ----------
    regularisation
        Lambda, above 0. Hundreds suit dense data, tens sparse data.
    precision
        Precision of the solver: ``"double"``, ``"single"``, or ``"auto"``, which is single where M + lambda I
        has a condition number of at most 10^5.
    degree_exponent
        A user with d interactions has a weight proportional to d^-degree_exponent in the objective. The scale
        of lambda does not depend on it.
    device
        ``"cpu"``, or a device of torch such as ``"cuda"``; the sparse form is fitted on the CPU.
    n_neighbours
        Number of items that predict each item in the sparse form, such as 100. ``None`` is the exact
        solution; ``"auto"`` takes the sparse form where dense matrices would not fit into memory.
    regularisation_exponent
        The lambda of an item is multiplied by p^regularisation_exponent, where p is the number of its users
        divided by the mean number.
    popularity_penalty
        The scores of an item are divided by p^popularity_penalty; 0.1 moves less popular items up.
    low_pass, low_pass_rank
        Weight and rank of a low-pass filter of the interactions, whose scores, scaled to the standard
        deviation of the others, are added. The rank ``"auto"`` is 1.25 times the root of the number of items,
        at most ``n_neighbours`` in the sparse form.

    Attributes
    ----------
    weights_
        The matrix B, in single precision, CSR in the sparse form; entry (i, j) is what item i in a history
        adds to the score of item j. The exact form contains the low-pass filter.
    low_pass_, singular_values_
        A matrix F and the singular values of the low-pass filter D^-1 F'F, where D holds the numbers of users
        of the items; ``None`` without a filter.
    n_neighbours_, products_
        The number of neighbours of the sparse form, ``None`` for the exact solution, for which the second
        attribute holds what explanations need.

    Examples
    --------
    >>> from nodecopy import Interactions
    >>> from nodecopy.recommend import EASE
    >>> log = Interactions([[1, 1, 0], [1, 1, 1], [0, 1, 1]])
    >>> (EASE(regularisation=1.0).fit(log).weights_.round(3) + 0.0).tolist()
    [[0.0, 0.5, 0.0], [0.5, 0.0, 0.5], [0.0, 0.5, 0.0]]
    """

    regularisation: float = 300.0
    precision: str = "double"
    degree_exponent: float = 0.0
    device: str = "cpu"
    n_neighbours: int | str | None = "auto"
    regularisation_exponent: float = 0.0
    popularity_penalty: float = 0.0
    low_pass: float = 0.0
    low_pass_rank: int | str = "auto"

    def dense_moments(self, A: sparse.csr_array, P: Any, Q: Any, weights: Any) -> Any:
        dtype = np.float32 if self.precision == "single" else np.float64
        gram = algebra.gram_matrix(A, weights, dtype=dtype, device=self.device)
        return gram, gram, algebra.to_numpy(1.0 * gram.diagonal())

    def solve_dense(self, M: Any, C: Any, penalties: Any, overwrite: bool) -> Any:
        """Return the solution B, which needs the diagonal of the inverse only."""
        weights = algebra.invert_regularised(M, penalties, overwrite=overwrite)
        weights /= -1 * weights.diagonal()
        algebra.set_diagonal(weights, 0.0)
        return weights


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
        return algebra.copied_moments(A, P, Q, *self.shares, weights, dtype=np.float32, device=self.device)

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


class DonorSystem:
    """The equations of the weights, from which the parts of donors in a score follow.

    The arguments are as in :func:`.copied_moments`; ``item_bonus`` is the weight of A Q' in the scores, and
    ``products``, if they are known, are what the formula of M off the diagonal gives on it.
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
        products: Values | None = None,
    ) -> None:
        self.A = sparse.csr_array(matrix.astype(np.float64))
        n_users, n_items = self.A.shape
        self.q0, self.q1, self.q2 = 1 - user_share - item_share, user_share, item_share
        self.penalties, self.bonus = np.broadcast_to(regularisation, (n_items,)), item_bonus
        self.w = np.ones(n_users) if weights is None else weights
        self.P = sparse.csr_array((n_users, n_users)) if P is None else P.astype(np.float64)
        self.Q = sparse.csr_array((n_items, n_items)) if Q is None else Q.astype(np.float64)
        self.A_t, self.P_t, self.Q_t = self.A.T, self.P.T, self.Q.T
        self.W = self.P_t @ self.w  # the expected weight of the users whose donor is each user
        counts = self.A_t @ self.w
        self.moments = self.q0 * counts + self.q1 * (self.A_t @ self.W) + self.q2 * (self.Q @ counts)
        self.products = products

    def parts(self, history: IntArray, item: int, weights: Values | None = None) -> tuple[Values, Values]:
        """Return what each donor user and donor item adds to a score; the sparse form has ``weights``."""
        n_items = self.A.shape[1]
        bonus = self.bonus * (self.Q_t @ np.eye(1, n_items, item)[0])
        a = np.zeros(n_items)
        a[history] = 1
        is_input = np.ones(n_items, bool)
        if weights is not None:  # an item whose weight is the bonus alone is no neighbour
            is_input = np.abs(weights - bonus) > MIN_WEIGHT_SHARE * np.abs(weights)
        columns = np.flatnonzero(is_input & (np.arange(n_items) != item))
        t = np.zeros(n_items)
        t[columns] = self._solve(a[columns], columns)
        y = self.w * self.A[:, [item]].toarray()[:, 0]
        users = (self.A @ t) * (self.q0 * y + self.q1 * (self.P_t @ y))
        items = self.q2 * (self.Q_t @ t) * (self.A_t @ y) + bonus * a
        return np.asarray(users), np.asarray(items)

    def _solve(self, right: Values, columns: IntArray) -> Values:
        """Return (M_SS + lambda I)^-1 b by conjugate gradients."""
        scale, t = (self.moments + self.penalties)[columns], np.zeros((self.A.shape[1], 1))
        if self.products is None:  # the sparse form has few columns
            products = self._multiply(sparse.eye_array(len(t), format="csc")[:, columns].toarray())[
                columns
            ].diagonal()
        else:
            products = self.products[columns]

        def multiply(v: Values) -> Values:
            t[columns, 0] = v
            return np.asarray(self._multiply(t)[columns, 0] + (scale - products) * v)

        operator = LinearOperator((len(columns),) * 2, matvec=multiply, dtype=np.float64)
        jacobi = LinearOperator(operator.shape, matvec=lambda v: v / scale, dtype=np.float64)
        solution, n_failed = cg(operator, right, rtol=TOLERANCE, maxiter=MAX_STEPS, M=jacobi)
        if n_failed:
            fault = f"conjugate gradients did not converge in {n_failed:,} steps"
            warn_about_data(f"the parts of donors are approximate: {fault}.", "regularisation")
        return np.asarray(solution)

    def _multiply(self, t: Values) -> Values:
        """Return the product of the formula of M off the diagonal with some columns."""
        w, own = self.w[:, None], self.A @ t
        donor = self.P @ own
        x = w * (self.q0 * own + self.q1 * donor + self.q2 * (self.A @ (self.Q_t @ t)))
        same_donor = self.q1 * self.q1 * (self.W[:, None] * own - self.P_t @ (w * donor))
        users = self.q0 * x + self.q1 * (self.P_t @ x) + same_donor
        return np.asarray(self.A_t @ users + self.q2 * (self.Q @ (self.A_t @ x)))
