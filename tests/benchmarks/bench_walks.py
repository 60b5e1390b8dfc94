"""NetGAN or CELL on a dataset or its largest component: how fast samples become like the observed graph.

Run from the repository, for instance
``python -m tests.benchmarks.bench_walks netgan --whole --device cuda --seconds 450 --out netgan.csv``. Each
evaluation prints and writes a row: iteration, seconds so far (evaluations included), and the statistics of
the graph assembled from what was learned. The first row, iteration 0, is the observed graph. At the end a
picture of it is drawn beside the file.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path
from time import perf_counter

from nodecopy import Graph, datasets
from nodecopy.generators import CELL, NetGAN
from nodecopy.metrics import statistics

STATISTICS = {
    "overlap": "edge_overlap",
    "edges": "n_edges",
    "max_degree": "max_degree",
    "assortativity": "assortativity",
    "triangles": "triangles",
    "power_law_exponent": "power_law_exponent",
    "largest_component": "largest_component",
}


def main() -> None:
    given = _arguments()
    graph = datasets.load(given.dataset, largest_component=not given.whole)
    if given.model == "netgan":
        model: NetGAN | CELL = NetGAN(
            overlap=given.overlap,
            n_steps=given.iterations or 10**9,
            evaluate_every=given.evaluate_every or 500,
            n_transitions=given.transitions,
            device=given.device,
        )
    else:
        model = CELL(
            overlap=given.overlap,
            n_steps=given.iterations or 200,
            evaluate_every=given.evaluate_every or 10,
            device=given.device,
        )
    with given.out.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["iteration", "seconds", *STATISTICS])
        start = perf_counter()

        def row(iteration: int, sample: Graph) -> bool:
            seconds = perf_counter() - start if iteration else 0.0
            found = statistics(sample, path_length=False, observed=graph)
            values = [f"{found[name]:.6g}" for name in STATISTICS.values()]
            table.writerow([iteration, f"{seconds:.2f}", *values])
            file.flush()
            pairs = zip(STATISTICS, values, strict=True)
            print(f"{iteration:>8} {seconds:>8.1f} s ", *(f"{k} {v}" for k, v in pairs), flush=True)
            return bool(seconds > given.seconds)

        row(0, graph)
        model.fit(graph, rng=given.seed, callback=row)
    draw(given.out)


def draw(path: Path) -> None:
    """The statistics of a CSV file against the iteration, with those of the observed graph as lines."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    with path.open(newline="") as file:
        observed, *rows = csv.DictReader(file)
    names = [name for name in STATISTICS if name != "edges"]
    iterations = [int(row["iteration"]) for row in rows]
    figure, axes = pyplot.subplots(2, 3, figsize=(10, 5.2), layout="constrained", sharex=True)
    for axis, name in zip(axes.flat, names, strict=True):
        axis.axhline(float(observed[name]), color="tab:green", linewidth=1)
        axis.plot(iterations, [float(row[name]) for row in rows], ".-", color="0.2")
        axis.set_title(name.replace("_", " "), fontsize=9)
        axis.tick_params(labelsize=8)
    figure.supxlabel(f"iteration, {rows[-1]['seconds']} s in all; green: observed", fontsize=9)
    figure.savefig(path.with_suffix(".png"), dpi=110)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", choices=["netgan", "cell"])
    parser.add_argument("--dataset", default="cora")
    parser.add_argument("--whole", action="store_true", help="not its largest component alone")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seconds", type=float, default=600, help="stop at the first evaluation after them")
    parser.add_argument("--iterations", type=int, help="stop after so many")
    parser.add_argument("--overlap", type=float, default=0.5, help="stop where a sample has it")
    parser.add_argument("--evaluate-every", type=int)
    parser.add_argument("--transitions", type=int, default=15_000_000, help="of a NetGAN evaluation")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True, help="the CSV file; a picture gets its name")
    return parser.parse_args()


if __name__ == "__main__":
    main()
