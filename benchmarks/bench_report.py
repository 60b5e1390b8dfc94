"""Time to write, open and move the report page of a graph with 10^5 nodes.

Run from the repository after ``make browser-test``: ``python -m benchmarks.bench_report``. The time
to open ends at the second frame after everything is drawn, in headless Chromium without a GPU.
"""

from __future__ import annotations

import sys
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.synthetic_graphs import power_law_graph
from nodecopy import NodeCopying, SameLabel, compare
from nodecopy.report import page
from nodecopy.report import page as page_sections
from nodecopy.report.page import copied_samples
from nodecopy.report.sections import HeldOutPredictions, classification_section
from tests.browser.chromium import opened
from tests.report.examples import Predicted

N_SAMPLES, N_ROUNDS = 10, 5
MOVES = """new Promise((done) => {
  const view = graphViews.get("The graph"), times = [];
  let last = performance.now();
  const step = (now) => {
    times.push(now - last);
    last = now;
    if (times.length > 60) return done(times.slice(1));
    const k = 1 + times.length / 10;
    view.moveTo(d3.zoomIdentity.translate(-10 * times.length, 0).scale(k));
    requestAnimationFrame(step);
  };
  requestAnimationFrame(step);
})"""


def write(path: Path, n_nodes: int) -> None:
    """Write a page with graphs, statistics and classification."""
    graph = power_law_graph(10 * n_nodes)
    model = NodeCopying(SameLabel(), symmetrise="maximum").fit(graph)
    samples = {f"sample {number}": sample for number, sample in enumerate(copied_samples(model, 3, 0))}
    labels: Any = graph.labels
    predicted = Predicted(np.random.default_rng(0).dirichlet(np.ones(20), n_nodes))
    evaluations = {
        "random": HeldOutPredictions(predicted.probabilities, labels, predicted.uncertainty().total)
    }
    nodes, classes = np.arange(n_nodes), np.arange(20)
    uncertainty = predicted.uncertainty().total
    shown = [
        page_sections.graphs_section("The graph", graph, samples, uncertainty=uncertainty),
        page_sections.statistics_section({"samples": compare(graph, model.sample_many(N_SAMPLES, rng=0))}),
        classification_section(nodes, classes, predicted, nodes, truth=labels, evaluations=evaluations),
    ]
    page.write_page(path, "A large graph", shown)


def main(n_nodes: int = 100_000) -> None:
    """Print times and sizes."""
    with TemporaryDirectory() as folder:
        html = Path(folder, "page.html")
        start = perf_counter()
        write(html, n_nodes)
        elapsed, size = perf_counter() - start, html.stat().st_size / 1e6
        print(f"{n_nodes:,} nodes: written in {elapsed:.1f} s, {size:.2f} MB")
        seconds, frames = [], []
        for number in range(N_ROUNDS):
            with opened(html, Path(folder, f"profile-{number}")) as browser:
                seconds.append(browser.seconds)
                frames += browser.ask(MOVES)
        print(f"opened in {median(seconds):.2f} s (at most {max(seconds):.2f} s)")
        print(f"frame time while it moves: median {median(frames):.0f} ms, at most {max(frames):.0f} ms")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
