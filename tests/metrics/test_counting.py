"""Counts by SciPy and by compiled code, which test each other; a search over triples tests both."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings

from nodecopy.graph import Graph
from nodecopy.metrics import counting, counting_kernels
from tests.metrics.example_graphs import graph_of, graphs


def triangles_by_search(graph: Graph) -> list[int]:
    linked = graph.adjacency.toarray() > 0
    counts = [0] * graph.n_nodes
    for trio in combinations(range(graph.n_nodes), 3):
        if all(linked[a, b] for a, b in combinations(trio, 2)):
            for node in trio:
                counts[node] += 1
    return counts


@settings(deadline=None, max_examples=150)
@given(graph=graphs(), other=graphs())
def test_compiled_and_plain_counts_are_equal(graph: Graph, other: Graph) -> None:
    rows = graph.rows
    expected = triangles_by_search(graph)
    for module in (counting, counting_kernels):
        assert module.triangle_counts(rows).tolist() == expected
        assert module.count_triangles(rows) == sum(expected) // 3
    assert counting.component_sizes(rows) == counting_kernels.component_sizes(rows)
    assert counting.degree_products(rows) == counting_kernels.degree_products(rows)
    if graph.n_nodes == other.n_nodes:
        assert counting.common_entries(rows, other.rows) == counting_kernels.common_entries(rows, other.rows)


@settings(deadline=None, max_examples=150)
@given(graph=graphs(directed=True))
def test_compiled_and_plain_counts_of_directed_rows_are_equal(graph: Graph) -> None:
    assert graph.labels is not None
    for plain, compiled in zip(
        counting.label_counts(graph.rows, graph.labels, 4),
        counting_kernels.label_counts(graph.rows, graph.labels, 4),
        strict=True,
    ):
        assert plain.tolist() == compiled.tolist()
    sources = np.arange(graph.n_nodes)[::2]
    expected = counting_kernels.distances(graph.rows, sources)
    assert counting.distances(graph.rows, sources) == expected
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counting, "MAX_LEVELS", 1)  # so that Dijkstra's algorithm takes over
        assert counting.distances(graph.rows, sources) == expected


def test_distances_along_a_path_longer_than_the_levels() -> None:
    n = counting.MAX_LEVELS + 50
    path = graph_of(*zip(range(n - 1), range(1, n), strict=True), n=n)
    expected = 2 * sum((n - d) * d for d in range(1, n)), n * (n - 1)
    for module in (counting, counting_kernels):
        assert module.distances(path.rows, np.arange(n)) == expected
