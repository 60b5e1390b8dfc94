"""Weighted matrix factorisation by alternating least squares (Hu, Koren and Volinsky, 2008)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray
from scipy import sparse

from nodecopy._core.optional_imports import import_optional
from nodecopy._core.validation import check_integer, check_real
from nodecopy.interactions import Interactions
from nodecopy.recommend.embeddings import EmbeddingRecommender


@dataclass(eq=False)
class IALS(EmbeddingRecommender):
    """Factorise the interactions: inner products are near 1 where there is an interaction, near 0 elsewhere.

    The factors are fitted by the package ``implicit``, which the extra of that name installs.

    Parameters
    ----------
    n_factors
        Length of the embeddings, 32 by default.
    regularisation
        Weight of the squared embeddings in the loss, 10 by default.
    confidence
        Weight of an interaction in the loss, where a pair without an interaction has weight 1; 10 by default.
    n_iterations
        Number of alternations between users and items, 15 by default.

    Attributes
    ----------
    user_embeddings_, item_embeddings_
        Factors of users and items.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.recommend import IALS
    >>> library = datasets.load("library")
    >>> items, scores = IALS(8).fit(library, rng=0).recommend(["reader 001"], 3)
    >>> items.shape
    (1, 3)
    """

    n_factors: int = 32
    regularisation: float = 10.0
    confidence: float = 10.0
    n_iterations: int = 15

    def check_params(self) -> None:
        check_integer(self.n_factors, "n_factors of IALS", low=1)
        check_integer(self.n_iterations, "n_iterations of IALS", low=1)
        check_real(self.regularisation, "regularisation of IALS", low=0.0)
        check_real(self.confidence, "confidence of IALS", low=1.0)

    def fit_interactions(
        self, interactions: Interactions, validation: Interactions | None, seed: SeedSequence
    ) -> None:
        """Factorise the interactions with ``implicit``, on one thread, so that a seed gives one result."""
        als = import_optional("implicit.cpu.als", "IALS")
        one_thread = import_optional("threadpoolctl", "IALS").threadpool_limits(1, "blas")
        with one_thread:  # implicit warns of several threads in BLAS, which slow it down
            model = als.AlternatingLeastSquares(
                factors=self.n_factors,
                regularization=self.regularisation,
                alpha=self.confidence,
                iterations=self.n_iterations,
                dtype=np.float64,
                num_threads=1,
                random_state=int(seed.generate_state(1)[0]),
            )
            model.fit(sparse.csr_matrix(interactions.matrix, dtype=np.float64), show_progress=False)
        self.user_embeddings_ = np.asarray(model.user_factors, np.float32)
        self.item_embeddings_ = np.asarray(model.item_factors, np.float32)

    def score_rows(self, rows: sparse.csr_array) -> NDArray[Any]:
        """Return the scores of new users, whose factors solve a ridge regression given those of the items."""
        Y = self.item_embeddings_.astype(np.float64)
        gram = Y.T @ Y + self.regularisation * np.eye(Y.shape[1])
        factors = np.zeros((rows.shape[0], Y.shape[1]))
        for number in range(rows.shape[0]):
            own = Y[rows.indices[rows.indptr[number] : rows.indptr[number + 1]]]
            left = gram + (self.confidence - 1) * own.T @ own
            factors[number] = np.linalg.solve(left, self.confidence * own.sum(axis=0))
        return np.asarray(factors @ Y.T)
