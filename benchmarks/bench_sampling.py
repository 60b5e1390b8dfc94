"""One undirected same-label sample compared with other libraries and with the memory bandwidth.

Run from the repository: ``python -m benchmarks.bench_sampling [n_entries ...]``. The lower
bound of a step is the time to read its input and write its output once at the copy bandwidth of the same run.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import igraph
import networkit
import networkx
import numpy as np
from scipy import sparse

from benchmarks.measurement import Measurement, copy_bandwidth, measure_interleaved
from benchmarks.synthetic_graphs import power_law_graph
from nodecopy import Graph, NodeCopying, SameLabel
from nodecopy._core.arrays import IntArray, Rows, as_csr
from nodecopy.copying import rows as row_copying

MAX_SLOW_ENTRIES = 5_000_000
N_SAMPLES = 8


def main(*sizes: int) -> None:
    per_entry = {}
    for n_entries in sizes or (1_000_000, 10_000_000):
        graph = power_law_graph(n_entries, rng=0)
        print(f"\n{graph}, {graph.rows.n_entries:,} stored entries, largest degree {graph.degrees.max():,}")
        per_entry[n_entries] = compare_with_others(graph)
        compare_with_bandwidth(graph)
        compare_threads(graph)
        compare_checks(graph)
    if len(per_entry) > 1:
        first, *_, last = per_entry.values()
        print(f"\ncost per stored entry, largest graph / smallest graph: {last / first:.2f}")


def compare_checks(graph: Graph) -> None:
    """Compare the check of a CSR matrix's arrays with the construction of a graph from it."""
    matrix = graph.adjacency
    tasks = {"check": lambda: as_csr(matrix, "matrix"), "graph": lambda: Graph(matrix, directed=True)}
    measurements = measure_interleaved(tasks, rounds=3)
    check, whole = measurements["check"], measurements["graph"]
    print(f"check of CSR arrays: {check.milliseconds:.1f} ms, {check.ratio_to(whole):.1%} of Graph(matrix)")


def compare_with_others(graph: Graph) -> float:
    """Compare whole samples; return nanoseconds per observed entry."""
    model = NodeCopying(SameLabel(), symmetrise="maximum").fit(graph)
    matrix = graph.adjacency
    donors = model.draw_donors(rng=0)
    tasks: dict[str, Callable[[], Any]] = {
        "nodecopy": lambda: model.sample(rng=0),
        "nodecopy, one endpoint": lambda: _one_endpoint(graph).sample(rng=0),
        "SciPy maximum, donors given": lambda: _scipy_maximum(matrix, donors),
        "igraph SBM": build_igraph_sbm(graph),
        "igraph configuration": lambda: igraph.Graph.Degree_Sequence(
            graph.degrees.tolist(), method="configuration"
        ),
        "networkit ChungLu": lambda: networkit.generators.ChungLuGenerator(graph.degrees.tolist()).generate(),
        "networkx configuration": lambda: networkx.configuration_model(graph.degrees.tolist(), seed=0),
    }
    if graph.rows.n_entries > MAX_SLOW_ENTRIES:
        del tasks["networkx configuration"]  # takes minutes and tens of gigabytes
    assert model.sample(rng=0).rows == _as_rows(_scipy_maximum(matrix, donors))
    measurements = measure_interleaved(tasks, rounds=3)
    ours = measurements["nodecopy"]
    print(f"{'one sample':<34}{'ms':>10}{'/ ours':>9}{'peak MB':>10}{'/ ours':>9}")
    for name, measurement in measurements.items():
        time, memory = measurement.milliseconds, measurement.megabytes
        ratios = time / ours.milliseconds, memory / ours.megabytes
        print(f"{name:<34}{time:>10.1f}{ratios[0]:>9.1f}{memory:>10.0f}{ratios[1]:>9.2f}")
    scipy = measurements["SciPy maximum, donors given"]
    print(f"peak memory, ours / SciPy: {ours.megabytes / scipy.megabytes:.2f}")
    nanoseconds = 1e6 * ours.milliseconds / graph.rows.n_entries
    print(f"nodecopy: {nanoseconds:.1f} ns per stored entry")
    return nanoseconds


def compare_with_bandwidth(graph: Graph) -> None:
    """Compare the two steps of a sample, for given donors, with their lower bounds."""
    donors = NodeCopying(SameLabel(), symmetrise="maximum").fit(graph).draw_donors(rng=0)
    bandwidth = copy_bandwidth()
    tasks: dict[str, Callable[[], Rows]] = {
        "directed gather": lambda: row_copying.copy_rows(graph.rows, donors),
        "union by maximum": lambda: row_copying.symmetric_union(graph.rows, donors),
    }
    outputs = {name: _bytes(task()) for name, task in tasks.items()}
    measurements: dict[str, Measurement] = measure_interleaved(tasks, rounds=7)
    print(f"copy bandwidth {bandwidth / 1e9:.1f} GB/s, one thread")
    for name, measurement in measurements.items():
        bound = 1e3 * (_bytes(graph.rows) + donors.nbytes + outputs[name]) / bandwidth
        time = measurement.milliseconds
        print(f"{name:<20}{time:>8.1f} ms, bound {bound:>6.2f} ms, {time / bound:>6.1f} times the bound")


def compare_threads(graph: Graph) -> None:
    """Draw the same samples with one thread and with two."""
    model = NodeCopying(SameLabel(), symmetrise="maximum").fit(graph)
    tasks = {str(workers): _build_stream(model, workers) for workers in (1, 2)}
    one_thread, two_threads = measure_interleaved(tasks, rounds=3).values()
    ratio = one_thread.milliseconds / two_threads.milliseconds
    print(f"{N_SAMPLES} samples: two threads {ratio:.2f} times as fast as one")


def _build_stream(model: NodeCopying[Graph], workers: int) -> Callable[[], int]:
    return lambda: sum(sample.n_edges for sample in model.sample_many(N_SAMPLES, rng=0, workers=workers))


def _one_endpoint(graph: Graph) -> NodeCopying[Graph]:
    return NodeCopying(SameLabel(), symmetrise="one-endpoint").fit(graph)


def _scipy_maximum(matrix: sparse.csr_array, donors: IntArray) -> sparse.csr_array:
    """Sample with SciPy: rows by fancy indexing, self-loops masked before the maximum."""
    copied = sparse.csr_array(matrix[donors])
    row = np.repeat(np.arange(copied.shape[0], dtype=np.int32), np.diff(copied.indptr))
    copied.data[row == copied.indices] = 0
    copied.eliminate_zeros()
    return sparse.csr_array(copied.maximum(copied.T.tocsr()))


def build_igraph_sbm(graph: Graph) -> Callable[[], Any]:
    """Return a sampler of a stochastic block model with the observed blocks and block densities."""
    labels = graph.labels
    assert labels is not None
    sizes = np.bincount(labels)
    member = sparse.csr_array((np.ones(len(labels)), (labels, np.arange(len(labels)))))
    block_edges = (member @ graph.adjacency @ member.T).toarray()
    pairs = np.outer(sizes, sizes) - np.diag(sizes)
    return lambda: igraph.Graph.SBM((block_edges / pairs).tolist(), sizes.tolist())


def _as_rows(matrix: sparse.csr_array) -> Rows:
    matrix.sort_indices()
    return Rows(matrix.indptr, matrix.indices, None, matrix.shape[1])


def _bytes(rows: Rows) -> int:
    return int(rows.indptr.nbytes + rows.indices.nbytes)


if __name__ == "__main__":
    main(*(int(float(argument)) for argument in sys.argv[1:]))
