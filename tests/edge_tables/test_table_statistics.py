"""Statistics inside DuckDB are those of the graph in memory, to the last bit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from nodecopy import Graph, datasets, statistics
from nodecopy.edge_tables.engines import DuckDB, Engine
from nodecopy.edge_tables.statistics import edge_table_statistics
from tests.edge_tables.twins import edge_table, table
from tests.strategies import graphs

pytest.importorskip("ibis")


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with DuckDB(memory="500MB", threads=1) as opened:
        yield opened


def of_tables(engine: Engine, graph: Graph, **more: Any) -> dict[str, float]:
    labels = {} if graph.labels is None else {"label": graph.named_labels()}
    nodes = table(engine, id=graph.node_ids, **labels)
    return edge_table_statistics(
        edge_table(engine, graph), engine=engine, nodes=nodes, directed=graph.directed, **more
    )


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(graphs())
def test_as_in_memory(engine: Engine, graph: Graph) -> None:
    if not graph.n_nodes:
        return
    found = of_tables(engine, graph)
    wanted = statistics(graph, path_length=False)
    assert set(found) <= set(wanted)
    np.testing.assert_equal(found, {name: wanted[name] for name in found})


def test_a_long_path_is_one_component_and_overlap_counts_shared_edges(engine: Engine) -> None:
    order = np.random.default_rng(0).permutation(100)
    path = Graph.from_edges(order[:-1], order[1:])
    broken = Graph.from_edges(np.delete(order[:-1], 29), np.delete(order[1:], 29), node_ids=np.arange(100))
    assert of_tables(engine, path)["largest_component"] == 100
    found = of_tables(engine, broken, observed=edge_table(engine, path))
    assert (found["n_components"], found["largest_component"]) == (2, 70)
    assert found["edge_overlap"] == 98 / 99


def test_karate(engine: Engine) -> None:
    graph = datasets.load("karate")
    found = of_tables(engine, graph)
    assert found["n_edges"] == 78
    assert found["cross_community_share"] == statistics(graph)["cross_community_share"]
