"""Items similar to those that a user has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray
from scipy import sparse

from nodecopy._core.csr import IntArray
from nodecopy._core.validation import check_integer, check_real
from nodecopy.interactions import Interactions
from nodecopy.recommend.base import Recommender
from nodecopy.recommend.similarity import nearest_rows


@dataclass(eq=False)
class ItemKNN(Recommender):
    """Score an item by the sum of its cosine similarities to those of its nearest items that the user has.

    Parameters
    ----------
    n_neighbours
        Number of nearest items of each item, 100 by default; ties go to the items that come first.
    shrinkage
        Number that is added to the cosine's denominator, 0 by default. Increase it where rare items that
        share one user get too similar.

    Attributes
    ----------
    similarity_
        Sparse items x items matrix; column i holds the similarities of item i to its nearest items.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.recommend import ItemKNN
    >>> model = ItemKNN().fit(datasets.load("library"))
    >>> model.similar_items(["Dracula"], 2)[0].tolist()
    [['Frankenstein', 'The Turn of the Screw']]
    """

    n_neighbours: int = 100
    shrinkage: float = 0.0

    is_linear: ClassVar[bool] = True

    def check_params(self) -> None:
        check_integer(self.n_neighbours, "n_neighbours of ItemKNN", low=1)
        check_real(self.shrinkage, "shrinkage of ItemKNN", low=0.0)

    def fit_interactions(
        self, interactions: Interactions, validation: Interactions | None, seed: SeedSequence
    ) -> None:
        nearest = nearest_rows(sparse.csr_array(interactions.matrix.T), self.n_neighbours, self.shrinkage)
        self.similarity_ = sparse.csr_array(nearest.T)

    def score_rows(self, rows: sparse.csr_array) -> NDArray[Any]:
        return np.asarray((rows @ self.similarity_).toarray())

    def similarity_rows(self, rows: sparse.csr_array) -> NDArray[Any]:
        """Return the similarities of each item to its nearest items, 0 to all others."""
        return np.asarray((rows @ self.similarity_.T).toarray())

    def donor_parts(self, history: IntArray, column: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the part of each user in the cosines, which are sums over the users of both items."""
        matrix = self.interactions_.matrix
        counts = np.bincount(matrix.indices, minlength=matrix.shape[1]).astype(np.float64)
        nearest = self.similarity_[history][:, [column]].nonzero()[0]
        own = np.zeros(matrix.shape[1])
        items = history[nearest]
        own[items] = 1 / (np.sqrt(counts[items] * counts[column]) + self.shrinkage)
        has_item = matrix[:, [column]].toarray()[:, 0]
        return has_item * (matrix @ own), np.zeros(matrix.shape[1])
