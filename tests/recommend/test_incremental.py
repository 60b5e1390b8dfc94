"""New interactions: the weights are those of a fresh fit, but few users are computed again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nodecopy import Interactions, Jaccard, datasets
from nodecopy.errors import InputError
from nodecopy.recommend import EASE, CopyEASE
from nodecopy.recommend import ease as incremental
from nodecopy.recommend.ease import append_interactions
from tests.contracts.recommenders import tastes

MODELS = [
    EASE(5.0),
    EASE(5.0, degree_exponent=0.5),
    CopyEASE(regularisation=5.0),
    CopyEASE(0.3, 0.5, regularisation=5.0, degree_exponent=0.5, item_bonus=0.0),
    CopyEASE(user_donors="uniform", item_donors="uniform", regularisation=5.0, degree_exponent=0.5),
]


def parts(log: Interactions, seed: int) -> list[Interactions]:
    """Return three parts of a log, the last of which have new users and items, without the empty ones."""
    draws = np.random.default_rng(seed)
    number = draws.choice(3, p=[0.6, 0.2, 0.2], size=log.n_interactions)
    number[np.isin(log.rows.row_numbers, [3, 7]) & (number < 1)] = 1
    number[np.isin(log.rows.indices, [2, 11]) & (number < 2)] = 2
    users, items, _ = log.table()
    return [Interactions.from_table(users[number == part], items[number == part]) for part in range(3)]


@pytest.mark.parametrize("model", MODELS)
def test_partial_fits_equal_a_fresh_fit(model: EASE | CopyEASE) -> None:
    first, *others = parts(tastes(), 0)
    model.fit(first)
    total = first
    for part in others:
        total = append_interactions(total, part)
        model.partial_fit(part)
        fresh = type(model)(**model.get_params(deep=False)).fit(total)
        assert model.interactions_ == total == model.seen_
        np.testing.assert_allclose(model.weights_, fresh.weights_, atol=2e-5)
    assert total.n_interactions == tastes().n_interactions
    assert (total.n_users, total.n_items) > (first.n_users, first.n_items)
    fresh = type(model)(**model.get_params(deep=False)).fit(append_interactions(first, others[1]))
    np.testing.assert_allclose(model.fit(first).partial_fit(others[1]).weights_, fresh.weights_, atol=2e-5)


def test_only_changed_users_are_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    library = datasets.load("library")
    sizes: list[int] = []
    part = incremental._part

    def count(A: Any, w: Any, P: Any, rows: Any) -> Any:
        sizes.append(len(rows))
        return part(A, w, P, rows)

    monkeypatch.setattr(incremental, "_part", count)
    model = EASE(degree_exponent=0.5).fit(library)
    new = Interactions.from_table(library.user_ids[:3], library.item_ids[:3])
    model.partial_fit(new)
    assert 0 < sizes[0] <= 3
    rule = Jaccard(include_self=False, max_donors=2)
    copied = CopyEASE(user_donors=rule, item_donors=rule).fit(library).partial_fit(new)
    assert 0 < max(sizes[2:]) < library.n_users
    fresh = CopyEASE(user_donors=rule, item_donors=rule).fit(append_interactions(library.binary(), new))
    np.testing.assert_allclose(copied.weights_, fresh.weights_, atol=1e-5)


def test_parameters_may_change_in_between() -> None:
    first, second, _ = parts(tastes(), 1)
    model = CopyEASE(regularisation=5.0).fit(first).partial_fit(second)
    model.set_params(degree_exponent=0.7, user_share=0.0, item_share=0.6).partial_fit(second)
    fresh = CopyEASE(0.0, 0.6, regularisation=5.0, degree_exponent=0.7).fit(model.interactions_)
    np.testing.assert_allclose(model.weights_, fresh.weights_, atol=1e-5)


def test_seen_interactions_stay_seen() -> None:
    first, second, _ = parts(tastes(), 2)
    seen = Interactions(np.ones((first.n_users, first.n_items)), first.user_ids, first.item_ids)
    model = EASE(5.0).fit(first, seen=seen).partial_fit(second)
    assert model.seen_ == append_interactions(seen.binary(), second)


def test_the_sparse_form_and_unfitted_models() -> None:
    first, second, _ = parts(tastes(), 3)
    total = append_interactions(first, second)
    model = CopyEASE(n_neighbours=5).partial_fit(first).partial_fit(second)
    fresh = CopyEASE(n_neighbours=5).fit(total)
    np.testing.assert_array_equal(model.weights_.toarray(), fresh.weights_.toarray())


def test_wrong_interactions() -> None:
    model = EASE().fit(tastes())
    with pytest.raises(InputError, match="ids of users must be strings, as in training; got 1"):
        model.partial_fit(Interactions.from_table([1], ["tea"]))
    with pytest.raises(InputError, match="interactions must hold at least one"):
        model.partial_fit(tastes().difference(tastes()))
