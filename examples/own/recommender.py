"""A recommender: items of users who share an item with the history."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray
from scipy import sparse

from nodecopy import Interactions
from nodecopy.recommend import Recommender


class CoOccurrence(Recommender):
    """Score an item by how often it occurs with the items of the history; popular items count less."""

    is_linear = True

    def __init__(self, damping: float = 0.5) -> None:
        self.damping = damping

    def fit_interactions(
        self, interactions: Interactions, validation: Interactions | None, seed: SeedSequence
    ) -> None:
        matrix = interactions.matrix
        counts = (matrix.T @ matrix).toarray()
        popularity = np.maximum(counts.diagonal(), 1)
        np.fill_diagonal(counts, 0)
        self.weights_ = counts / popularity**self.damping

    def score_rows(self, rows: sparse.csr_array) -> NDArray[Any]:
        return np.asarray(rows @ self.weights_)
