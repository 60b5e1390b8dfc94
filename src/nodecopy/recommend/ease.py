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
from typing import Any, ClassVar, Self, cast

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray
from scipy import sparse

from nodecopy._core.csr import IntArray
from nodecopy._core.hints import Hint
from nodecopy._core.notices import log_decision
from nodecopy._core.random import Rng
from nodecopy._core.validation import check_choice, check_integer, check_real, check_sequence
from nodecopy.conversion import InteractionsLike
from nodecopy.errors import InputError
from nodecopy.interactions import Interactions
from nodecopy.recommend import tuning
from nodecopy.recommend.base import Recommender
from nodecopy.recommend.constrained_ridge import solve_constrained_path
from nodecopy.recommend.dense_algebra import Algebra, algebra_on, usable_memory
from nodecopy.recommend.donor_system import DonorSystem
from nodecopy.recommend.incremental import RunningAlgebra, append_interactions
from nodecopy.recommend.popularity import relative_popularity
from nodecopy.recommend.torch_algebra import import_torch_for
from nodecopy.recommend.training_ids import check_nonempty
from nodecopy.recommend.tuning import REGULARISATIONS, Coordinate

MIN_NEIGHBOURS, DEFAULT_NEIGHBOURS = 10, 100
BYTES_PER_NEIGHBOUR = 400
"""Bytes that the sparse form takes for each item and neighbour, donor laws included (measured)."""
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
    laws: dict[Any, Any] | None = None
    """Donor laws that :meth:`tune` has fitted, shared by the models that it compares."""
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
            raise InputError(f"regularisation of {name} must be above 0; got {self.regularisation!r}.")
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

        Users and items may be new. Donor laws are fitted again, since new interactions change similarities.
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
            Hint(n_neighbours=None),
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
                    f"parameters of {type(self).__name__} must be those of fit to explain its scores; "
                    f"they were {self._fitted_as} and are {key[1]}. Call fit again, or set them back."
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
