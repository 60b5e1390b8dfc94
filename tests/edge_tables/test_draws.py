"""Random draws in DuckDB against their NumPy twins."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nodecopy._core import random
from nodecopy.edge_tables.donors import exact_literal, flip_coins, threefry, uniforms
from nodecopy.edge_tables.engines import DuckDB, Engine
from tests.edge_tables.twins import table

ibis = pytest.importorskip("ibis")
WORDS = st.integers(0, 2**32 - 1)
few = settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with DuckDB(memory="500MB", threads=1) as opened:
        yield opened


@few
@given(st.tuples(WORDS, WORDS), st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=5))
def test_threefry_gives_the_bits_of_numpy(
    engine: Engine, key: tuple[int, int], counters: list[tuple[int, int]]
) -> None:
    first, second = np.array(counters).T
    given_counters = table(engine, row=np.arange(len(first)), first=first, second=second)
    found = threefry(given_counters, key, given_counters.first, given_counters.second).order_by("row")
    x, y = random.threefry(key, first, second)
    assert [(row["x"], row["y"]) for row in engine.rows(found)] == list(
        zip(x.tolist(), y.tolist(), strict=True)
    )


@few
@given(st.tuples(WORDS, WORDS))
def test_uniforms_and_coins_are_those_of_numpy(engine: Engine, key: tuple[int, int]) -> None:
    nodes = table(engine, number=np.arange(50))
    rows = engine.rows(uniforms(nodes, key).order_by("number"))
    assert [row["u"] for row in rows] == random.node_uniforms(key, 50).tolist()
    first, second = np.arange(50), np.arange(50)[::-1] * 7
    pairs = table(engine, row=first, i=first, j=second)
    coins = engine.rows(flip_coins(pairs, key, pairs.i, pairs.j).order_by("row"))
    assert [row["to_larger"] for row in coins] == random.pair_coins(key, first, second).tolist()


@few
@given(st.floats(0, 1, allow_subnormal=False) | st.sampled_from([0.1, 1e-300, 2.0**53, 1 / 3]))
def test_literals_are_exact(engine: Engine, value: float) -> None:
    row = table(engine, row=[0]).select(value=exact_literal(value))
    assert engine.row(row)["value"] == value
