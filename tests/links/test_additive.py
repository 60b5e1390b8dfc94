from __future__ import annotations

import numpy as np
import pytest

from nodecopy.links.signals import AdditiveModel


def fit(x: np.ndarray, y: np.ndarray, log: list[bool], offset: float | np.ndarray = 0.0) -> AdditiveModel:
    full = np.full(len(x), offset) if np.ndim(offset) == 0 else np.asarray(offset)
    return AdditiveModel.fit(x, y, is_logarithmic=log, offset=full, weights=np.ones(len(x)))


def test_a_function_that_is_not_monotonic_is_learnt() -> None:
    draws = np.random.default_rng(0)
    x = draws.uniform(-2, 2, (20_000, 1))
    truth = 3 * np.abs(x[:, 0]) - 3
    y = draws.random(len(x)) < 1 / (1 + np.exp(-truth))
    model = fit(x, y, [False])
    assert np.abs(model.log_odds(x) - truth).mean() < 0.25


def test_an_offset_undoes_the_sampling_of_pairs() -> None:
    draws = np.random.default_rng(1)
    x = draws.normal(size=(200_000, 1))
    y = draws.random(len(x)) < 1 / (1 + np.exp(-(2 * x[:, 0] - 4)))
    # One in ten pairs without an edge is kept where x > 0, one in fifty elsewhere.
    kept = np.where(x[:, 0] > 0, 0.1, 0.02)
    chosen = y | (draws.random(len(x)) < kept)
    offset = -np.log(kept[chosen])
    model = fit(x[chosen], y[chosen], [False], offset)
    middle = np.abs(x[:, 0]) < 1.5
    assert np.abs(model.log_odds(x[middle]) - (2 * x[middle, 0] - 4)).mean() < 0.2


def test_contributions_are_centred_and_constant_outside() -> None:
    draws = np.random.default_rng(2)
    x = draws.exponential(size=(2000, 2))
    y = draws.random(len(x)) < x[:, 0] / (1 + x[:, 0])
    model = fit(x, y, [True, False])
    assert np.allclose(model.contributions(x[~y]).mean(axis=0), 0)
    far = np.array([[x[:, 0].max(), 1.0], [1e6, 1.0]])
    assert model.log_odds(far)[0] == pytest.approx(model.log_odds(far)[1])
    assert np.allclose(model.log_odds(x), model.intercept + model.contributions(x).sum(axis=1))


def test_constant_signals_contribute_nothing() -> None:
    x = np.column_stack([np.zeros(100), np.ones(100)])
    model = fit(x, np.arange(100) < 20, [True, False])
    assert np.allclose(model.contributions(x), 0)
    assert model.log_odds(x)[0] == pytest.approx(np.log(20 / 80), abs=0.1)
