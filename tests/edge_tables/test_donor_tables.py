"""Donor rules on edge tables, by hand or against their twins in memory."""

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

from nodecopy import Interactions, Jaccard, NodeCopying, SameLabel, read_graph
from nodecopy.edge_tables import (
    EdgeTableCopying,
    JaccardTable,
    NearestNeighboursTable,
    SameLabelTable,
    WeightedTable,
)
from nodecopy.edge_tables.engines import DuckDB, Engine
from nodecopy.errors import DataWarning, InputError
from nodecopy.io.node_tables import label_array
from tests.edge_tables.twins import edge_table, table

pytest.importorskip("ibis")


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with DuckDB(memory="500MB", threads=1) as opened:
        yield opened


def donors(donors: Any, engine: Engine, edges: Any, **more: Any) -> dict[Any, Any]:
    drawn = EdgeTableCopying(donors).fit(edges, engine=engine, **more).draw_donors(rng=3, sample=2)
    return {row["node"]: row["donor"] for row in engine.rows(drawn)}


def test_nodes_that_are_not_listed_keep_their_own(engine: Engine) -> None:
    edges = table(engine, source=[1, 2, 3], target=[2, 3, 4])
    assert donors(NearestNeighboursTable(table(engine, node=[1], donor=[4])), engine, edges) == {
        1: 4,
        2: 2,
        3: 3,
        4: 4,
    }
    weights = WeightedTable(table(engine, node=[1, 1, 2], donor=[4, 3, 1], weight=[2.0, 0.0, 5e-324]))
    assert donors(weights, engine, edges) == {1: 4, 2: 1, 3: 3, 4: 4}
    labels = SameLabelTable(table(engine, id=[1, 2, 3, 9], label=["x", "", None, "y"]))
    with pytest.warns(DataWarning, match="2 of 5 nodes have a label"):
        assert donors(labels, engine, edges) == {1: 1, 2: 2, 3: 3, 4: 4, 9: 9}


@pytest.mark.parametrize(
    "labels",
    [
        [date(1969, 1, 1), date(1969, 1, 1), None, date(2020, 1, 1), date(2020, 1, 1), date(2020, 1, 1)],
        [0.0, 0.0, np.nan, -1.0, 1.0, None],
        [0.5, 0.5, np.nan, -0.5, -0.5, -0.5],
        [-np.inf, -np.inf, -1.0, -1.0, np.nan, None],
        [True, False, True, None, False, True],
        [b"x", b"x", b"y", b"", b"y", None],
        [Decimal("1.5"), Decimal("1.5"), None, Decimal(-1), Decimal(-1), Decimal(-1)],
        [3, -1, 3, 3, None, -1],
        np.array([3, 1, 3, 3, 1, 2**62], np.uint64),
    ],
)
def test_labels_of_any_kind_are_those_of_memory(engine: Engine, tmp_path: Path, labels: Any) -> None:
    edges, given = tmp_path / "edges.parquet", tmp_path / "labels.parquet"
    pq.write_table(pyarrow.table({"source": [0, 1, 2, 3, 4], "target": [1, 2, 3, 4, 5]}), edges)
    pq.write_table(pyarrow.table({"id": list(range(6)), "label": labels}), given)
    column = pq.read_table(given)["label"].to_numpy().tolist()  # arrays of fractions are refused: no classes
    model = NodeCopying(SameLabel()).fit(read_graph(edges).replace(labels=label_array(column)))
    for sample in range(3):
        drawn = (
            EdgeTableCopying(SameLabelTable(given))
            .fit(edges, engine=engine)
            .draw_donors(rng=0, sample=sample)
        )
        found = {row["node"]: row["donor"] for row in engine.rows(drawn)}
        assert [found[node] for node in range(6)] == model.draw_donors(rng=0, sample=sample).tolist()


@pytest.mark.parametrize(
    "rule",
    [
        JaccardTable(max_item_degree=3),
        JaccardTable(max_donors=2),
        JaccardTable(include_self=False, max_item_degree=4),
    ],
)
def test_shared_items_that_too_many_have_do_not_count(engine: Engine, rule: JaccardTable) -> None:
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
        (
            lambda e: NearestNeighboursTable(table(e, node=[1], donor=[7])),
            "must name nodes of the graph; 1 rows",
        ),
        (lambda e: NearestNeighboursTable(table(e, node=["1"], donor=["2"])), "ids like those of the edges"),
        (lambda e: WeightedTable(table(e, node=[1], donor=[2], weight=[np.nan])), "finite and not negative"),
        (lambda e: SameLabelTable(table(e, id=[1, 1], label=[0, 1])), "must list every id once"),
        (
            lambda e: SameLabelTable(table(e, id=["a"], label=[0])),
            "ids must be integers in all tables or strings in all tables",
        ),
        (lambda e: SameLabelTable(table(e, id=[1, 2], label=[0, -2])), "larger; got -2"),
        (lambda e: SameLabelTable(table(e, id=[1, 2], label=[np.nan, -3.0])), "larger; got -3"),
        (lambda e: JaccardTable(max_item_degree=0), "max_item_degree of JaccardTable"),
        (lambda e: SameLabelTable(3), "must be a Parquet file or an Ibis table"),
    ],
)
def test_tables_that_cannot_be_used(engine: Engine, make: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        donors(make(engine), engine, table(engine, source=[1], target=[2]))
