from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nodecopy import Interactions, Jaccard, copying, datasets
from nodecopy._core.parallel import create_pool
from nodecopy.copying import donors as jaccard
from nodecopy.errors import InputError
from nodecopy.recommend import EASE, CopyEASE
from nodecopy.recommend import algebra as dense_algebra
from nodecopy.recommend.copy_ease import default_donors, donor_matrix
from tests.contracts.recommenders import tastes


def test_without_copying_it_is_ease() -> None:
    log = tastes()
    plain = EASE(regularisation=7.0).fit(log).weights_
    weights = CopyEASE(0.0, 0.0, regularisation=7.0, item_bonus=0.0).fit(log).weights_
    np.testing.assert_allclose(weights, plain, atol=1e-5)


def test_the_bonus_is_the_expected_copy_of_items() -> None:
    """The bonus adds bonus times A Q', the expected sample of node copying on the transpose."""
    log = tastes()
    with_bonus, without = (CopyEASE(item_bonus=bonus).fit(log) for bonus in (0.5, 0.0))
    items = copying.NodeCopying(default_donors()).fit(Interactions(log.matrix.T))
    expected = items.expected_adjacency().toarray().T
    users = np.flatnonzero(log.rows.degrees)
    difference = (with_bonus.score() - without.score())[users]
    np.testing.assert_allclose(difference, 0.5 * expected[users], atol=1e-5)


@pytest.mark.parametrize("item_donors", [default_donors(), "uniform"])
def test_the_automatic_bonus_is_a_share_of_the_regression_on_the_law(item_donors: Any) -> None:
    log = tastes()
    B = CopyEASE(item_donors=item_donors, item_bonus=0.0).fit(log).weights_
    rule = donor_matrix(item_donors, Interactions(log.matrix.T))
    Q_t = (np.ones((24, 24)) - np.eye(24)) / 23 if rule is None else rule.toarray().T
    coefficient = np.linalg.lstsq(Q_t.reshape(-1, 1), B.ravel())[0].item()
    model = CopyEASE(item_donors=item_donors).fit(log)
    assert model.item_bonus_ == pytest.approx(0.75 * coefficient, rel=1e-4)
    np.testing.assert_allclose(model.weights_, B + model.item_bonus_ * Q_t, atol=1e-5)
    assert CopyEASE(0.0, 0.4, item_donors=item_donors, item_bonus=0.3).fit(log).item_bonus_ == 0.3


def test_the_diagonal_is_empty_and_single_precision_is_near() -> None:
    log = tastes()
    double, single = (CopyEASE(item_bonus=0.0, precision=name).fit(log) for name in ("double", "single"))
    assert not np.diag(double.weights_).any()
    np.testing.assert_allclose(single.weights_, double.weights_, atol=1e-4)


def test_weighted_law() -> None:
    """Equal weights for all others are the uniform donor rule."""
    log = tastes()
    rule = copying.Weighted(np.ones((log.n_users, log.n_users)) - np.eye(log.n_users))
    options: dict[str, Any] = {"item_share": 0.0, "item_bonus": 0.0, "regularisation": 5.0}
    weighted, uniform = (
        CopyEASE(user_donors=user_donors, **options).fit(log) for user_donors in (rule, "uniform")
    )
    np.testing.assert_allclose(weighted.weights_, uniform.weights_, atol=1e-5)


def test_default_donor_rules_are_not_shared() -> None:
    first, second = CopyEASE(), CopyEASE()
    first.set_params(user_donors__exponent=1.0)
    assert (first.user_donors.exponent, first.item_donors.exponent) == (1.0, 4.0)
    assert second.user_donors.exponent == default_donors().exponent == 4.0


@pytest.mark.parametrize(
    ("recommender", "message"),
    [
        (CopyEASE(user_share=0.7, item_share=0.4), r"user_share \+ item_share .* at most 1; got 1.1"),
        (CopyEASE(user_share=1.2), "user_share of CopyEASE must be a number between 0 and 1; got 1.2"),
        (CopyEASE(item_share=-0.1), "item_share of CopyEASE must be a number between 0 and 1; got -0.1"),
        (CopyEASE(user_donors="same"), "user_donors of CopyEASE must be a donor rule such as .* got 'same'"),
        (CopyEASE(item_donors=Jaccard), "item_donors of CopyEASE must be a donor rule"),
        (CopyEASE(item_bonus=-0.1), "item_bonus of CopyEASE must be a number of at least 0"),
        (CopyEASE(item_bonus="large"), "item_bonus of CopyEASE must be a number of at least 0"),
    ],
)
def test_wrong_parameters(recommender: CopyEASE, message: str) -> None:
    with pytest.raises(InputError, match=message):
        recommender.fit(tastes())


@pytest.mark.parametrize("n_neighbours", [None, 3])
def test_fits_in_a_pool_start_no_threads(n_neighbours: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    model, log = CopyEASE(n_neighbours=n_neighbours), datasets.load("library")
    expected = model.fit(log).score()
    monkeypatch.setattr(dense_algebra, "MIN_THREADED_PRODUCTS", 0)
    monkeypatch.setattr(jaccard, "MIN_COMPILED_PRODUCTS", 0)
    with create_pool(1) as pool:
        monkeypatch.setattr("concurrent.futures.ThreadPoolExecutor.__init__", None)
        scores = pool.submit(lambda: model.fit(log).score()).result()
    np.testing.assert_allclose(scores, expected, atol=1e-6)
