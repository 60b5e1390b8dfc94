from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from nodecopy.edge_tables.engines import (
    DuckDB,
    Engine,
    check_ids,
    check_unique_ids,
    check_weights,
    select_columns,
)
from nodecopy.errors import InputError
from nodecopy.io.columns import EDGE_COLUMNS
from tests.edge_tables.twins import table

pytest.importorskip("ibis")


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with DuckDB(memory="500MB", threads=1) as opened:
        yield opened


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({"source": [1], "target": [2]}, {"source": 1, "target": 2}),
        ({"To": [2], "FROM": [1], "w": [0.5]}, {"source": 1, "target": 2, "weight": 0.5}),
        ({"a": [1], "b": [2], "c": [0.5]}, {"source": 1, "target": 2, "weight": 0.5}),
        ({"a": [1], "b": [2], "c": ["x"]}, {"source": 1, "target": 2}),
        ({"source": [1], "target": [2], "year": [1999]}, {"source": 1, "target": 2}),
    ],
)
def test_columns_are_found_by_name_or_position(
    engine: Engine, columns: dict[str, Any], expected: dict[str, Any]
) -> None:
    selected = select_columns(table(engine, **columns), EDGE_COLUMNS, "edges", n_required=2)
    assert engine.row(selected) == expected


def test_columns_that_are_found_by_position_are_named(
    engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "nodecopy")
    select_columns(table(engine, source=[1], target=[2], weight=[0.5]), EDGE_COLUMNS, "edges", n_required=2)
    assert not caplog.messages
    select_columns(table(engine, source=[1], b=[2], year=[1999]), EDGE_COLUMNS, "edges", n_required=2)
    select_columns(table(engine, a=[1], b=[2], c=[0.5]), EDGE_COLUMNS, "edges", n_required=2)
    named = [message.partition(" of each row")[0] for message in caplog.messages]
    assert named[-1] == "edges: a is the source and b is the target and c is the weight"
    assert named[0].startswith("edges: b is the target")


def test_a_missing_column_is_named(engine: Engine) -> None:
    with pytest.raises(InputError, match="edges must have a column for target; it has source"):
        select_columns(table(engine, source=[1]), EDGE_COLUMNS, "edges", n_required=2)


def test_wrong_ids_are_counted(engine: Engine) -> None:
    check_ids(table(engine, id=["a", "b"]), ["id"], "nodes", engine)
    with pytest.raises(InputError, match="id of nodes must hold integers or strings; it holds float64"):
        check_ids(table(engine, id=[0.5]), ["id"], "nodes", engine)
    with pytest.raises(InputError, match="id of nodes must not be missing; it is in 2 rows"):
        check_ids(table(engine, id=["a", None, None]), ["id"], "nodes", engine)


def test_repeated_ids_are_an_error(engine: Engine) -> None:
    check_unique_ids(table(engine, id=[1, 2]), "nodes", engine)
    with pytest.raises(InputError, match="nodes must list every id once; got 3 rows for 2 ids"):
        check_unique_ids(table(engine, id=[1, 2, 1]), "nodes", engine)


def test_wrong_weights_are_counted(engine: Engine) -> None:
    check_weights(table(engine, id=[1]), "edges", engine)
    check_weights(table(engine, weight=[0.0, 2.5]), "edges", engine)
    with pytest.raises(InputError, match="weight of edges must hold numbers; it holds string"):
        check_weights(table(engine, weight=["a"]), "edges", engine)
    with pytest.raises(InputError, match="weight of edges must be finite and not negative; 3 rows are not"):
        check_weights(table(engine, weight=[1.0, -1.0, np.inf, np.nan]), "edges", engine)
