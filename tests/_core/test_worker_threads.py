"""The number of threads inside and outside of a pool."""

from __future__ import annotations

import os

from nodecopy._core.worker_threads import create_pool, n_threads


def test_threads_of_a_pool_do_not_start_threads() -> None:
    assert n_threads(1) == 1
    assert n_threads(10_000) == os.cpu_count()
    with create_pool(2) as pool:
        assert list(pool.map(n_threads, [8, 8, 8])) == [1, 1, 1]
    assert n_threads(10_000) == os.cpu_count()
