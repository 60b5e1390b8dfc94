"""Time and memory of the sparse form of CopyEASE for many users and items, on synthetic power laws.

Run from the repository: ``python -m tests.benchmarks.bench_many_items 100000 1000000``; the numbers are those
of items, with as many users and twenty times as many interactions. Every size runs in a process of its own,
so that the peak memory is its own. A million items take 20 to 30 minutes on two cores and 10 GiB.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time

import numpy as np

from nodecopy import Interactions, Jaccard
from nodecopy.recommend import CopyEASE

PER_USER = 20
N_DONORS, N_NEIGHBOURS = 20, 32


def main() -> None:
    """Measure each size in a process of its own."""
    if sys.argv[1:2] == ["--one"]:
        measure(int(sys.argv[2]))
        return
    print(
        f"{'items':>9}{'pairs':>12}{'law, users':>12}{'law, items':>12}{'moments':>9}{'solve':>8}{'GiB':>6}"
    )
    for size in sys.argv[1:] or ["100000"]:
        subprocess.run([sys.executable, "-m", "tests.benchmarks.bench_many_items", "--one", size], check=True)


def measure(size: int) -> None:
    """Print the seconds of each part of a fit and the peak memory."""
    log = power_law(size)
    model = CopyEASE(
        user_law=Jaccard(False, 2.0, N_DONORS),
        item_law=Jaccard(False, 2.0, N_DONORS),
        item_bonus=0.0,
        n_neighbours=N_NEIGHBOURS,
    )
    seconds = []
    model.laws = {}
    for side, law, matrix in (
        ("users", model.user_law, log.matrix),
        ("items", model.item_law, log.matrix.T),
    ):
        start = time.perf_counter()
        model._donors(side, law, Interactions(matrix))
        seconds.append(time.perf_counter() - start)
    start = time.perf_counter()
    moments = model.moments(log)
    seconds.append(time.perf_counter() - start)
    start = time.perf_counter()
    model.solve(*moments)
    seconds.append(time.perf_counter() - start)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    times = "".join(f"{value:>{width}.0f}" for value, width in zip(seconds, (12, 12, 9, 8), strict=True))
    print(f"{size:>9}{log.n_interactions:>12}{times}{peak:>6.1f}", flush=True)


def power_law(size: int) -> Interactions:
    """Return interactions with item popularities near rank^-0.5 and user degrees near rank^-0.4."""
    rng = np.random.default_rng(0)
    activity = np.arange(1, size + 1) ** -0.4
    degrees = np.maximum(1, activity * (PER_USER * size / activity.sum())).astype(np.int64)
    users = np.repeat(rng.permutation(size), np.minimum(degrees, 1000))
    # Users have one of many tastes: half of their items come from a thousandth of the catalogue.
    taste = rng.integers(0, 1000, size)[users] * (size // 1000)
    items = (size * rng.random(len(users)) ** 2).astype(np.int64)
    is_local = rng.random(len(users)) < 0.5
    local = taste + (max(1, size // 1000) * rng.random(len(users)) ** 2).astype(np.int64)
    every = np.arange(size)
    columns = np.minimum(np.where(is_local, local, items), size - 1)
    return Interactions.from_table(users, columns, user_ids=every, item_ids=every)


if __name__ == "__main__":
    main()
