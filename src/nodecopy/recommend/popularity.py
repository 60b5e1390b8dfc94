"""The most popular items, the same for every user."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray
from scipy import sparse

from nodecopy.interactions import Interactions
from nodecopy.recommend.base import Recommender


@dataclass(eq=False)
class Popularity(Recommender):
    """Score an item by the number of users who have it, the same for every user.

    Attributes
    ----------
    counts_
        Number of users of each item.

    Examples
    --------
    >>> from nodecopy import Interactions
    >>> from nodecopy.recommend import Popularity
    >>> log = Interactions.from_table(["ann", "ann", "bob"], ["tea", "jam", "tea"])
    >>> items, scores = Popularity().fit(log).recommend(["bob"], 1)
    >>> items.tolist(), scores.tolist()
    ([['jam']], [[1.0]])
    """

    def fit_interactions(
        self, interactions: Interactions, validation: Interactions | None, seed: SeedSequence
    ) -> None:
        self.counts_ = np.bincount(interactions.rows.indices, minlength=interactions.n_items)

    def score_rows(self, rows: sparse.csr_array) -> NDArray[Any]:
        return np.tile(self.counts_.astype(np.float32), (rows.shape[0], 1))


def relative_popularity(interactions: Interactions) -> NDArray[np.float64]:
    """Return the number of users of each item, at least 1, divided by its mean."""
    counts = np.maximum(np.bincount(interactions.rows.indices, minlength=interactions.n_items), 1)
    return np.asarray(counts / counts.mean())
