"""How many threads compiled code may use: one in a thread that is itself one of several."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor

_state = threading.local()


def create_pool(workers: int) -> ThreadPoolExecutor:
    """Return a pool of threads in which :func:`n_threads` is 1."""
    return ThreadPoolExecutor(workers, initializer=lambda: setattr(_state, "is_worker", True))


def n_threads(limit: int) -> int:
    """Return the number of cores, at most ``limit``, or 1 in a thread of :func:`create_pool`."""
    return 1 if getattr(_state, "is_worker", False) else min(limit, os.cpu_count() or 1)
