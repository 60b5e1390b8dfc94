from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from nodecopy.errors import InputError
from nodecopy.recommend import LightGCN
from tests.contracts.recommenders import tastes


def mean_of_powers(A: Any, free: Any, n_layers: int) -> Any:
    """Return the embeddings of LightGCN by powers of the dense propagation matrix."""
    n_users, n_items = A.shape
    both = np.block([[np.zeros((n_users, n_users)), A], [A.T, np.zeros((n_items, n_items))]])
    degrees = both.sum(axis=1)
    scale = np.where(degrees > 0, 1 / np.sqrt(np.maximum(degrees, 1e-12)), 0)
    step = scale[:, None] * both * scale
    return sum(np.linalg.matrix_power(step, power) @ free for power in range(n_layers + 1)) / (n_layers + 1)


@pytest.mark.parametrize("n_layers", [1, 3])
def test_embeddings_are_means_of_powers(n_layers: int) -> None:
    """On the observed graph and on one of probabilities."""
    log = tastes()
    fitted = LightGCN(n_factors=8, n_epochs=4, batch_size=64, n_layers=n_layers).fit(log, rng=0)
    free = fitted.weights_["free"].astype(float)
    draws = np.random.default_rng(0)
    for A in (log.matrix.toarray(), draws.random((60, 24)) * (draws.random((60, 24)) < 0.5)):
        embeddings = np.concatenate(fitted.embed(sparse.csr_array(A)))
        np.testing.assert_allclose(embeddings, mean_of_powers(A, free, n_layers), atol=1e-5)


def test_wrong_parameters() -> None:
    with pytest.raises(InputError, match="n_layers of LightGCN must be an integer of at least 1; got 0"):
        LightGCN(n_layers=0).fit(tastes(), rng=0)
