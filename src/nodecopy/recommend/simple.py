"""Two recommenders that everybody should be ahead of: popular items, and items like those one has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray
from scipy import sparse

from nodecopy._core.validation import check_integer, check_real
from nodecopy.interactions import Interactions
from nodecopy.recommend.base import Recommender
from nodecopy.recommend.similarity import nearest_rows


@dataclass(eq=False)
class Popularity(Recommender):
    """The same for everybody: the number of users who have an item.

    >>> from nodecopy import Interactions
    >>> log = Interactions.from_table(["ann", "ann", "bob"], ["tea", "jam", "tea"])
    >>> items, scores = Popularity().fit(log).recommend(["bob"], 1)
    >>> items.tolist(), scores.tolist()
    ([['jam']], [[1.0]])
    """

    def _fit(self, interactions: Interactions, validation: Interactions | None, seed: SeedSequence) -> None:
        self._counts = np.bincount(interactions.rows.indices, minlength=interactions.n_items)

    def _score_rows(self, rows: sparse.csr_array) -> NDArray[Any]:
        return np.tile(self._counts.astype(np.float32), (rows.shape[0], 1))

    def _state(self) -> dict[str, Any]:
        return {"counts": self._counts}

    def _restore(self, state: dict[str, Any]) -> None:
        self._counts = state["counts"]


@dataclass(eq=False)
class ItemKNN(Recommender):
    """Items like those a user has: the sum of cosine similarities to them, over each item's nearest.

    Parameters
    ----------
    neighbours
        How many nearest items each item listens to; of equals the first ones.
    shrinkage
        Added to the cosine's denominator, so that two rare items that met once are not alike.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.recommend import ItemKNN
    >>> library = datasets.load("library")
    >>> items, scores = ItemKNN().fit(library, rng=0).recommend(["reader 001"], 3)
    >>> items.shape
    (1, 3)
    """

    neighbours: int = 100
    shrinkage: float = 0.0

    def _check(self) -> None:
        check_integer(self.neighbours, "neighbours of ItemKNN", low=1)
        check_real(self.shrinkage, "shrinkage of ItemKNN", low=0.0)

    def _fit(self, interactions: Interactions, validation: Interactions | None, seed: SeedSequence) -> None:
        items = sparse.csr_array(interactions.matrix.T)
        nearest = nearest_rows(items, self.neighbours, self.shrinkage)
        self._similarity = sparse.csr_array(nearest.T)  # column i: whom item i listens to

    def _score_rows(self, rows: sparse.csr_array) -> NDArray[Any]:
        return np.asarray((rows @ self._similarity).toarray())

    def _state(self) -> dict[str, Any]:
        return {"similarity": self._similarity}

    def _restore(self, state: dict[str, Any]) -> None:
        self._similarity = state["similarity"]
