"""Small graphs for tests of metrics."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from nodecopy.graph import Graph


def graph_of(*edges: tuple[int, int], n: int, directed: bool = False, labels: Any = None) -> Graph:
    source, target = [a for a, _ in edges], [b for _, b in edges]
    return Graph.from_edges(source, target, node_ids=np.arange(n), labels=labels, directed=directed)


def random_graph(n: int, n_edges: int, seed: int, *, directed: bool = False) -> Graph:
    draws = np.random.default_rng(seed)
    hubs = (n * draws.random((2, n_edges)) ** 2).astype(int)  # low numbers have high degrees
    labels = draws.integers(-1, 3, n)
    return Graph.from_edges(*hubs, node_ids=np.arange(n), labels=labels, directed=directed)


def star(n_leaves: int) -> Graph:
    return graph_of(*((0, i) for i in range(1, n_leaves + 1)), n=n_leaves + 1)


@st.composite
def graphs(draw: st.DrawFn, directed: bool = False) -> Graph:
    n = draw(st.integers(0, 12))
    node = st.integers(0, max(n - 1, 0))
    edges = draw(st.lists(st.tuples(node, node), max_size=40)) if n else []
    labels = draw(st.lists(st.integers(-1, 3), min_size=n, max_size=n))
    return graph_of(*edges, n=n, directed=directed, labels=np.array(labels, np.int64))
