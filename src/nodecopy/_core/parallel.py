"""Threads and progress of long computations."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeVar

MAX_THREADS = 8  # threads of compiled code, each of which holds arrays with an entry per node or per column
T = TypeVar("T")
Report = Callable[[str, int, int], None]  # name of an item, number of finished ones, of all


@dataclass
class _Listener:
    report: Report
    is_busy: bool = False  # whether a computation reports already


_state = threading.local()
_listener: ContextVar[_Listener | None] = ContextVar("listener", default=None)


def n_threads(limit: int = MAX_THREADS) -> int:
    """Return the number of cores, at most ``limit``, or 1 in a worker of a pool."""
    return 1 if getattr(_state, "is_worker", False) else min(limit, os.cpu_count() or 1)


def map_on_cores(
    function: Callable[[Any], Any], arguments: Iterable[Any], limit: int = MAX_THREADS
) -> Iterator[Any]:
    """Yield the results of a function in order, from :func:`n_threads` threads."""
    n = n_threads(limit)
    if n == 1:
        yield from map(function, arguments)
        return
    with ThreadPoolExecutor(n) as pool:
        yield from pool.map(function, arguments)


def create_pool(workers: int) -> ThreadPoolExecutor:
    """Return a pool of threads in which :func:`n_threads` is 1."""
    return ThreadPoolExecutor(workers, initializer=_start_worker)


def sample_stream(make: Callable[[int], T], n: int, workers: int) -> Iterator[T]:
    """Yield ``make(0), make(1), ...`` in order, at most ``workers`` of them under way or waiting."""
    if workers == 1:
        yield from map(make, range(n))
        return
    with create_pool(workers) as pool:
        waiting = deque(pool.submit(make, number) for number in range(min(workers, n)))
        try:
            for number in range(len(waiting), n + len(waiting)):
                item = waiting.popleft().result()
                if number < n:
                    waiting.append(pool.submit(make, number))
                yield item
                del item
        finally:
            for future in waiting:
                future.cancel()


def _start_worker() -> None:
    _state.is_worker = True


@contextmanager
def report_progress(report: Report) -> Iterator[None]:
    """Call ``report`` before each item of the outermost :func:`track`, and after the last."""
    token = _listener.set(_Listener(report))
    try:
        yield
    finally:
        _listener.reset(token)


def track(items: Sequence[T], what: str) -> Iterator[T]:
    """Yield items and report the progress if someone asked for it; ``what`` names an item."""
    listener, n = _listener.get(), len(items)
    if listener is None or listener.is_busy or not n:
        yield from items
        return
    listener.is_busy = True  # inner calls are parts of an item
    try:
        for number, item in enumerate(items):
            listener.report(f"{what} {number + 1} of {n}", number, n)
            yield item
        listener.report(f"{what} {n} of {n}", n, n)
    finally:
        listener.is_busy = False
