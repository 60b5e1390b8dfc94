"""Recommenders whose scores are inner products of user and item embeddings."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from nodecopy._core.csr import IntArray, unit_rows
from nodecopy.recommend.base import Recommender


class EmbeddingRecommender(Recommender):
    """A model whose scores are inner products of user and item embeddings.

    A subclass writes :meth:`~Recommender.fit_interactions`, which sets the two attributes.

    Attributes
    ----------
    user_embeddings_, item_embeddings_
        Arrays ``[n_users, n_factors]`` and ``[n_items, n_factors]``.

    Examples
    --------
    A recommender by truncated singular value decomposition:

    >>> import numpy as np
    >>> from nodecopy import datasets
    >>> from nodecopy.recommend import EmbeddingRecommender
    >>> class SVD(EmbeddingRecommender):
    ...     def fit_interactions(self, interactions, validation, seed):
    ...         U, s, V_t = np.linalg.svd(interactions.matrix.toarray(), full_matrices=False)
    ...         self.user_embeddings_, self.item_embeddings_ = U[:, :6] * s[:6], V_t[:6].T
    >>> SVD().fit(datasets.load("library")).similar_items(["Dracula"], 1)[0].tolist()
    [['The Turn of the Screw']]
    """

    user_embeddings_: NDArray[Any]
    item_embeddings_: NDArray[Any]

    def similarity_rows(self, rows: sparse.csr_array) -> NDArray[Any]:
        return cosines(self.item_embeddings_, rows.indices)

    def user_similarities(self, positions: IntArray) -> NDArray[Any]:
        return cosines(self.user_embeddings_, positions)

    def score_positions(self, positions: IntArray) -> NDArray[Any]:
        return np.asarray(self.user_embeddings_[positions] @ self.item_embeddings_.T)


def cosines(embeddings: NDArray[Any], items: IntArray) -> NDArray[Any]:
    """Return the cosine of some embeddings with all, 0 for an embedding of zeros."""
    unit = unit_rows(embeddings)
    return np.asarray(unit[items] @ unit.T)
