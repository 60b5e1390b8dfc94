"""The algebra of torch: the same numbers as from NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nodecopy import Interactions
from nodecopy.errors import InputError
from nodecopy.recommend import EASE, IALS, CopyEASE, copy_ease
from nodecopy.recommend import algebra as copied_moments
from nodecopy.recommend import algebra as dense_algebra
from nodecopy.recommend.algebra import NumpyAlgebra, solve_constrained
from nodecopy.recommend.torch_algebra import TorchAlgebra
from tests.contracts.recommenders import tastes

WEIGHTS = np.linspace(0.5, 2.0, 60)


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dense_algebra, "BLOCK_ROWS", 5)
    monkeypatch.setattr(dense_algebra.row_blocks, "__defaults__", (5,))
    monkeypatch.setattr(dense_algebra, "MAX_BLOCK_ENTRIES", 60)
    for algebra in (NumpyAlgebra, TorchAlgebra):
        monkeypatch.setattr(algebra, "block_rows", 5)


@pytest.mark.parametrize("uniform", [True, False])
@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_torch_equals_numpy(uniform: bool, weights: np.ndarray | None, small_blocks: None) -> None:
    pytest.importorskip("torch")
    log = tastes()
    rule = copy_ease.default_donors()
    P, Q = (
        None if uniform else copy_ease.donor_matrix(rule, side) for side in (log, Interactions(log.matrix.T))
    )
    ours = TorchAlgebra("cpu", np.float64)
    torch_M, torch_C = copied_moments.copied_moments(log.matrix, P, Q, 0.3, 0.4, weights, ours)
    M, C = copied_moments.copied_moments(log.matrix, P, Q, 0.3, 0.4, weights)
    np.testing.assert_allclose(ours.to_numpy(torch_M), M, atol=1e-12)
    np.testing.assert_allclose(ours.to_numpy(torch_C), C, atol=1e-12)
    expected = solve_constrained(M, C, 3.0)
    for overwrite in (False, True):
        B = ours.to_numpy(ours.solve(torch_M, torch_C, 3.0, overwrite))
        np.testing.assert_allclose(B, expected, atol=1e-12)


BY_POPULARITY: dict[str, Any] = {"regularisation_exponent": 0.5, "popularity_penalty": 0.2}


@pytest.mark.parametrize(
    "model",
    [
        EASE(5.0),
        EASE(5.0, **BY_POPULARITY),
        CopyEASE(regularisation=5.0, degree_exponent=0.5),
        CopyEASE(regularisation=5.0, **BY_POPULARITY),
    ],
)
def test_models_on_a_device_of_torch(model: EASE | CopyEASE, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    expected = model.fit(tastes()).weights_
    monkeypatch.setattr(dense_algebra, "NumpyAlgebra", lambda dtype: TorchAlgebra("cpu", dtype))
    np.testing.assert_allclose(model.fit(tastes()).weights_, expected, atol=1e-5)
    path = list(model.fit_path(tastes(), [5.0]))
    np.testing.assert_allclose(path[0].weights_, expected, atol=1e-5)


@pytest.mark.parametrize("kind", [EASE, CopyEASE, IALS])
def test_wrong_devices_are_refused_before_the_fit(kind: Any) -> None:
    pytest.importorskip("torch")
    with pytest.raises(InputError, match="device must be 'cpu' or an available 'cuda'; got 'gpu'"):
        kind(device="gpu").check_params()


def test_singular_matrix_of_torch() -> None:
    pytest.importorskip("torch")
    algebra = TorchAlgebra("cpu", np.float64)
    with pytest.raises(InputError, match="regularisation must be larger: the matrix is singular"):
        algebra.invert(algebra.array(-np.eye(3)), 0.5)
