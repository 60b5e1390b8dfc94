from __future__ import annotations

import numpy as np
import pytest

from nodecopy.errors import InputError
from nodecopy.recommend import ItemKNN
from tests.contracts.recommenders import tastes


@pytest.mark.parametrize("shrinkage", [0.0, 3.0])
def test_scores_of_nearest_items(shrinkage: float) -> None:
    """The score of an item adds up its similarities to those of its five nearest that the user has."""
    log = tastes()
    A = log.matrix.toarray().astype(float)
    counts = A.sum(axis=0)
    cosine = (A.T @ A) / np.maximum(np.sqrt(np.outer(counts, counts)) + shrinkage, 1e-12)
    np.fill_diagonal(cosine, 0.0)
    nearest = np.zeros_like(cosine)
    for item, row in enumerate(cosine):
        best = np.argsort(-row, kind="stable")[:5]
        nearest[item, best] = row[best]
    users = np.flatnonzero(log.rows.degrees)
    fitted = ItemKNN(n_neighbours=5, shrinkage=shrinkage).fit(log)
    np.testing.assert_allclose(fitted.score()[users], (A @ nearest.T)[users], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("recommender", "message"),
    [
        (ItemKNN(n_neighbours=0), "n_neighbours of ItemKNN must be an integer of at least 1; got 0"),
        (ItemKNN(shrinkage=-1.0), r"shrinkage of ItemKNN must be a number of at least 0; got -1\.0"),
    ],
)
def test_wrong_parameters(recommender: ItemKNN, message: str) -> None:
    with pytest.raises(InputError, match=message):
        recommender.fit(tastes())
