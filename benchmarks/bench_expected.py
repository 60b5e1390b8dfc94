"""The exact expected graph compared with means of sampled graphs on ml-100k: difference and time.

Run from the repository: ``python -m benchmarks.bench_expected``. It needs ml-100k (see ``nodecopy
datasets fetch ml-100k``) and saves ``docs/expected_graph.png``.
"""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure

from benchmarks.measurement import measure_interleaved
from nodecopy import Interactions, Jaccard, NodeCopying, datasets

FIGURE_PATH = Path(__file__).parents[1] / "docs" / "expected_graph.png"
COUNTS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)


class Distance(NamedTuple):
    """Time of some samples, and the mean and largest difference of their mean from the expectation."""

    n_graphs: int
    seconds: float
    mean: float
    largest: float


def main() -> None:
    train = datasets.interaction_split(datasets.load("ml-100k"), rng=0).train.binary()
    model = NodeCopying(Jaccard()).fit(train)
    (exact,) = measure_interleaved({"exact": lambda: model.expected_adjacency().tocsr()}, rounds=3).values()
    print(f"expected graph of ml-100k, Jaccard donors, {train!r}")
    print(
        f"{'':<16}{'ms':>10}{'mean difference':>18}{'largest':>10}\n{'exact':<16}{exact.milliseconds:>10.0f}"
    )
    distances = measure_distances(model)
    for d in distances:
        print(f"{f'{d.n_graphs} samples':<16}{1e3 * d.seconds:>10.0f}{d.mean:>18.5f}{d.largest:>10.3f}")
    save_figure(distances, exact.milliseconds / 1e3)


def measure_distances(model: NodeCopying[Interactions]) -> list[Distance]:
    """Compare one stream of samples after 1, 2, 5, ... of them; the comparison is not timed."""
    expected = model.expected_adjacency().toarray()
    # Dense, because 10^3 graphs together have most entries and sums of sparse matrices would be slower.
    total, seconds, distances = np.zeros(expected.shape), 0.0, []
    samples = model.sample_many(COUNTS[-1], rng=0)
    for number in range(1, COUNTS[-1] + 1):
        start = perf_counter()
        rows = next(samples).rows
        total[rows.row_numbers, rows.indices] += 1
        seconds += perf_counter() - start
        if number in COUNTS:
            difference = np.abs(total / number - expected)
            distances.append(Distance(number, seconds, float(difference.mean()), float(difference.max())))
    return distances


def save_figure(distances: list[Distance], exact: float) -> None:
    """Plot both differences with lines of slope -1/2, and the time with that of the exact matrix."""
    figure = Figure((9, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    n_graphs = np.array([d.n_graphs for d in distances])
    for name, values in (("largest", [d.largest for d in distances]), ("mean", [d.mean for d in distances])):
        (line,) = left.plot(n_graphs, values, "o-", label=name)
        root = values[-1] * np.sqrt(n_graphs[-1] / n_graphs)
        left.plot(n_graphs, root, ":", color=line.get_color(), label=r"$\propto 1/\sqrt{N_G}$")
    left.set(ylabel="difference of entries from the exact expectation", title="difference")
    right.plot(n_graphs, [d.seconds for d in distances], "o-", label="mean of samples")
    right.axhline(exact, color="black", linestyle="--", label="exact expectation")
    right.set(ylabel="seconds", title="time")
    for axes in (left, right):
        axes.set(xlabel="sampled graphs $N_G$", xscale="log", yscale="log")
        axes.grid(alpha=0.3)
        axes.legend()
    figure.savefig(FIGURE_PATH, dpi=110)


if __name__ == "__main__":
    main()
