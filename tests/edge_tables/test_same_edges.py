"""DuckDB and memory give the same edges and weights for the same seed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nodecopy import Graph, Interactions
from nodecopy.edge_tables.engines import DuckDB, Engine
from tests.edge_tables.twins import LAWS, Twins, in_order
from tests.strategies import TEXTS, graphs, interactions

pytest.importorskip("ibis")


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with DuckDB(memory="500MB", threads=1) as opened:
        yield opened


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    graphs(texts=TEXTS, labelled=False).map(in_order) | interactions().map(in_order),
    st.sampled_from(LAWS),
    st.sampled_from([0.0, 0.3, 1e-7, 1.0]),
    st.sampled_from(["maximum", "one-endpoint"]),
    st.integers(0, 2**40),
    st.integers(0, 3),
)
def test_same_edges(
    engine: Engine, data: Graph | Interactions, law: str, keep: float, rule: str, seed: int, sample: int
) -> None:
    twins = Twins(data, law, keep, rule, seed, sample)
    assert twins.in_tables(engine) == twins.in_memory()
