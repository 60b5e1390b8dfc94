"""Samples of edge tables: those of the model in memory for the same seed, and errors."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nodecopy import Graph, Interactions
from nodecopy.edge_tables import EdgeTableCopying, JaccardTable, SameLabelTable
from nodecopy.edge_tables.engines import DuckDB, Engine
from nodecopy.errors import InputError, NotFittedError
from tests.edge_tables.twins import RULES, Twins, edge_table, in_order, table
from tests.strategies import TEXTS, graphs, interactions

pytest.importorskip("ibis")


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with DuckDB(memory="500MB", threads=1) as opened:
        yield opened


@pytest.mark.filterwarnings("ignore:.*by which donors are drawn:nodecopy.errors.DataWarning")
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    graphs(texts=TEXTS, labelled=False).map(in_order) | interactions().map(in_order),
    st.sampled_from(RULES),
    st.sampled_from([0.0, 0.3, 1e-7, 1.0]),
    st.sampled_from(["maximum", "one-endpoint"]),
    st.integers(0, 2**40),
    st.integers(0, 3),
)
def test_samples_are_those_of_the_model_in_memory(
    engine: Engine, data: Graph | Interactions, donors: str, keep: float, rule: str, seed: int, sample: int
) -> None:
    twins = Twins(data, donors, keep, rule, seed, sample)
    assert twins.in_tables(engine) == twins.in_memory()


def test_models_that_are_not_fitted_raise() -> None:
    with pytest.raises(NotFittedError, match="fit"):
        EdgeTableCopying(JaccardTable()).sample(rng=0)


def test_samples_differ_and_are_not_the_observed_graph(engine: Engine) -> None:
    pairs = np.random.default_rng(0).integers(0, 40, (2, 80))
    graph = Graph.from_edges(*pairs)
    labels = SameLabelTable(table(engine, id=graph.node_ids, label=graph.node_ids % 2))
    model = EdgeTableCopying(labels).fit(edge_table(engine, graph), engine=engine)
    samples = [
        frozenset(map(tuple, (row.values() for row in engine.rows(model.sample(rng=0, sample=s)))))
        for s in (0, 1)
    ]
    assert len({*samples, frozenset(zip(*(c.tolist() for c in graph.edges()[:2]), strict=True))}) == 3


def test_a_sample_is_not_written_over_edges_or_labels(engine: Engine, tmp_path: Path) -> None:
    edges, given = tmp_path / "edges.parquet", tmp_path / "labels.parquet"
    pq.write_table(pyarrow.table({"source": [0, 1, 2], "target": [1, 2, 3]}), edges)
    pq.write_table(pyarrow.table({"id": [0, 1, 2, 3], "label": [0, 0, 1, 1]}), given)
    before = edges.read_bytes(), given.read_bytes()
    for directed in (False, True):
        model = EdgeTableCopying(SameLabelTable(given)).fit(edges, engine=engine, directed=directed)
        for target in (edges, given):
            with pytest.raises(InputError, match="must not be a file that the table depends on"):
                model.write(target, rng=0)
    assert (edges.read_bytes(), given.read_bytes()) == before


def test_a_closed_engine_is_an_error(tmp_path: Path) -> None:
    pq.write_table(pyarrow.table({"source": [1, 2], "target": [2, 3]}), tmp_path / "edges.parquet")
    pq.write_table(pyarrow.table({"id": [1, 2, 3], "label": [0, 0, 0]}), tmp_path / "labels.parquet")
    scratch = tmp_path / "scratch"
    with DuckDB(threads=1, scratch=scratch) as opened:
        model = EdgeTableCopying(SameLabelTable(tmp_path / "labels.parquet"))
        model.fit(tmp_path / "edges.parquet", engine=opened)
        assert not list(scratch.glob("*/*.pairs"))  # intermediate tables are removed
    with pytest.raises(InputError, match="engine is closed"):
        model.write(tmp_path / "sample.parquet", rng=0)
