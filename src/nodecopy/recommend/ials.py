"""Weighted matrix factorisation by alternating least squares (Hu, Koren and Volinsky, 2008)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray
from scipy import sparse

from nodecopy._core.csr import IntArray
from nodecopy._core.optional_imports import import_optional
from nodecopy._core.validation import check_integer, check_real
from nodecopy.interactions import Interactions
from nodecopy.recommend.base import Recommender


@dataclass(eq=False)
class IALS(Recommender):
    """Factors of users and items such that their products are near one where there is an interaction.

    Fitted by the package ``implicit``, which the extra of that name brings.

    Parameters
    ----------
    factors
        Length of the factors.
    regularisation
        Penalty on their squares.
    confidence
        How much an interaction counts against the 1 of a pair without one.
    iterations
        Rounds over users and items.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.recommend import IALS
    >>> library = datasets.load("library")
    >>> items, scores = IALS(8).fit(library, rng=0).recommend(["reader 001"], 3)
    >>> items.shape
    (1, 3)
    """

    factors: int = 32
    regularisation: float = 10.0
    confidence: float = 10.0
    iterations: int = 15

    def _check(self) -> None:
        check_integer(self.factors, "factors of IALS", low=1)
        check_integer(self.iterations, "iterations of IALS", low=1)
        check_real(self.regularisation, "regularisation of IALS", low=0.0)
        check_real(self.confidence, "confidence of IALS", low=1.0)

    def _fit(self, interactions: Interactions, validation: Interactions | None, seed: SeedSequence) -> None:
        als = import_optional("implicit.cpu.als", "IALS")
        one_thread = import_optional("threadpoolctl", "IALS").threadpool_limits(1, "blas")
        with one_thread:  # implicit warns of several, which slow it down
            model = als.AlternatingLeastSquares(
                factors=self.factors,
                regularization=self.regularisation,
                alpha=self.confidence,
                iterations=self.iterations,
                dtype=np.float64,
                num_threads=1,  # so that a seed gives one result on every machine
                random_state=int(seed.generate_state(1)[0]),
            )
            model.fit(sparse.csr_matrix(interactions.matrix, dtype=np.float64), show_progress=False)
        self._users = np.asarray(model.user_factors, np.float32)
        self._items = np.asarray(model.item_factors, np.float32)

    def _score(self, users: IntArray) -> NDArray[Any]:
        return np.asarray(self._users[users] @ self._items.T)

    def _score_rows(self, rows: sparse.csr_array) -> NDArray[Any]:
        """Each user's factors solve a ridge regression given those of the items."""
        Y = self._items.astype(np.float64)
        everything = Y.T @ Y + self.regularisation * np.eye(Y.shape[1])
        factors = np.zeros((rows.shape[0], Y.shape[1]))
        for number in range(rows.shape[0]):
            own = Y[rows.indices[rows.indptr[number] : rows.indptr[number + 1]]]
            left = everything + (self.confidence - 1) * own.T @ own
            factors[number] = np.linalg.solve(left, self.confidence * own.sum(axis=0))
        return np.asarray(factors @ Y.T)

    def _state(self) -> dict[str, Any]:
        return {"users": self._users, "items": self._items}

    def _restore(self, state: dict[str, Any]) -> None:
        self._users, self._items = state["users"], state["items"]
