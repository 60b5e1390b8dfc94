"""Linear algebra that several layers share."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import svds
from threadpoolctl import threadpool_limits


def one_blas_thread() -> AbstractContextManager[Any]:
    """Return a context in which BLAS and LAPACK use one thread.

    Threads gain little in operations on matrices of up to a few million entries, and each waits for the
    slowest: beside another busy process these take ten times as long or more. With one thread the digits of
    results do not depend on the machine's number of cores, either.
    """
    context: AbstractContextManager[Any] = threadpool_limits(1, "blas")
    return context


def truncated_svd(matrix: Any, rank: int) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return the ``rank`` largest singular values of a sparse matrix with their vectors, reproducibly."""
    # A random start is almost surely not orthogonal to the singular vectors; a fixed one is reproducible.
    start = np.random.default_rng(0).uniform(0.5, 1.0, min(matrix.shape))
    with one_blas_thread():
        u, s, vt = svds(matrix, k=rank, v0=start)
    return u, s, vt
