"""Linear autoencoders with a zero diagonal: scores are A B, and B has a closed form.

EASE (Steck, 2019) predicts each item from the others by ridge regression. Its input is the observed matrix,
so that M = C = A'A and B reduces to I - K diag(1 / K_ii), in the notation of :mod:`.constrained_ridge`. The
items x items matrix B is stored (10^4 items take 400 MB), or for many items its sparse form.
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self, cast

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, cg

from nodecopy._core.arrays import IntArray
from nodecopy._core.checks import check_choice, check_integer, check_real, check_sequence
from nodecopy._core.messages import log_decision, warn_about_data
from nodecopy._core.random import Rng
from nodecopy.errors import InputError
from nodecopy.interactions import Interactions
from nodecopy.io import InteractionsLike
from nodecopy.recommend import tuning
from nodecopy.recommend.algebra import (
    Algebra,
    NumpyAlgebra,
    algebra_on,
    copied_moments,
    solve_constrained_path,
    usable_memory,
)
from nodecopy.recommend.base import Recommender, check_nonempty
from nodecopy.recommend.baselines import relative_popularity
from nodecopy.recommend.torch_algebra import import_torch_for
from nodecopy.recommend.tuning import REGULARISATIONS, Coordinate

# Gram matrices that follow new interactions: only users of whom something changed are multiplied again.


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
            for rule in (P, old.P):
                changed |= rule @ is_new.astype(np.float64) > 0
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
            raise InputError(f"ids of {name}", f"must be {kind}, as in training; got {other.tolist()[0]!r}.")
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
    rule = None if P is None else _enlarge(P, (n_users, n_users))
    return _Product(_enlarge(product.matrix, shape), weights, rule, result)


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


# The equations behind the weights of EASE and CopyEASE, solved for one score.


Values = NDArray[np.float64]
MAX_INVERTED_ITEMS = 2000
COLUMNS_PER_BLOCK = 256
ENTRIES_PER_BLOCK = 2**24
"""Entries of a dense users x columns matrix, which the uniform donor rule needs."""
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
        Donor probabilities of users and of items; ``None`` for the uniform donor rule.
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
        self.P = _rule_(P, n_users, bool(user_share))
        self.Q = _rule_(Q, n_items, bool(item_share or item_bonus))
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
        P, Q = (None if isinstance(rule, UniformDonors) else rule for rule in (self.P, self.Q))
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
                "regularisation",
            )
        return np.asarray(solution)

    def _diagonal(self, columns: IntArray) -> tuple[Values, Values]:
        """Return the diagonal of M at some items, and that of the formula that holds off the diagonal."""
        moment, product = self._diagonals["moment"], self._diagonals["product"]
        unknown = columns[np.isnan(moment[columns])]
        counts = self.A.T @ self.w
        is_dense = isinstance(self.P, UniformDonors) or isinstance(self.Q, UniformDonors)
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


class UniformDonors:
    """The donor probabilities of the uniform donor rule over the other n - 1, which are no matrix in memory.

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
    def T(self) -> UniformDonors:  # noqa: N802
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


def _rule_(probabilities: sparse.csr_array | None, n: int, is_used: bool) -> Any:
    """Return donor probabilities as a matrix or operator, without entries where nothing is copied."""
    if not is_used:
        return sparse.csr_array((n, n))
    if probabilities is not None:
        return sparse.csr_array(probabilities.astype(np.float64))
    return UniformDonors(n) if n > 1 else sparse.csr_array(np.ones((1, 1)))


def _square(matrix: Any) -> Any:
    return np.square(matrix) if isinstance(matrix, np.ndarray) else matrix.power(2)


MIN_NEIGHBOURS, DEFAULT_NEIGHBOURS = 10, 100
BYTES_PER_NEIGHBOUR = 400
"""Bytes that the sparse form takes for each item and neighbour, donor rules included (measured)."""
MIN_SPECTRAL_PATH = 8
"""Number of regularisations from which one eigendecomposition is faster than as many factorisations."""


class LinearRecommender(Recommender):
    """A model whose scores are A B for an items x items matrix B, so that any list of items can be scored."""

    regularisation: float
    degree_exponent: float
    regularisation_exponent: float
    popularity_penalty: float
    precision: str
    device: str
    n_neighbours: int | str | None
    weights_: Any
    n_neighbours_: int | None
    tuning_: list[dict[str, Any]]

    is_linear: ClassVar[bool] = True
    rules: dict[Any, Any] | None = None
    """Donor rules that :meth:`tune` has fitted, shared by the models that it compares."""
    _running: RunningAlgebra | None = None
    _popularity: NDArray[np.float64]
    """The popularity of items in the interactions of the last moments."""
    _donor_system_cache: tuple[Any, DonorSystem] | None = None
    _fitted_as: str | None = None
    """The parameters of the fit, unless the model was loaded."""
    PRECISIONS: ClassVar[tuple[str, ...]] = ("double", "single", "auto")

    @abstractmethod
    def moments(self, interactions: Interactions, algebra: Algebra | None = None) -> tuple[Any, Any]:
        """Return M = E[X'DX] and C = E[X'DA], by default on the device of the model.

        In the sparse form, return CSR matrices in their place: S, where M = S + S', and C'.
        """

    def fit_path(self, interactions: Interactions, regularisations: Sequence[float]) -> Iterator[Self]:
        """Yield a fitted recommender for each of many regularisations, from one set of moments.

        From ``MIN_SPECTRAL_PATH`` values on, one eigendecomposition of M serves all of them on the CPU; fewer
        are factorised one by one, which is then faster.
        """
        train = check_nonempty(interactions, "interactions").binary()
        regularisations = check_sequence(regularisations, "regularisations", "a list of numbers")
        for value in (self.regularisation, *regularisations):
            copy.copy(self).set_params(regularisation=value).check_params()
        M, C = self.moments(train)
        models = [copy.copy(self).set_params(regularisation=value) for value in regularisations]
        is_spectral = len(regularisations) >= MIN_SPECTRAL_PATH and self.device == "cpu"
        if is_spectral and not self.regularisation_exponent and not isinstance(M, sparse.csr_array):
            solutions = solve_constrained_path(*self._with_precision(M, C), regularisations)
        else:
            solutions = (model.solve(M, C) for model in models)
        for model, weights in zip(models, solutions, strict=True):
            model._take_solution(weights)
            model.interactions_ = model.seen_ = train
            yield model

    def check_params(self) -> None:
        name = type(self).__name__
        if check_real(self.regularisation, f"regularisation of {name}", low=0.0) == 0.0:
            raise InputError(f"regularisation of {name}", f"must be above 0; got {self.regularisation!r}.")
        check_real(self.degree_exponent, f"degree_exponent of {name}", low=0.0)
        check_real(self.regularisation_exponent, f"regularisation_exponent of {name}")
        check_real(self.popularity_penalty, f"popularity_penalty of {name}")
        check_choice(self.precision, f"precision of {name}", self.PRECISIONS)
        if self.n_neighbours not in (None, "auto"):
            check_integer(self.n_neighbours, f"n_neighbours of {name}", low=1)
        if self.device != "cpu":
            import_torch_for(self.device)

    def user_weights(self, interactions: Interactions) -> NDArray[np.float64] | None:
        """Return the weight of each user in the objective; ``None`` where all are 1."""
        if not self.degree_exponent:
            return None
        degrees = interactions.rows.degrees.astype(np.float64)
        weights = np.maximum(degrees, 1.0) ** -self.degree_exponent
        return np.asarray(weights * (degrees.sum() / (degrees @ weights)))

    def item_penalties(self, popularity: NDArray[np.float64]) -> Any:
        """Return lambda, or the lambda of each item where they differ."""
        if not self.regularisation_exponent:
            return self.regularisation
        return self.regularisation * popularity**self.regularisation_exponent

    def score_factors(self, popularity: NDArray[np.float64]) -> NDArray[np.float32] | None:
        """Return the factor of the scores of each item; ``None`` where all are 1."""
        if not self.popularity_penalty:
            return None
        return (popularity**-self.popularity_penalty).astype(np.float32)

    def fit_interactions(
        self, interactions: Interactions, validation: Interactions | None, seed: SeedSequence
    ) -> None:
        self._running = None
        weights = self.solve(*self.moments(interactions), overwrite=True)
        self._take_solution(weights)

    def partial_fit(self, interactions: InteractionsLike) -> Self:
        """Add interactions to those of training; the weights are those of a fit to all of them.

        Users and items may be new. Donor rules are fitted again, since new interactions change similarities.
        In the sums over users behind the moments, only users whose interactions, weight or donors changed,
        or whose donors' interactions changed, are computed again; the equations are solved as in ``fit``.
        The first call computes the sums of all users and keeps them: up to three items x items matrices in
        double precision. In the sparse form, everything is fitted again.

        Parameters
        ----------
        interactions
            The new interactions; those that are known already change nothing.

        Examples
        --------
        >>> from nodecopy import Interactions
        >>> from nodecopy.recommend import EASE
        >>> model = EASE(1.0).fit(Interactions.from_table(["ann", "ann"], ["tea", "jam"]))
        >>> new = Interactions.from_table(["bob", "bob"], ["tea", "bread"])
        >>> model.partial_fit(new).recommend(["ann"], 1)[0].tolist()
        [['bread']]
        """
        if not hasattr(self, "interactions_"):
            return self.fit(interactions)
        new = check_nonempty(interactions, "interactions").binary()
        self.check_params()
        train, is_all_seen = append_interactions(self.interactions_, new), self.seen_ is self.interactions_
        seen = train if is_all_seen else append_interactions(self.seen_, new)
        if self.sparse_neighbours(train.n_items):
            self.fit_interactions(train, None, SeedSequence(0))
        else:
            if self._running is None:
                self._running = RunningAlgebra()
                self.moments(self.interactions_, self._running)
            algebra = algebra_on(self.device, np.float64)
            M, C = (algebra.array(part) for part in self.moments(train, self._running))
            self._take_solution(self.solve(M, C, overwrite=True))
        self.interactions_, self.seen_ = train, seen
        return self

    def sparse_neighbours(self, n_items: int) -> int | None:
        """Return the number of neighbours of an item in the sparse form; ``None`` for the exact solution."""
        if self.n_neighbours != "auto":
            return cast("int | None", self.n_neighbours)
        max_items = algebra_on(self.device).max_items()
        if n_items <= max_items:
            return None
        n_neighbours = int(usable_memory() / (BYTES_PER_NEIGHBOUR * n_items))
        n_neighbours = min(max(n_neighbours, MIN_NEIGHBOURS), DEFAULT_NEIGHBOURS)
        log_decision(
            f"{type(self).__name__} predicts each item from {n_neighbours} others, because the exact "
            f"weights of {n_items:,} items do not fit into memory (at most {max_items:,} on "
            f"{self.device!r}).",
            "n_neighbours",
        )
        return n_neighbours

    def solve(self, M: Any, C: Any, overwrite: bool = False) -> Any:
        """Return the solution B from what :meth:`moments` returns, which ``overwrite`` allows to destroy."""
        if isinstance(M, sparse.csr_array):  # the sparse form, S and C'
            return self._solve_sparse(M, C)
        M, C = self._with_precision(M, C)
        return algebra_on(self.device).solve(M, C, self.item_penalties(self._popularity), overwrite)

    def _solve_sparse(self, S: sparse.csr_array, C_t: sparse.csr_array) -> sparse.csr_array:
        from nodecopy.recommend.sparse_ridge import solve_sparse  # imports numba, which is slow

        return solve_sparse(S, C_t, self.item_penalties(self._popularity), cast(int, self.n_neighbours_))

    def _take_solution(self, solution: Any) -> None:
        """Keep the weights, and the parameters that they belong to."""
        self.weights_ = self._to_host(self.finish_weights(solution))
        self._fitted_as = self._describe_solution()

    def _describe_solution(self) -> str:
        """Return the parameters that the weights depend on: all but the device."""
        return repr(self.get_params(deep=False) | {"device": None})

    def _to_host(self, weights: Any) -> Any:
        return weights if isinstance(weights, sparse.csr_array) else algebra_on(self.device).to_numpy(weights)

    def _with_precision(self, M: Any, C: Any) -> tuple[Any, Any]:
        algebra = algebra_on(self.device)
        precision = algebra.choose_precision(M, self.item_penalties(self._popularity), self.precision)
        return algebra.astype(M, precision), algebra.astype(C, precision)

    def finish_weights(self, weights: Any) -> Any:
        """Return the weights in the form in which they are stored, on the device of the model."""
        factors, is_sparse = self.score_factors(self._popularity), isinstance(weights, sparse.csr_array)
        weights = weights if is_sparse else algebra_on(self.device).stored(weights)
        if factors is not None and is_sparse:
            weights.data *= factors[weights.indices]
        elif factors is not None:
            weights *= algebra_on(self.device).array(factors)
        return weights

    def coordinates(self) -> list[Coordinate]:
        """Return the parameters that :meth:`tune` searches, the most important first."""
        return [
            Coordinate(("regularisation",), REGULARISATIONS),
            Coordinate(("degree_exponent",), (0.0, 0.25, 0.5, 0.75, 1.0)),
            Coordinate(("popularity_penalty",), (-0.1, -0.05, 0.0, 0.05, 0.1, 0.15, 0.2, 0.3)),
            Coordinate(("regularisation_exponent",), (-0.25, 0.0, 0.25, 0.5)),
        ]

    def tune(
        self,
        interactions: InteractionsLike,
        validation: InteractionsLike | None = None,
        *,
        budget: int = 40,
        k: int | None = None,
        rng: Rng = None,
    ) -> Self:
        """Choose the parameters by held-out interactions, set them and return the model, which is not fitted.

        The search changes one parameter at a time and follows it as long as recall@k + NDCG@k improves by
        more than half of the standard error of the gain over users. It starts from the parameters of the
        model. What it chose is logged, and ``tuning_`` holds all scores.

        Parameters
        ----------
        interactions
            The training interactions. Models are fitted to those that are not in ``validation``.
        validation
            Interactions of the same users and items, all or none of which are in ``interactions``. By default
            a tenth of ``interactions``, drawn by ``rng``.
        budget
            Largest number of settings to fit, 40 by default.
        k
            Length of the lists, at most the number of items; 20 by default, or all items if they are fewer.
        rng
            Seed or generator of the default validation part.

        Examples
        --------
        >>> from nodecopy import datasets
        >>> from nodecopy.recommend import EASE
        >>> library = datasets.load("library")
        >>> model = EASE().tune(library, budget=10, rng=0).fit(library)
        >>> model.regularisation, len(model.tuning_)
        (300.0, 10)
        """
        tuning.tune(self, interactions, validation, budget, k, rng)
        return self

    def score_rows(self, rows: sparse.csr_array) -> NDArray[Any]:
        scores: Any = rows @ self.weights_
        return np.asarray(scores.toarray() if isinstance(scores, sparse.csr_array) else scores)

    def similarity_rows(self, rows: sparse.csr_array) -> NDArray[Any]:
        """Return what each item adds to the scores of all items."""
        return self.score_rows(rows)

    def donor_system(self) -> DonorSystem:
        """Return the equations by which :meth:`explain` finds the donors behind a score."""
        train = self.interactions_
        penalties = self.item_penalties(relative_popularity(train))
        return DonorSystem(train.matrix, penalties, self.user_weights(train))

    def donor_parts(self, history: IntArray, column: int) -> tuple[NDArray[Any], NDArray[Any]]:
        key, weights = (self.interactions_, self._describe_solution()), self.weights_
        if self._donor_system_cache is None or self._donor_system_cache[0] != key:
            self.check_params()  # of a loaded model
            if self._fitted_as not in (None, key[1]):
                raise InputError(
                    f"parameters of {type(self).__name__}",
                    f"must be those of fit to explain its scores; "
                    f"they were {self._fitted_as} and are {key[1]}. Call fit again, or set them back.",
                )
            self._donor_system_cache = key, self.donor_system()
        is_sparse = isinstance(weights, sparse.csr_array)
        factors = self.score_factors(relative_popularity(self.interactions_))
        factor = 1.0 if factors is None else factors[column]
        column_weights = weights[:, [column]].toarray()[:, 0] / factor if is_sparse else None
        users, items = self._donor_system_cache[1].parts(history, column, column_weights)
        return factor * users, factor * items


@dataclass(eq=False)
class EASE(LinearRecommender):
    """Predict each item from the others by ridge regression, in closed form (Steck, 2019).

    Parameters
    ----------
    regularisation
        Lambda, above 0; 300 by default. Hundreds suit dense data, tens sparse data.
    precision
        Precision of the solver: ``"double"`` (default), ``"single"``, or ``"auto"``, which is single where
        the condition number of M + lambda I is at most 10^5.
    degree_exponent
        A user with d interactions has a weight proportional to d^-degree_exponent in the objective; 0 by
        default, so that all have the same. The scale of lambda does not depend on it.
    device
        ``"cpu"`` (default), or a device of torch such as ``"cuda"``; the sparse form is fitted on the CPU.
    n_neighbours
        Number of items from which each item is predicted in the sparse form, such as 100. ``None`` is the
        exact solution with dense matrices; ``"auto"`` (default) the sparse form where they would not fit
        into memory, with 100, or with as many as the memory allows.
    regularisation_exponent
        The lambda of an item is lambda times p^regularisation_exponent, where p is the number of its users
        divided by the mean number; 0 by default, so that all items have the same.
    popularity_penalty
        The scores of an item are divided by p^popularity_penalty; 0 by default. Values such as 0.1 move
        less popular items up.

    Attributes
    ----------
    weights_
        The matrix B, in single precision; entry (i, j) is what item i in a history adds to the score of
        item j. It is a CSR matrix in the sparse form.
    n_neighbours_
        The number of neighbours of the sparse form, ``None`` for the exact solution. With ``"auto"`` it
        depends on the memory of the machine.

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

    def moments(self, interactions: Interactions, algebra: Algebra | None = None) -> tuple[Any, Any]:
        self._popularity = relative_popularity(interactions)
        self.n_neighbours_ = self.sparse_neighbours(interactions.n_items)
        if self.n_neighbours_:
            from nodecopy.recommend.sparse_ridge import sparse_moments  # imports numba, which is slow

            weights = self.user_weights(interactions)
            return sparse_moments(interactions.matrix, None, None, 0.0, 0.0, weights, self.n_neighbours_)
        dtype = np.float32 if self.precision == "single" else np.float64
        algebra = algebra or algebra_on(self.device, dtype)
        gram = algebra.gram(interactions.matrix, self.user_weights(interactions))
        return gram, gram

    def solve(self, M: Any, C: Any, overwrite: bool = False) -> Any:
        """Return the solution B, which needs the diagonal of the inverse only."""
        if isinstance(M, sparse.csr_array):  # the sparse form, S and C'
            return self._solve_sparse(M, C)
        algebra = algebra_on(self.device)
        penalties = self.item_penalties(self._popularity)
        precision = algebra.choose_precision(M, penalties, self.precision)
        M = algebra.astype(M if overwrite else 1 * M, precision)
        inverse = algebra.invert(M, penalties)
        # The inverse is symmetric: dividing its rows gives the columns in the order that scores need.
        weights = inverse.T
        weights /= -inverse.diagonal()
        algebra.set_diagonal(weights, 0.0)
        return weights
