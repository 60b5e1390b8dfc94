"""The compiled sum over neighbours against the dense formula."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from nodecopy.generators.kernels import sum_neighbour_memberships


@pytest.mark.parametrize("delta", [0.0, 0.05])
def test_sums_are_those_of_the_dense_formula(delta: float) -> None:
    rng = np.random.default_rng(5)
    links = sparse.csr_array(rng.integers(0, 3, (40, 40)) * (rng.random((40, 40)) < 0.2), dtype=float)
    pi, excess = rng.dirichlet(np.ones(3), 40), np.array([0.4, 0.0, -0.02])
    probabilities = np.maximum(delta + (pi * excess) @ pi.T, 1e-6)
    result = np.empty_like(pi)
    sum_neighbour_memberships(links.indptr, links.indices, links.data, pi, excess, delta, 1e-6, result)
    np.testing.assert_allclose(result, (links.toarray() / probabilities) @ pi, rtol=1e-10)
