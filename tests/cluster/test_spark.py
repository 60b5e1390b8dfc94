"""A real local Spark gives the edges of memory, also where a task fails once."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.synthetic_graphs import power_law_graph
from nodecopy import Graph, Interactions, statistics
from nodecopy.edge_tables.engines import Spark
from nodecopy.edge_tables.model import edge_table_statistics
from tests.edge_tables.twins import RULES, Twins, edge_table, table

pyspark = pytest.importorskip("pyspark")
pytestmark = pytest.mark.filterwarnings("default")  # what Spark warns of is not ours

SETTINGS = {  # for tables of a few rows: compiling queries would take longer than running them
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


@pytest.fixture(scope="module")
def engine() -> Iterator[Spark]:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    with Spark("local[2, 3]", settings=SETTINGS) as opened:  # two threads; a task may fail twice
        yield opened


def graph(kind: str, seed: int = 0) -> Graph | Interactions:
    generator = np.random.default_rng(seed)
    matrix = (generator.random((30, 30)) < 0.15) * generator.random((30, 30))
    ids = np.array([f"n{number}'é" for number in range(30)])
    ids.sort()
    if kind == "interactions":
        return Interactions(matrix, ids, np.arange(30))
    return Graph(matrix if "weighted" in kind else matrix > 0, node_ids=ids, directed="un" not in kind)


KINDS = ("undirected", "weighted undirected", "weighted directed", "interactions")


@pytest.mark.parametrize(("kind", "donors"), list(zip(KINDS, RULES, strict=True)))
def test_same_edges(engine: Spark, kind: str, donors: str) -> None:
    rule = "one-endpoint" if kind == "undirected" else "maximum"
    twins = Twins(graph(kind), donors, 0.1, rule, seed=3, sample=1)
    found = twins.in_tables(engine)
    assert found == twins.in_memory()
    assert found


def test_same_statistics(engine: Spark) -> None:
    data = graph("undirected")
    assert isinstance(data, Graph)
    nodes = table(engine, id=data.node_ids)
    found = edge_table_statistics(edge_table(engine, data), engine=engine, nodes=nodes)
    wanted = statistics(data)
    np.testing.assert_equal(found, {name: wanted[name] for name in found})


def test_a_task_that_fails_once(engine: Spark, tmp_path: Path) -> None:
    """The first attempt at every partition of the edges dies; the sample is the same."""
    data = power_law_graph(2_000, rng=0)
    twins = Twins(data, "labels", seed=5)
    marks = tmp_path / "marks"
    marks.mkdir()
    given = edge_table(engine, data)
    edges = engine.session.table(given.get_name())
    flaky = edges.mapInPandas(dies_once(str(marks)), "source long, target long")
    flaky.createOrReplaceTempView("flaky")
    assert twins.in_tables(engine, engine.backend.table("flaky")) == twins.in_memory()
    assert list(marks.iterdir())


def dies_once(folder: str) -> Any:
    """A function of batches that fails the first time a task runs it."""

    def through(batches: Any) -> Any:
        context = pyspark.TaskContext.get()
        mark = Path(folder) / f"{context.stageId()}-{context.partitionId()}"
        if not mark.exists():
            mark.touch()
            raise RuntimeError("this task fails once")
        yield from batches

    return through
