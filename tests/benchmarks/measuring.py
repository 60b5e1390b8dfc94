"""How benchmarks measure here: interleaved rounds, medians, and memory from the kernel's own count."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np

STATUS, RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


@dataclass
class Measured:
    """Seconds of each round, and by how many megabytes memory rose at most."""

    seconds: list[float] = field(default_factory=list)
    megabytes: list[float] = field(default_factory=list)

    @property
    def ms(self) -> float:
        return 1e3 * median(self.seconds)

    def times(self, other: Measured) -> float:
        """How many times the other's seconds: the median over rounds, each a ratio of neighbours in time."""
        return median(ours / theirs for ours, theirs in zip(self.seconds, other.seconds, strict=True))

    @property
    def mb(self) -> float:
        return median(self.megabytes)


def interleaved(tasks: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, Measured]:
    """Run all tasks round by round, since other work on the machine comes and goes.

    The first run of a task starts from returned memory and measures the peak; it also pays for what the
    task before left behind (pages gone back to the system, cold caches), so the runs after it are timed:
    three of a short task, one of a long one.
    """
    found = {name: Measured() for name in tasks}
    for _ in range(rounds):
        for name, task in tasks.items():
            gc.collect()
            before = _reset_peak()
            first = _seconds(task)
            found[name].megabytes.append(_memory("VmHWM") - before)
            found[name].seconds.append(median(_seconds(task) for _ in range(3 if first < 1 else 1)))
    return found


def _seconds(task: Callable[[], object]) -> float:
    """Time of one run; its result is given back after the clock has stopped."""
    start = perf_counter()
    result = task()
    seconds = perf_counter() - start
    del result
    return seconds


def copy_bandwidth(n_bytes: int = 400_000_000) -> float:
    """Bytes read and written per second by one thread that copies memory which was written before.

    A source that was never written is backed by one page of zeros and would flatter the figure.
    """
    source = np.arange(n_bytes // 4, dtype=np.int32)
    target = source.copy()
    seconds = []
    for _ in range(7):
        start = perf_counter()
        np.copyto(target, source)
        seconds.append(perf_counter() - start)
    return 2 * n_bytes / median(seconds)


def _reset_peak() -> float:
    """Forget the peak so far and give freed memory back; returns the memory in use, in megabytes."""
    ctypes.CDLL(None).malloc_trim(0)
    RESET.write_text("5")
    return _memory("VmRSS")


def _memory(key: str) -> float:
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith(key))
    return int(line.split()[1]) / 1e3
