"""NetGAN or CELL on a dataset or its largest component: statistics of samples during the training.

Run from the repository, for instance
``python -m benchmarks.bench_walks netgan --whole --device cuda --seconds 450 --out netgan.csv``. Each
evaluation prints and writes a row: step, seconds so far (including evaluations), and statistics of a sample.
The first row, step 0, is the observed graph. At the end a figure of the statistics is saved next to the file.
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
    arguments = _parse_arguments()
    graph = datasets.load(arguments.dataset, largest_component=not arguments.whole)
    if arguments.model == "netgan":
        model: NetGAN | CELL = NetGAN(
            overlap=arguments.overlap,
            n_steps=arguments.steps or 10**9,
            evaluate_every=arguments.evaluate_every or 500,
            n_transitions=arguments.transitions,
            device=arguments.device,
        )
    else:
        model = CELL(
            overlap=arguments.overlap,
            n_steps=arguments.steps or 200,
            evaluate_every=arguments.evaluate_every or 10,
            device=arguments.device,
        )
    with arguments.out.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["step", "seconds", *STATISTICS])
        start = perf_counter()

        def write_row(step: int, sample: Graph) -> bool:
            seconds = perf_counter() - start if step else 0.0
            observed = statistics(sample, path_length=False, observed=graph)
            values = [f"{observed[name]:.6g}" for name in STATISTICS.values()]
            table.writerow([step, f"{seconds:.2f}", *values])
            file.flush()
            pairs = zip(STATISTICS, values, strict=True)
            print(f"{step:>8} {seconds:>8.1f} s ", *(f"{k} {v}" for k, v in pairs), flush=True)
            return bool(seconds > arguments.seconds)

        write_row(0, graph)
        model.fit(graph, rng=arguments.seed, callback=write_row)
    save_figure(arguments.out)


def save_figure(path: Path) -> None:
    """Plot the statistics of a CSV file against the step, with those of the observed graph as lines."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    with path.open(newline="") as file:
        observed, *rows = csv.DictReader(file)
    names = [name for name in STATISTICS if name != "edges"]
    steps = [int(row["step"]) for row in rows]
    figure, axes = pyplot.subplots(2, 3, figsize=(10, 5.2), layout="constrained", sharex=True)
    for axis, name in zip(axes.flat, names, strict=True):
        axis.axhline(float(observed[name]), color="tab:green", linewidth=1)
        axis.plot(steps, [float(row[name]) for row in rows], ".-", color="0.2")
        axis.set_title(name.replace("_", " "), fontsize=9)
        axis.tick_params(labelsize=8)
    figure.supxlabel(f"step ({rows[-1]['seconds']} s in total); green: observed graph", fontsize=9)
    figure.savefig(path.with_suffix(".png"), dpi=110)


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", choices=["netgan", "cell"])
    parser.add_argument("--dataset", default="cora")
    parser.add_argument(
        "--whole", action="store_true", help="all components of the dataset, not the largest alone"
    )
    parser.add_argument("--device", default="cpu")
    parser.add_argument(
        "--seconds", type=float, default=600, help="stop at the first evaluation after this time"
    )
    parser.add_argument("--steps", type=int, help="largest number of steps")
    parser.add_argument("--overlap", type=float, default=0.5, help="stop when a sample has this edge overlap")
    parser.add_argument("--evaluate-every", type=int)
    parser.add_argument(
        "--transitions", type=int, default=15_000_000, help="transitions of a NetGAN evaluation"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True, help="the CSV file; the figure has the same name")
    return parser.parse_args()


if __name__ == "__main__":
    main()
