"""The exact expected graph beside means of sampled graphs on ml-100k: distance and time.

Run from the repository: ``python -m tests.benchmarks.bench_expected``. It needs ml-100k (see ``nodecopy
datasets fetch ml-100k``) and draws ``docs/expected_graph.png``.
"""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure

from nodecopy import Interactions, Jaccard, NodeCopying, datasets
from tests.benchmarks.measuring import interleaved

PICTURE = Path(__file__).parents[2] / "docs" / "expected_graph.png"
COUNTS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)


class Distance(NamedTuple):
    """After so many samples: seconds, and the mean and largest difference of entries to the expectation."""

    n_graphs: int
    seconds: float
    mean: float
    largest: float


def main() -> None:
    train = datasets.interaction_split(datasets.load("ml-100k"), rng=0).train.binary()
    model = NodeCopying(Jaccard()).fit(train)
    (exact,) = interleaved({"exact": lambda: model.expected_adjacency().tocsr()}, rounds=3).values()
    print(f"expected graph of ml-100k, Jaccard's law, {train!r}")
    print(f"{'':<16}{'ms':>10}{'mean difference':>18}{'largest':>10}\n{'exact':<16}{exact.ms:>10.0f}")
    found = distances(model)
    for one in found:
        print(
            f"{f'{one.n_graphs} samples':<16}{1e3 * one.seconds:>10.0f}{one.mean:>18.5f}{one.largest:>10.3f}"
        )
    draw(found, exact.ms / 1e3)


def distances(model: NodeCopying[Interactions]) -> list[Distance]:
    """One stream of samples, looked at after 1, 2, 5, ... of them; looking is not timed."""
    expected = model.expected_adjacency().toarray()
    # A matrix in full: 10^3 graphs have most entries, and sums of sparse ones would be the slower way.
    total, seconds, found = np.zeros(expected.shape), 0.0, []
    samples = model.sample_many(COUNTS[-1], rng=0)
    for number in range(1, COUNTS[-1] + 1):
        start = perf_counter()
        rows = next(samples).rows
        total[rows.row_numbers, rows.indices] += 1
        seconds += perf_counter() - start
        if number in COUNTS:
            difference = np.abs(total / number - expected)
            found.append(Distance(number, seconds, float(difference.mean()), float(difference.max())))
    return found


def draw(found: list[Distance], exact: float) -> None:
    """Both distances beside lines of one over the root, and the seconds beside those of the exact matrix."""
    figure = Figure((9, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    n_graphs = np.array([one.n_graphs for one in found])
    for name, values in (("largest", [one.largest for one in found]), ("mean", [one.mean for one in found])):
        (line,) = left.plot(n_graphs, values, "o-", label=name)
        root = values[-1] * np.sqrt(n_graphs[-1] / n_graphs)
        left.plot(n_graphs, root, ":", color=line.get_color(), label=r"$\propto 1/\sqrt{N_G}$")
    left.set(ylabel="difference of entries to the exact expectation", title="distance")
    right.plot(n_graphs, [one.seconds for one in found], "o-", label="mean of samples")
    right.axhline(exact, color="black", linestyle="--", label="exact expectation")
    right.set(ylabel="seconds", title="time")
    for axes in (left, right):
        axes.set(xlabel="sampled graphs $N_G$", xscale="log", yscale="log")
        axes.grid(alpha=0.3)
        axes.legend()
    figure.savefig(PICTURE, dpi=110)


if __name__ == "__main__":
    main()
