from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from nodecopy.errors import InputError
from nodecopy.recommend import MGCCF
from nodecopy.recommend.baselines import above_threshold
from tests.contracts.recommenders import tastes


@pytest.mark.parametrize("fusion", ["sum", "concatenation"])
def test_embeddings_by_the_equations(fusion: str) -> None:
    log = tastes()
    model = MGCCF(
        n_factors=8, n_epochs=4, batch_size=64, n_layers=2, similarity_degree=4.0, fusion=fusion, device="cpu"
    )
    fitted = model.fit(log, rng=0)
    weights = {name: weight.astype(float) for name, weight in fitted.weights_.items()}
    A = log.matrix.toarray().astype(float)

    def mean(matrix: Any, values: Any) -> Any:
        return matrix @ values / np.maximum(matrix.sum(axis=1, keepdims=True), 1e-12)

    e = [weights["free"][:60], weights["free"][60:]]
    sides = [A, A.T]
    h = list(e)
    for layer in range(2):
        n = [np.tanh(mean(sides[s], h[1 - s]) @ weights[f"neighbour.{2 * layer + s}"]) for s in (0, 1)]
        h = [np.tanh(np.hstack([h[s], n[s]]) @ weights[f"combine.{2 * layer + s}"]) for s in (0, 1)]
    for side in (0, 1):
        similar = above_threshold(sparse.csr_array(sides[side]), 4.0).toarray()
        z = np.tanh(mean(similar, e[side]) @ weights[f"similar.{side}"])
        s = np.tanh(e[side] @ weights[f"skip.{side}"])
        expected = h[side] + z + s if fusion == "sum" else np.hstack([h[side], z, s])
        np.testing.assert_allclose(fitted.embed()[side], expected, atol=1e-5)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (MGCCF(n_layers=0), "n_layers of MGCCF must be an integer of at least 1; got 0"),
        (MGCCF(similarity_degree=-1.0), "similarity_degree of MGCCF must be a number of at least 0"),
        (MGCCF(dropout=1.0), "dropout of MGCCF must be a number between 0 and 0.99"),
        (MGCCF(fusion="attention"), "fusion of MGCCF must be one of 'sum', 'concatenation'"),
    ],
)
def test_wrong_parameters(model: MGCCF, message: str) -> None:
    with pytest.raises(InputError, match=message):
        model.fit(tastes(), rng=0)
