"""Linear algebra that several layers share."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import svds


def truncated_svd(matrix: Any, rank: int) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return the ``rank`` largest singular values of a sparse matrix with their vectors, reproducibly."""
    # A random start is almost surely not orthogonal to the singular vectors; a fixed one is reproducible.
    start = np.random.default_rng(0).uniform(0.5, 1.0, min(matrix.shape))
    u, s, vt = svds(matrix, k=rank, v0=start)
    return u, s, vt
