"""Measurements of benchmarks: interleaved rounds, medians, and peak memory as Linux counts it."""

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
class Measurement:
    """Seconds and peak memory in megabytes of each round of a task."""

    seconds: list[float] = field(default_factory=list)
    peaks: list[float] = field(default_factory=list)

    @property
    def milliseconds(self) -> float:
        """The median time."""
        return 1e3 * median(self.seconds)

    def ratio_to(self, other: Measurement) -> float:
        """Return the median over rounds of the ratio of this time to the other's in the same round."""
        return median(mine / theirs for mine, theirs in zip(self.seconds, other.seconds, strict=True))

    @property
    def megabytes(self) -> float:
        """The median peak."""
        return median(self.peaks)


def measure_interleaved(tasks: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, Measurement]:
    """Run all tasks once per round, because the load of the machine changes over time.

    The first run of a task in a round measures the peak of memory, after freed memory has been returned to
    the system. That makes it slower, so later runs are timed: three of a short task, one of a long one.
    """
    measurements = {name: Measurement() for name in tasks}
    for _ in range(rounds):
        for name, task in tasks.items():
            gc.collect()
            before = _reset_peak()
            first = _seconds(task)
            measurements[name].peaks.append(_memory("VmHWM") - before)
            measurements[name].seconds.append(median(_seconds(task) for _ in range(3 if first < 1 else 1)))
    return measurements


def _seconds(task: Callable[[], object]) -> float:
    """Return the time of one run; its result is deleted after the measurement."""
    start = perf_counter()
    result = task()
    seconds = perf_counter() - start
    del result
    return seconds


def copy_bandwidth(n_bytes: int = 400_000_000) -> float:
    """Return the bytes that one thread reads and writes per second when it copies initialised memory.

    Memory that was never written is backed by a single page of zeros and would be read too fast.
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
    """Reset the peak, return freed memory to the system, and return the memory in use in megabytes."""
    ctypes.CDLL(None).malloc_trim(0)
    RESET.write_text("5")
    return _memory("VmRSS")


def _memory(key: str) -> float:
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith(key))
    return int(line.split()[1]) / 1e3


def replace_section(page: Path, name: str, writer: str, lines: list[str]) -> None:
    """Replace the lines between the marks of a section of a page."""
    start, end = f"<!-- {name}: written by {writer} -->", f"<!-- end of {name} -->"
    before, _, rest = page.read_text(encoding="utf-8").partition(start)
    text = before + "\n".join([start, *lines, end]) + rest.partition(end)[2]
    page.write_text(text, encoding="utf-8")
