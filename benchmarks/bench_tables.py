"""Samples of a table of undirected edges in DuckDB compared with a plain copy of the table to Parquet.

Run from the repository: ``python -m benchmarks.bench_tables [n_edges ...]``; with ``spark`` as the
first argument, in a local Spark. Edges are listed once, between N = n_edges / 10 nodes in 20 classes. Rows of
the sample are checked against the definition. Files are written to a temporary folder.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import psutil

from nodecopy.edge_tables import DuckDB, EdgeTableCopying, SameLabelTable, Spark
from nodecopy.edge_tables.engines import TableEngine

MEMORY, THREADS, N_CLASSES, N_CHECKED, SEED = "1GB", 2, 20, 200, 7
STATUS = Path("/proc/self/status")


def main(engine_name: str, *sizes: int) -> None:
    for n_edges in sizes or (1_000_000, 10_000_000):
        folder = Path(tempfile.mkdtemp(prefix="bench-tables-", dir="."))
        try:
            with _open_engine(engine_name, folder) as engine:
                measure(engine, n_edges, folder)
        finally:
            shutil.rmtree(folder)


def measure(engine: TableEngine, n_edges: int, folder: Path) -> None:
    edges, labels = _write_edges(engine, n_edges, folder)
    print(f"\n{type(engine).__name__}, {n_edges:,} undirected edges, {edges.stat().st_size / 1e6:,.0f} MB")
    model = EdgeTableCopying(SameLabelTable(labels), symmetrise="maximum")
    copying = _measure(
        "plain copy", n_edges, lambda: engine.write(engine.scan(edges), folder / "copy.parquet")
    )
    _measure("fit", n_edges, lambda: model.fit(edges, engine=engine))
    _measure("donors alone", n_edges, lambda: engine.materialise(model.draw_donors(rng=SEED)))
    sampling = _measure("sample", n_edges, lambda: model.write(folder / "sample.parquet", rng=SEED))
    wall, processor = (ours / plain for ours, plain in zip(sampling, copying, strict=True))
    print(f"sample / plain copy: {wall:.1f} of wall clock, {processor:.1f} of processor time")
    print(f"peak resident {_peak():.2f} GB")
    n_written = check(engine, model, edges, folder / "sample.parquet")
    wall, processor = (n_edges / n_written * ratio for ratio in (wall, processor))
    print(
        f"sample / plain copy, per row written: {wall:.1f} of wall clock, {processor:.1f} of processor time"
    )


def check(engine: TableEngine, model: EdgeTableCopying, edges: Path, path: Path) -> int:
    """Check the edges of some nodes against the definition, A'[i, j] or A'[j, i].

    Returns the number of edges of the sample.
    """
    observed, sample = engine.scan(edges), engine.scan(path)
    donors = engine.materialise(model.draw_donors(rng=SEED))
    chosen = np.random.default_rng(0).integers(0, model.n_nodes_, N_CHECKED).tolist()
    donor_of = {row["node"]: row["donor"] for row in engine.rows(donors.filter(donors.node.isin(chosen)))}
    expected = set()
    neighbours = _find_neighbours(engine, observed, list(set(donor_of.values())))
    for node, donor in donor_of.items():
        expected |= {(min(node, j), max(node, j)) for j in neighbours.get(donor, ()) if j != node}
    # The transposed rows: nodes whose donor is a neighbour of a chosen node.
    neighbourhoods = _find_neighbours(engine, observed, chosen)
    receivers = engine.rows(
        donors.filter(donors.donor.isin(sorted({m for near in neighbourhoods.values() for m in near})))
    )
    for row in receivers:
        for i in chosen:
            if row["donor"] in neighbourhoods.get(i, ()) and row["node"] != i:
                expected.add((min(i, row["node"]), max(i, row["node"])))
    selected = sample.filter(sample.source.isin(chosen) | sample.target.isin(chosen))
    actual = [(row["source"], row["target"]) for row in engine.rows(selected)]
    assert len(actual) == len(set(actual)), "an edge is listed twice"
    assert set(actual) == expected, "the sample differs from the definition"
    total = engine.row(sample.aggregate(n=sample.count()))["n"]
    print(f"{total:,} edges in the sample; all {len(actual)} of {len(set(chosen))} nodes are as defined")
    return int(total)


def _find_neighbours(engine: TableEngine, edges: Any, nodes: list[int]) -> dict[int, set[int]]:
    """Return the neighbours of some nodes in a table of undirected edges, without self-loops."""
    near: dict[int, set[int]] = {node: set() for node in nodes}
    for row in engine.rows(edges.filter(edges.source.isin(nodes) | edges.target.isin(nodes))):
        for i, j in ((row["source"], row["target"]), (row["target"], row["source"])):
            if i in near and i != j:
                near[i].add(j)
    return near


def _write_edges(engine: TableEngine, n_edges: int, folder: Path) -> tuple[Path, Path]:
    """Write edges between nodes of a skewed distribution, in pieces, and labels of the nodes."""
    import pyarrow
    from pyarrow import parquet

    n_nodes, generator = n_edges // 10, np.random.default_rng(0)
    edges, labels = folder / "edges.parquet", folder / "labels.parquet"
    schema = pyarrow.schema([("source", pyarrow.int64()), ("target", pyarrow.int64())])
    with parquet.ParquetWriter(edges, schema) as writer:
        for start in range(0, n_edges, 2**20):
            uniforms = generator.random((2, min(2**20, n_edges - start)))
            ends = (n_nodes * uniforms**1.5).astype(np.int64)
            writer.write_table(pyarrow.table({"source": ends[0], "target": ends[1]}, schema))
    with parquet.ParquetWriter(
        labels, pyarrow.schema([("id", pyarrow.int64()), ("label", pyarrow.int64())])
    ) as writer:
        for start in range(0, n_nodes, 2**20):
            nodes = np.arange(start, min(start + 2**20, n_nodes))
            writer.write_table(pyarrow.table({"id": nodes, "label": nodes * 7919 % N_CLASSES}))
    return edges, labels


def _open_engine(name: str, folder: Path) -> TableEngine:
    if name == "spark":
        return Spark(f"local[{THREADS}]", folder)
    return DuckDB(MEMORY, THREADS, folder)


def _measure(what: str, n_edges: int, task: Callable[[], object]) -> tuple[float, float]:
    """Return seconds of wall clock and of processor time, which other processes disturb less."""
    start = perf_counter(), _processor_time()
    task()
    seconds = perf_counter() - start[0], _processor_time() - start[1]
    nanoseconds = 1e9 * seconds[1] / n_edges
    print(
        f"{what:<14}{seconds[0]:>8.1f} s{seconds[1]:>8.1f} s of processor time{nanoseconds:>8.0f} ns per edge"
    )
    return seconds


def _processor_time() -> float:
    """Return the processor time of this process and of its children, such as Spark."""
    process = psutil.Process()
    return sum(sum(each.cpu_times()[:2]) for each in (process, *process.children(recursive=True)))


def _peak() -> float:
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1e6


if __name__ == "__main__":
    arguments = sys.argv[1:]
    name = arguments.pop(0) if arguments[:1] in (["spark"], ["duckdb"]) else "duckdb"
    main(name, *(int(float(argument)) for argument in arguments))
