"""Samples, donors, draws and statistics of edge tables are those of the model in memory."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nodecopy import Graph, Interactions, Jaccard, NodeCopying, SameLabel, read_graph, statistics
from nodecopy._core import random
from nodecopy.edge_tables import (
    EdgeTableCopying,
    JaccardTable,
    NearestNeighboursTable,
    SameLabelTable,
    WeightedTable,
)
from nodecopy.edge_tables.donors import exact_literal, flip_coins, threefry, uniforms
from nodecopy.edge_tables.engines import DuckDB, TableEngine
from nodecopy.edge_tables.model import edge_table_statistics
from nodecopy.errors import DataWarning, InputError
from nodecopy.io.node_tables import label_array
from tests.edge_tables.twins import RULES, Twins, collected, edge_table, edges_of, in_order, table
from tests.strategies import TEXTS, graphs, interactions


@pytest.fixture(scope="module")
def engine() -> Iterator[TableEngine]:
    with DuckDB(memory="500MB", threads=1) as opened:
        yield opened


@pytest.mark.filterwarnings("ignore:.*by which donors are drawn:nodecopy.errors.DataWarning")
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    graphs(texts=TEXTS, labelled=False).map(in_order) | interactions().map(in_order),
    st.sampled_from(RULES),
    st.sampled_from([0.0, 0.3, 1e-7, 1.0]),
    st.sampled_from(["maximum", "one-endpoint", "none"]),
    st.integers(0, 2**40),
    st.integers(0, 3),
)
def test_samples_are_those_of_the_model_in_memory(
    engine: TableEngine,
    data: Graph | Interactions,
    donors: str,
    keep: float,
    rule: str,
    seed: int,
    sample: int,
) -> None:
    twins = Twins(data, donors, keep, rule, seed, sample)
    assert twins.in_tables(engine) == twins.in_memory()


def donors(donors: Any, engine: TableEngine, edges: Any, **more: Any) -> dict[Any, Any]:
    drawn = EdgeTableCopying(donors).fit(edges, engine=engine, **more).draw_donors(rng=3, sample=2)
    return {row["node"]: row["donor"] for row in engine.rows(drawn)}


def test_nodes_that_are_not_listed_keep_their_own(engine: TableEngine) -> None:
    edges = table(engine, source=[1, 2, 3], target=[2, 3, 4])
    nearest = NearestNeighboursTable(table(engine, node=[1], donor=[4]))
    assert donors(nearest, engine, edges) == {1: 4, 2: 2, 3: 3, 4: 4}
    pairs: Any = {"node": [1, 1, 1, 1, 2], "donor": [4, 3, 4, 2, 1]}  # of a repeated pair, the larger counts
    weights = WeightedTable(table(engine, **pairs, weight=[2.0, 1e-12, 1e-300, 0.0, 5e-324]))
    assert donors(weights, engine, edges) == {1: 4, 2: 1, 3: 3, 4: 4}
    labels = SameLabelTable(table(engine, id=[1, 2, 3, 9], label=["x", "", None, "y"]))
    with pytest.warns(DataWarning, match="2 of 5 nodes have a label"):
        assert donors(labels, engine, edges, allow_isolated=True) == {1: 1, 2: 2, 3: 3, 4: 4, 9: 9}


@pytest.mark.parametrize(
    "labels",
    [
        [date(1969, 1, 1), date(1969, 1, 1), None, date(2020, 1, 1), date(2020, 1, 1), date(2020, 1, 1)],
        [0.0, 0.0, np.nan, -1.0, 1.0, None],
        [True, False, True, None, False, True],
        [b"x", b"x", b"y", b"", b"y", None],
        [Decimal("1.5"), Decimal("1.5"), None, Decimal(-1), Decimal(-1), Decimal(-1)],
        [3, -1, 3, 3, None, -1],
        np.array([3, 1, 3, 3, 1, 2**62], np.uint64),
    ],
)
def test_labels_of_any_kind_are_those_of_memory(engine: TableEngine, tmp_path: Path, labels: Any) -> None:
    edges, given = tmp_path / "edges.parquet", tmp_path / "labels.parquet"
    pq.write_table(pyarrow.table({"source": [0, 1, 2, 3, 4], "target": [1, 2, 3, 4, 5]}), edges)
    pq.write_table(pyarrow.table({"id": list(range(6)), "label": labels}), given)
    column = pq.read_table(given)["label"].to_numpy()
    model = NodeCopying(SameLabel()).fit(read_graph(edges).replace(labels=label_array(column)))
    for sample in range(3):
        drawn = (
            EdgeTableCopying(SameLabelTable(given))
            .fit(edges, engine=engine)
            .draw_donors(rng=0, sample=sample)
        )
        found = {row["node"]: row["donor"] for row in engine.rows(drawn)}
        assert [found[node] for node in range(6)] == model.draw_donors(rng=0, sample=sample).tolist()


@pytest.mark.parametrize("weights", [[2.0, None, np.nan, 1.0], [None] * 4])
def test_missing_weights_are_those_of_memory(engine: TableEngine, tmp_path: Path, weights: Any) -> None:
    weight, path = pyarrow.array(weights, pyarrow.float64()), tmp_path / "edges.parquet"
    pq.write_table(pyarrow.table({"source": [0, 1, 2, 3], "target": [1, 2, 3, 0], "weight": weight}), path)
    graph, counts = read_graph(path), edge_table_statistics(path, engine=engine)
    assert (counts["n_nodes"], counts["n_edges"]) == (graph.n_nodes, graph.n_edges)


@pytest.mark.parametrize(
    "rule",
    [
        JaccardTable(max_item_degree=3),
        JaccardTable(max_donors=2),
        JaccardTable(include_self=False, max_item_degree=4),
    ],
)
def test_shared_items_that_too_many_have_do_not_count(engine: TableEngine, rule: JaccardTable) -> None:
    log = Interactions((np.random.default_rng(1).random((12, 9)) < 0.35).astype(float))
    counted = log.matrix.toarray()
    if rule.max_item_degree is not None:
        counted[:, (counted > 0).sum(axis=0) > rule.max_item_degree] = 0
    twin = NodeCopying(Jaccard(include_self=rule.include_self, max_donors=rule.max_donors)).fit(
        Interactions(counted)
    )
    found = donors(
        rule, engine, edge_table(engine, log), interactions=True, nodes=table(engine, id=np.arange(12))
    )
    assert [found[user] for user in range(12)] == twin.draw_donors(rng=3, sample=2).tolist()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda e: NearestNeighboursTable(table(e, node=[1], donor=[7])), "must name nodes of"),
        (lambda e: NearestNeighboursTable(table(e, node=["1"], donor=["2"])), "ids like the edges"),
        (lambda e: WeightedTable(table(e, node=[1], donor=[2], weight=[np.nan])), "finite and not negative"),
        (lambda e: SameLabelTable(table(e, id=[1, 1], label=[0, 1])), "must list every id once"),
        (lambda e: SameLabelTable(table(e, id=["a"], label=[0])), "ids must be integers in all tables"),
        (lambda e: SameLabelTable(table(e, id=[1, 9], label=[0, 0])), "1 ids are not: 9"),
        (lambda e: SameLabelTable(table(e, id=[1, 2], x=[0, 0], z=[0, 0])), "a column label or class"),
        (lambda e: SameLabelTable(table(e, id=[1, 2], label=[0, -2])), "larger; got -2"),
        (lambda e: SameLabelTable(table(e, id=[1, 2], label=[np.nan, -3.0])), "larger; got -3"),
        (lambda e: SameLabelTable(table(e, id=[1, 2], label=[0.5, -np.inf])), "text; got fractions"),
        (lambda e: JaccardTable(max_item_degree=0), "max_item_degree of JaccardTable"),
        (lambda e: SameLabelTable(3), "must be a Parquet file or an Ibis table"),
    ],
)
def test_tables_that_cannot_be_used(engine: TableEngine, make: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        donors(make(engine), engine, table(engine, source=[1], target=[2]))


WORDS = st.integers(0, 2**32 - 1)
few = settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])


@few
@given(st.tuples(WORDS, WORDS), st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=5))
def test_threefry_bits(engine: TableEngine, key: tuple[int, int], counters: list[tuple[int, int]]) -> None:
    first, second = np.array(counters).T
    given_counters = table(engine, row=np.arange(len(first)), first=first, second=second)
    found = threefry(given_counters, key, given_counters.first, given_counters.second).order_by("row")
    x, y = random.threefry(key, first, second)
    expected = list(zip(x.tolist(), y.tolist(), strict=True))
    assert [(row["x"], row["y"]) for row in engine.rows(found)] == expected


@few
@given(st.tuples(WORDS, WORDS))
def test_uniforms_and_coins_are_those_of_numpy(engine: TableEngine, key: tuple[int, int]) -> None:
    nodes = table(engine, number=np.arange(50))
    rows = engine.rows(uniforms(nodes, key).order_by("number"))
    assert [row["u"] for row in rows] == random.node_uniforms(key, 50).tolist()
    first, second = np.arange(50), np.arange(50)[::-1] * 7
    pairs = table(engine, row=first, i=first, j=second)
    coins = engine.rows(flip_coins(pairs, key, pairs.i, pairs.j).order_by("row"))
    assert [row["to_larger"] for row in coins] == random.pair_coins(key, first, second).tolist()


@few
@given(st.floats(0, 1, allow_subnormal=False) | st.sampled_from([0.1, 1e-300, 2.0**53, 1 / 3]))
def test_literals_are_exact(engine: TableEngine, value: float) -> None:
    row = table(engine, row=[0]).select(value=exact_literal(value))
    assert engine.row(row)["value"] == value


def of_tables(engine: TableEngine, graph: Graph, **more: Any) -> dict[str, float]:
    labels = {} if graph.label_codes is None else {"label": graph.labels}
    nodes = table(engine, id=graph.node_ids, **labels)
    return edge_table_statistics(
        edge_table(engine, graph), engine=engine, nodes=nodes, directed=graph.directed, **more
    )


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(graphs())
def test_as_in_memory(engine: TableEngine, graph: Graph) -> None:
    if not graph.n_nodes:
        return
    found = of_tables(engine, graph)
    wanted = statistics(graph, path_length=False)
    assert set(found) <= set(wanted)
    np.testing.assert_equal(found, {name: wanted[name] for name in found})


CHOICES: list[Any] = [{}, {"weight": "kg"}, {"source": "taker", "target": "giver", "weight": ""}]


def test_statistics_and_the_fit_read_what_memory_reads(engine: TableEngine, tmp_path: Path) -> None:
    """Statistics needed columns source and target, and counted edges of weight 0."""
    (tmp_path / "parts").mkdir()
    columns = {"when": [0.5, 1.5], "giver": [1, 2], "taker": [2, 4], "amount": [1.0, 0.0], "kg": [0.0, 2.0]}
    other = {"when": [2.5, 3.5], "giver": [2, 5], "taker": [3, 5], "amount": [2.0, 1.0], "kg": [1.0, 1.0]}
    for number, part in enumerate((columns, other)):
        pq.write_table(pyarrow.table(part), tmp_path / "parts" / f"{number}.parquet")
    for pattern in ("parts/*.parquet", "**/*.parquet", "parts/[01].parquet"):
        for names in CHOICES:
            path: Any = tmp_path / pattern
            graph = read_graph(path, directed=True, **names)
            found = edge_table_statistics(path, engine=engine, directed=True, columns=names)
            wanted = statistics(graph, path_length=False)
            np.testing.assert_equal(found, {name: wanted[name] for name in found})
            model = EdgeTableCopying(JaccardTable()).fit(path, engine=engine, directed=True, columns=names)
            sample = NodeCopying(Jaccard()).fit(graph).sample(rng=1)
            assert collected(model.sample(rng=1)) == edges_of(sample)
    with pytest.raises(InputError, match="must name columns of source, target, weight; got 'from'"):
        edge_table_statistics(path, engine=engine, columns={"from": "giver"})


def test_a_long_path_is_one_component_and_overlap_counts_shared_edges(engine: TableEngine) -> None:
    order = np.random.default_rng(0).permutation(100)
    path = Graph.from_edges(order[:-1], order[1:])
    broken = Graph.from_edges(np.delete(order[:-1], 29), np.delete(order[1:], 29), node_ids=np.arange(100))
    assert of_tables(engine, path)["largest_component"] == 100
    found = of_tables(engine, broken, observed=edge_table(engine, path))
    assert (found["n_components"], found["largest_component"]) == (2, 70)
    assert found["edge_overlap"] == 98 / 99
