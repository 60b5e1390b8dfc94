from __future__ import annotations

import numpy as np
import pytest

from nodecopy import Interactions
from nodecopy.errors import InputError
from nodecopy.recommend import EASE, CopyEASE, ease
from tests.contracts.recommenders import tastes
from tests.recommend.oracles import ridge_without_itself


@pytest.mark.parametrize("precision", ["double", "single"])
def test_ease_is_ridge_regression_on_the_other_items(precision: str) -> None:
    log = tastes()
    A = log.matrix.toarray()
    weights = EASE(regularisation=3.0, precision=precision).fit(log).weights_
    np.testing.assert_allclose(weights, ridge_without_itself(A, A, 3.0), atol=1e-5)
    assert not np.diag(weights).any()


def test_user_weights() -> None:
    """Ridge regression with rows scaled by the roots of the weights; their sum over interactions is kept."""
    log = tastes()
    A, model = log.matrix.toarray(), EASE(regularisation=3.0, degree_exponent=0.5).fit(log)
    degrees = A.sum(axis=1)
    weights = np.divide(1, np.sqrt(degrees), out=np.zeros(len(A)), where=degrees > 0)
    weights *= degrees.sum() / (degrees @ weights)
    scaled = A * np.sqrt(weights)[:, None]
    np.testing.assert_allclose(model.weights_, ridge_without_itself(scaled, scaled, 3.0), atol=1e-5)


@pytest.mark.parametrize("model_class", [EASE, CopyEASE])
def test_penalties_by_popularity(model_class: type[EASE | CopyEASE]) -> None:
    """The lambda of an item grows with its popularity, and its scores are divided by a power of it."""
    log = Interactions(tastes().matrix.toarray() * (np.arange(24) != 3))
    counts = np.maximum(log.matrix.toarray().sum(axis=0), 1)
    p = counts / counts.mean()
    model = model_class(regularisation=3.0, regularisation_exponent=0.7)
    M, C = model.moments(log)
    K = np.linalg.inv(np.asarray(M, np.float64) + np.diag(3.0 * p**0.7))
    B = K @ C
    B -= K * (np.diag(B) / np.diag(K))
    np.testing.assert_allclose(model.solve(M, C), B, atol=1e-5)
    plain = model.fit(log).weights_
    path = list(model.fit_path(log, [3.0] * ease.MIN_SPECTRAL_PATH))
    np.testing.assert_allclose(path[-1].weights_, plain, atol=1e-6)
    penalised = model.set_params(popularity_penalty=0.3).fit(log).weights_
    np.testing.assert_allclose(penalised, plain * p**-0.3, rtol=1e-5)


@pytest.mark.parametrize("min_spectral_path", [1, 99])
@pytest.mark.parametrize("model", [EASE(), CopyEASE()])
def test_a_path_equals_single_fits(
    model: EASE | CopyEASE, min_spectral_path: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ease, "MIN_SPECTRAL_PATH", min_spectral_path)
    log = tastes()
    values = [2.0, 20.0]
    for value, fitted in zip(values, model.fit_path(log, values), strict=True):
        single = type(model)(regularisation=value).fit(log)
        assert fitted.regularisation == value
        np.testing.assert_allclose(fitted.weights_, single.weights_, atol=1e-5)
        np.testing.assert_allclose(fitted.score(), single.score(), atol=1e-4)
    assert not hasattr(model, "interactions_")


def test_wrong_paths() -> None:
    with pytest.raises(InputError, match=r"regularisation of EASE must be above 0; got 0.0"):
        list(EASE().fit_path(tastes(), [1.0, 0.0]))
    with pytest.raises(InputError, match="interactions must hold at least one"):
        list(EASE().fit_path(Interactions(np.zeros((2, 2))), [1.0]))


@pytest.mark.parametrize(
    ("recommender", "message"),
    [
        (EASE(degree_exponent=-1.0), "degree_exponent of EASE must be a number of at least 0"),
        (EASE(popularity_penalty=np.nan), "popularity_penalty of EASE must be a finite number; got nan"),
        (EASE(regularisation_exponent=np.inf), "regularisation_exponent of EASE must be a finite number"),
        (EASE(regularisation=0.0), r"regularisation of EASE must be above 0; got 0\.0"),
        (EASE(precision="half"), "precision of EASE must be one of 'double', 'single', 'auto'; got 'half'"),
    ],
)
def test_wrong_parameters(recommender: EASE, message: str) -> None:
    with pytest.raises(InputError, match=message):
        recommender.fit(tastes())
