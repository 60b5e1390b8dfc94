from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodecopy.errors import InputError
from nodecopy.metrics import TemperatureScaling
from nodecopy.metrics.classification import accuracy, expected_calibration_error, nll


def simulate(temperature: float, n: int = 20_000) -> tuple[Any, Any]:
    """Return predictions that a temperature calibrates, and classes drawn from the calibrated ones."""
    draws = np.random.default_rng(0)
    p = draws.dirichlet([0.7, 0.7, 0.7], n).clip(1e-5)
    p /= p.sum(axis=1, keepdims=True)
    labels = (draws.random((n, 1)) > p.cumsum(axis=1)).sum(axis=1).clip(0, 2)
    return TemperatureScaling(1 / temperature).apply(p), labels


@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
def test_the_temperature_of_a_simulation_is_recovered(temperature: float) -> None:
    """Over 20,000 nodes its standard error is about 1 %; the seed is fixed."""
    p, labels = simulate(temperature)
    scaling = TemperatureScaling.fit(p, labels)
    assert scaling.temperature == pytest.approx(temperature, rel=0.05)
    scaled = scaling.apply(p)
    assert accuracy(scaled, labels) == accuracy(p, labels)
    assert expected_calibration_error(scaled, labels) < 0.02


@given(st.integers(0, 2**32), st.integers(1, 30), st.sampled_from([0.1, 1.0, 10.0]))
def test_no_temperature_on_a_grid_is_better(seed: int, n: int, concentration: float) -> None:
    draws = np.random.default_rng(seed)
    p, labels = draws.dirichlet([concentration] * 3, n), draws.integers(3, size=n)
    p = p.clip(1e-3) / p.clip(1e-3).sum(axis=1, keepdims=True)
    ours = nll(TemperatureScaling.fit(p, labels).apply(p), labels)
    for temperature in np.exp(np.linspace(-1.5, math.log(20), 40)):
        assert ours <= nll(TemperatureScaling(temperature).apply(p), labels) + 1e-4


def test_only_the_nodes_count() -> None:
    p, labels = simulate(2.0, 300)
    nodes = np.arange(0, 300, 3)
    unknown = np.full(300, -1)
    unknown[nodes] = labels[nodes]
    assert TemperatureScaling.fit(p, unknown, nodes) == TemperatureScaling.fit(p[nodes], labels[nodes])


def test_bounds() -> None:
    right, wrong = [[0.9, 0.1]], [[0.1, 0.9]]
    assert 1 / 20 <= TemperatureScaling.fit(right, [0]).temperature < 0.1
    assert TemperatureScaling.fit(wrong, [0]).temperature == pytest.approx(20, rel=1e-3)
    assert TemperatureScaling.fit(wrong, [0]).is_at_bound
    assert not TemperatureScaling(2.0).is_at_bound


def test_precision_and_zeros() -> None:
    p = np.array([[1.0, 0.0], [0.25, 0.75]], np.float32)
    assert TemperatureScaling().apply(p).dtype == np.float32
    np.testing.assert_allclose(TemperatureScaling().apply(p), p, atol=1e-6)
    np.testing.assert_allclose(TemperatureScaling(23.0).apply(p)[0], [2 / 3, 1 / 3], rtol=1e-6)


def test_errors() -> None:
    with pytest.raises(InputError, match="labels must hold one entry per node, 1 in all; got 2"):
        TemperatureScaling.fit([[0.5, 0.5]], [0, 1])
    with pytest.raises(InputError, match="nodes must hold at least one node to evaluate"):
        TemperatureScaling.fit([[0.5, 0.5]], [0], [])
    with pytest.raises(InputError, match=r"temperature must be a number of at least 0\.05; got 0"):
        TemperatureScaling(0).apply([[0.5, 0.5]])
