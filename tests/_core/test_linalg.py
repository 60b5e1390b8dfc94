"""The truncated SVD against a full one."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from nodecopy._core.linalg import truncated_svd


def test_truncated_svd_equals_a_full_one_and_is_reproducible() -> None:
    draws = np.random.default_rng(0)
    matrix = sparse.csr_array(draws.random((30, 20)) * (draws.random((30, 20)) < 0.3))
    u, s, vt = truncated_svd(matrix, 4)
    full = np.linalg.svd(matrix.toarray(), full_matrices=False)
    np.testing.assert_allclose(np.sort(s)[::-1], full[1][:4])
    best = (full[0][:, :4] * full[1][:4]) @ full[2][:4]
    np.testing.assert_allclose((u * s) @ vt, best, atol=1e-9)
    for again, part in zip(truncated_svd(matrix, 4), (u, s, vt), strict=True):
        assert np.array_equal(again, part)
