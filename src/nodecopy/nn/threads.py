"""Independent networks on threads of their own, with every operation on one thread.

Torch shares each operation among all threads and waits for the slowest. For networks of this size that gains
little on a quiet machine and loses a factor of ten or more beside another busy process.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from threading import Event, Lock
from typing import TypeVar

import torch

from nodecopy.nn.networks import Networks

Part = TypeVar("Part")
Result = TypeVar("Result")


LARGE = 2**20
"""Entries of a layer from which on all threads share an operation, if there is one network only."""


def share_threads(networks: Networks) -> AbstractContextManager[object]:
    """Return the context in which networks are computed: one thread per operation, unless they are large."""
    features = networks.features
    n_entries = max(int(features.entries.max()), features.shape[1] * networks.recipe.n_hidden)
    return choose_threads(n_entries if len(features.entries) == 1 else 0, features.device)


def choose_threads(n_entries: int, device: torch.device) -> AbstractContextManager[object]:
    """Return the context in which a network is computed whose largest layer has ``n_entries`` entries."""
    if n_entries >= LARGE or device.type != "cpu":
        return nullcontext()
    return one_thread_per_operation()


class _Nesting:
    """How many blocks of all threads are open, and how many threads torch had before the first of them."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget all blocks, such as those of threads that a fork does not copy."""
        self.lock, self.depth, self.n_threads = Lock(), 0, 1


_nesting = _Nesting()
os.register_at_fork(after_in_child=_nesting.reset)


@contextmanager
def one_thread_per_operation() -> Iterator[int]:
    """Let torch compute every operation on one thread inside the block; yields how many it had before.

    Torch keeps a number for each thread and one for threads to come. The last block that is left, in whatever
    thread, sets the latter back.
    """
    with _nesting.lock:
        n_threads = torch.get_num_threads()
        if not _nesting.depth:
            _nesting.n_threads = n_threads
        _nesting.depth += 1
        torch.set_num_threads(1)
    try:
        yield n_threads
    finally:
        with _nesting.lock:
            _nesting.depth -= 1
            torch.set_num_threads(n_threads if _nesting.depth else _nesting.n_threads)


def map_on_threads(function: Callable[[Part, Event], Result], parts: Sequence[Part]) -> list[Result]:
    """Return the results of a function for all parts, computed on as many threads as torch has.

    The function gets the part and an event, which is set after an error or an interruption: it should then
    return as soon as it can.
    """
    stop = Event()
    with (
        one_thread_per_operation() as n_threads,
        ThreadPoolExecutor(n_threads, initializer=torch.set_num_threads, initargs=(1,)) as pool,
    ):
        futures = [pool.submit(function, part, stop) for part in parts]
        try:
            return [future.result() for future in futures]
        except BaseException:
            stop.set()
            for future in futures:
                future.cancel()
            raise
