"""Linear autoencoders with a zero diagonal: scores are A B, and B has a closed form.

EASE (Steck, 2019) predicts each item from the others by ridge regression. Its input is the observed matrix,
so that M = C = A'A and B reduces to I - K diag(1 / K_ii), in the notation of :mod:`.constrained_ridge`. The
items x items matrix B is stored, which bounds the number of items (10^4 take 400 MB).
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
from scipy import sparse

from nodecopy._core.validation import check_choice, check_real
from nodecopy.errors import InputError
from nodecopy.interactions import Interactions
from nodecopy.recommend.base import Recommender
from nodecopy.recommend.constrained_ridge import (
    Matrix,
    co_occurrences,
    invert_regularised,
    solve_constrained,
    solve_constrained_path,
)
from nodecopy.recommend.training_ids import check_nonempty

MIN_SPECTRAL_PATH = 8
"""Number of regularisations from which one eigendecomposition is faster than as many factorisations."""


class LinearRecommender(Recommender):
    """A model whose scores are A B for an items x items matrix B, so that any list of items can be scored."""

    regularisation: float
    precision: str
    weights_: NDArray[np.float32]

    is_linear: ClassVar[bool] = True
    DTYPES: ClassVar[dict[str, type]] = {"double": np.float64, "single": np.float32}

    @abstractmethod
    def moments(self, interactions: Interactions) -> tuple[Matrix, Matrix]:
        """Return M = E[X'X] and C = E[X'A], in the precision of the model."""

    def fit_path(self, interactions: Interactions, regularisations: Sequence[float]) -> Iterator[Self]:
        """Yield a fitted recommender for each of many regularisations, from one set of moments.

        From ``MIN_SPECTRAL_PATH`` values on, one eigendecomposition of M serves all of them; fewer are
        factorised one by one, which is then faster.
        """
        train = check_nonempty(interactions, "interactions").binary()
        models = [copy.copy(self).set_params(regularisation=value) for value in regularisations]
        for model in (self, *models):
            model.check_params()
        M, C = self.moments(train)
        if len(regularisations) >= MIN_SPECTRAL_PATH:
            solutions = solve_constrained_path(M, C, regularisations)
        else:
            solutions = (solve_constrained(M, C, value) for value in regularisations)
        for model, weights in zip(models, solutions, strict=True):
            model.weights_ = self.finish_weights(weights, train)
            model.interactions_ = model.seen_ = train
            yield model

    def check_params(self) -> None:
        name = type(self).__name__
        if check_real(self.regularisation, f"regularisation of {name}", low=0.0) == 0.0:
            raise InputError(f"regularisation of {name} must be above 0; got {self.regularisation!r}.")
        check_choice(self.precision, f"precision of {name}", self.DTYPES)

    def fit_interactions(
        self, interactions: Interactions, validation: Interactions | None, seed: SeedSequence
    ) -> None:
        weights = solve_constrained(*self.moments(interactions), self.regularisation)
        self.weights_ = self.finish_weights(weights, interactions)

    def finish_weights(self, weights: Matrix, interactions: Interactions) -> NDArray[np.float32]:
        """Return the solution B in the form in which it is stored."""
        return weights.astype(np.float32, order="C")

    def score_rows(self, rows: sparse.csr_array) -> NDArray[Any]:
        return np.asarray(rows @ self.weights_)

    def similarity_rows(self, rows: sparse.csr_array) -> NDArray[Any]:
        """Return what each item adds to the scores of all items."""
        return self.score_rows(rows)


@dataclass(eq=False)
class EASE(LinearRecommender):
    """Predict each item from the others by ridge regression, in closed form (Steck, 2019).

    Parameters
    ----------
    regularisation
        Lambda, above 0; 300 by default. Hundreds suit dense data, tens sparse data.
    precision
        ``"double"`` (default) or ``"single"``, the precision of the linear algebra.

    Attributes
    ----------
    weights_
        The matrix B, in single precision; entry (i, j) is what item i in a history adds to the score of
        item j.

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

    def moments(self, interactions: Interactions) -> tuple[Matrix, Matrix]:
        gram = co_occurrences(interactions.matrix, self.DTYPES[self.precision])
        return gram, gram

    def fit_interactions(
        self, interactions: Interactions, validation: Interactions | None, seed: SeedSequence
    ) -> None:
        """Solve for the weights, which need the diagonal of the inverse only."""
        gram, _ = self.moments(interactions)
        inverse = invert_regularised(gram, self.regularisation)
        # The inverse is symmetric: dividing its rows gives the columns in the order that scores need.
        weights = inverse.T / -np.diag(inverse)
        np.fill_diagonal(weights, 0.0)
        self.weights_ = self.finish_weights(weights, interactions)
