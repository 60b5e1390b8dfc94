"""Time and memory of a saved recommender that is loaded by memory map, and of one list for a new user.

Run from the repository: ``python -m benchmarks.bench_serving``, with a number of items other than
40,000, if wanted. The exact form takes 8 bytes of the disk for each pair of items. Weights are random, since
the time does not depend on them. Files are loaded in processes of their own. The rows are printed and written
to ``docs/recommendation.md``. Times are CPU times, of lists the medians: a first list may have to read its
rows from the disk, and the same list again finds them in memory.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from scipy import sparse

import nodecopy
from benchmarks.measurement import replace_section
from nodecopy import Interactions
from nodecopy.recommend import EASE

PAGE = Path(__file__).parents[1] / "docs" / "recommendation.md"
N_HISTORY, N_NEIGHBOURS, N_LISTS, K = 50, 100, 200, 10


def main() -> None:
    """Save a model in both forms, and measure each in a process of its own."""
    if sys.argv[1:2] == ["--load"]:
        print(measure(Path(sys.argv[2])))
        return
    n_items = int(sys.argv[1]) if sys.argv[1:] else 40_000
    lines = [
        f"CPU times with {n_items:,} items, histories of {N_HISTORY} and lists of {K}; the first list of a "
        "history may read its rows from the disk:",
        "",
        "| form | file | memory after loading | loading | a list | the same again |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for form in ("sparse", "exact"):
        with TemporaryDirectory() as folder:
            path = Path(folder, "model.npz")
            weights = random_weights(n_items, form, Path(folder, "weights"))
            build_model(weights).save(path)
            command = [sys.executable, "-m", "benchmarks.bench_serving", "--load", str(path)]
            row = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
            lines.append(f"| {form} | {path.stat().st_size / 1e6:,.0f} MB | {row.strip()} |")
        print(lines[-1], flush=True)
    replace_section(PAGE, "serving", "benchmarks/bench_serving.py", lines)


def random_weights(n_items: int, form: str, path: Path) -> Any:
    """Return an items x items matrix, the exact form in a file, since it need not fit into memory."""
    rng = np.random.default_rng(0)
    if form == "sparse":
        indices = rng.integers(0, n_items, (n_items, N_NEIGHBOURS), dtype=np.int32)
        indices.sort(axis=1)
        parts = rng.random(indices.size, np.float32), indices.ravel(), N_NEIGHBOURS * np.arange(n_items + 1)
        return sparse.csr_array(parts, shape=(n_items, n_items))
    weights = np.memmap(path, np.float32, "w+", shape=(n_items, n_items))
    for start in range(0, n_items, 1000):
        rows = slice(start, min(start + 1000, n_items))
        weights[rows] = rng.random((rows.stop - start, n_items), np.float32)
    return weights


def build_model(weights: Any) -> EASE:
    """Return a recommender with these weights."""
    n_items = weights.shape[0]
    model = EASE(n_neighbours=1).fit(Interactions(sparse.eye_array(2, n_items, format="csr")))
    model.weights_ = weights
    return model


def measure(path: Path) -> str:
    """Return the memory, the time of loading, and the median time of one list."""
    start = time.process_time()
    model = nodecopy.load(path, mmap=True)
    loading = time.process_time() - start
    status = Path("/proc/self/status").read_text(encoding="ascii")
    memory = int(status.split("RssAnon:")[1].split()[0]) / 1e3
    rng, items = np.random.default_rng(1), model.interactions_.item_ids
    seconds = np.empty((N_LISTS, 2))
    for row in range(N_LISTS):
        history = rng.choice(items, N_HISTORY, replace=False)
        for repeat in range(2):
            start = time.process_time()
            model.recommend_new([history], K)
            seconds[row, repeat] = time.process_time() - start
    first, again = 1e3 * np.median(seconds, axis=0)
    return f"{memory:,.0f} MB | {loading:.2f} s | {first:.1f} ms | {again:.1f} ms"


if __name__ == "__main__":
    main()
