from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nodecopy.errors import InputError
from nodecopy.recommend import EASE, ItemKNN, WeightedHybrid
from tests.contracts.recommenders import tastes


def test_scores_by_definition() -> None:
    """Standardised scores are added up; a fitted part is used as it is; a weight of 1 ranks as the first."""
    log = tastes()
    parts = EASE(regularisation=5.0).fit(log), ItemKNN(n_neighbours=5).fit(log)
    users = np.flatnonzero(log.rows.degrees)
    z = [
        (scores - scores.mean(axis=1, keepdims=True)) / scores.std(axis=1, keepdims=True)
        for scores in (part.score() for part in parts)
    ]
    fused = WeightedHybrid(*parts, weight=0.3).fit(log)
    assert (fused.first_, fused.second_) == parts
    np.testing.assert_allclose(fused.score()[users], (0.3 * z[0] + 0.7 * z[1])[users], atol=1e-4)
    first_only = WeightedHybrid(EASE(regularisation=5.0), ItemKNN(), weight=1.0).fit(log)
    assert np.array_equal(first_only.recommend(k=3)[0][users], parts[0].recommend(k=3)[0][users])


def test_fitted_parts_are_saved_once(tmp_path: Path) -> None:
    """Parameters and fitted parts are the same recommenders, so a file holds the weights of EASE once."""
    log = tastes()
    fused = WeightedHybrid(EASE().fit(log), ItemKNN().fit(log)).fit(log)
    fused.save(tmp_path / "model.npz")
    with np.load(tmp_path / "model.npz") as archive:
        shapes = [archive[name].shape for name in archive.files]
    assert shapes.count((log.n_items, log.n_items)) == 1
    loaded = WeightedHybrid.load(tmp_path / "model.npz")
    assert np.array_equal(loaded.score(), fused.score())
    assert np.array_equal(loaded.first.score(), fused.first.score())


def test_parts_stay_unfitted() -> None:
    first, second = EASE(), ItemKNN()
    WeightedHybrid(first, second).fit(tastes())
    assert not hasattr(first, "interactions_")
    assert not hasattr(second, "interactions_")


@pytest.mark.parametrize(
    ("recommender", "message"),
    [
        (
            WeightedHybrid(EASE(), ItemKNN(), weight=2.0),
            "weight of WeightedHybrid must be a number between 0 and 1",
        ),
        (WeightedHybrid(EASE(), "knn"), "second of WeightedHybrid must be a recommender; got 'knn'"),  # type: ignore[arg-type]
        (WeightedHybrid(EASE(-1.0), ItemKNN()), "regularisation of EASE must be"),
    ],
)
def test_wrong_parameters(recommender: WeightedHybrid, message: str) -> None:
    with pytest.raises(InputError, match=message):
        recommender.fit(tastes())
