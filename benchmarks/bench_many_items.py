"""Time and memory of the sparse form of CopyEASE for many users and items, on synthetic power laws.

Run from the repository: ``python -m benchmarks.bench_many_items 100000 1000000``; the numbers are those
of items, with as many users and at least twenty times as many interactions. Every size runs in a process of
its own, so that the peak memory is its own. The rows are printed and written to ``docs/copy_ease.md``. CPU
times are those of all threads, which other processes on the machine change less than wall-clock times.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from nodecopy import Interactions
from nodecopy.recommend import CopyEASE

PAGE = Path(__file__).parents[1] / "docs" / "copy_ease.md"
PER_USER = 22
N_TASTES = 1000
N_LISTS = 1000


def main() -> None:
    """Measure each size in a process of its own."""
    if sys.argv[1:2] == ["--one"]:
        print(measure(int(sys.argv[2])))
        return
    for size in sys.argv[1:] or ["100000"]:
        command = [sys.executable, "-m", "benchmarks.bench_many_items", "--one", size]
        row = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        print(row, end="", flush=True)
        write_row(row)


def measure(size: int) -> str:
    """Return the row of a size: the CPU time of a fit with the default parameters, and the peak memory."""
    CopyEASE(n_neighbours=2).fit(power_law(N_TASTES)).recommend(k=2)  # compiles the kernels
    log = power_law(size)
    model = CopyEASE()
    seconds = _cpu_seconds(lambda: model.fit(log))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    users = log.user_ids[:N_LISTS]
    per_list = 1e3 * _cpu_seconds(lambda: model.recommend(users, 10)) / len(users)
    counts = f"{size:,} | {log.n_users:,} | {log.n_interactions:,} | {model.n_neighbours_ or 'all'}"
    return f"| {counts} | {seconds / 60:.1f} min | {peak:.1f} GiB | {per_list:.1f} ms |"


def _cpu_seconds(task: Callable[[], object]) -> float:
    start = time.process_time()
    task()
    return time.process_time() - start


def write_row(row: str) -> None:
    """Replace the row of the same number of items in the documentation, or add it before the end."""
    before, end, after = PAGE.read_text(encoding="utf-8").partition("<!-- end of many items -->")
    items = row.split("|")[1]
    lines = [line for line in before.splitlines(keepends=True) if not line.startswith(f"|{items}|")]
    PAGE.write_text("".join([*lines, row, end, after]), encoding="utf-8")


def power_law(size: int) -> Interactions:
    """Return interactions with item popularities near rank^-0.5 and user degrees near rank^-0.4."""
    rng = np.random.default_rng(0)
    activity = np.arange(1, size + 1) ** -0.4
    degrees = np.maximum(1, activity * (PER_USER * size / activity.sum())).astype(np.int64)
    users = np.repeat(rng.permutation(size), np.minimum(degrees, 1000))
    # Users have one of many tastes: half of their items come from a thousandth of the catalogue.
    taste = rng.integers(0, N_TASTES, size)[users] * (size // N_TASTES)
    items = (size * rng.random(len(users)) ** 2).astype(np.int64)
    is_local = rng.random(len(users)) < 0.5
    local = taste + (max(1, size // N_TASTES) * rng.random(len(users)) ** 2).astype(np.int64)
    every = np.arange(size)
    columns = np.minimum(np.where(is_local, local, items), size - 1)
    return Interactions.from_table(users, columns, user_ids=every, item_ids=every)


if __name__ == "__main__":
    main()
