"""Repeated edges, edges in both directions and self-loops."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nodecopy import Graph, read_graph
from nodecopy.errors import InputError
from nodecopy.io.edge_lists import build_graph


def build(edges: list[tuple[int, int, float]], **options: Any) -> Graph:
    first, second, weights = (np.array(column) for column in zip(*edges, strict=True))
    settings: dict[str, Any] = {"directed": False, "duplicates": "max", "file": "f.csv"} | options
    n = int(max(first.max(), second.max())) + 1
    return build_graph(first, second, weights.astype(float), np.arange(n), **settings)


def weights(graph: Graph) -> dict[tuple[int, int], float]:
    source, target, values = graph.edges()
    numbers = np.ones(len(source)) if values is None else values
    return {(int(s), int(t)): float(w) for s, t, w in zip(source, target, numbers, strict=True)}


@pytest.mark.parametrize(
    ("edges", "largest", "total"),
    [
        ([(0, 1, 2), (0, 1, 3), (1, 2, 1)], 3, 5),
        ([(0, 1, 2), (1, 0, 3), (1, 2, 1)], 3, 5),
        ([(0, 1, 2), (1, 0, 2), (1, 2, 1)], 2, 4),
        ([(0, 1, 2), (1, 0, 2), (1, 2, 1), (2, 1, 1)], 2, 2),
        ([(0, 1, 1), (1, 0, 2), (0, 1, 1), (1, 2, 1), (2, 1, 1)], 2, 2),
        ([(0, 1, 2), (1, 0, 0), (1, 2, 1)], 2, 2),
        ([(0, 1, 2), (0, 1, 3), (1, 1, 9), (1, 2, 1)], 3, 5),
    ],
    ids=["repeated", "both directions", "equal weights", "symmetric", "symmetric sums", "zero", "loop"],
)
def test_undirected_duplicates(edges: list[tuple[int, int, float]], largest: float, total: float) -> None:
    """A symmetric list, with each edge in both directions, is not doubled by "sum"."""
    assert weights(build(edges))[0, 1] == largest
    assert weights(build(edges, duplicates="sum"))[0, 1] == total
    assert weights(build(edges, duplicates="sum"))[1, 2] == 1


def test_directed_duplicates() -> None:
    edges = [(0, 1, 2.0), (1, 0, 3.0), (0, 1, 4.0)]
    assert weights(build(edges, directed=True)) == {(0, 1): 4, (1, 0): 3}
    assert weights(build(edges, directed=True, duplicates="sum")) == {(0, 1): 6, (1, 0): 3}


@pytest.mark.parametrize(
    ("edges", "directed", "row"),
    [
        ([(0, 1, 1), (1, 2, 1), (0, 1, 1)], True, 2),
        ([(0, 1, 1), (1, 0, 1), (1, 2, 1)], False, 1),
        ([(0, 1, 1), (1, 0, 1), (0, 1, 1)], False, 2),
    ],
)
def test_duplicates_as_errors(edges: list[tuple[int, int, float]], directed: bool, row: int) -> None:
    with pytest.raises(
        InputError,
        match=f"row {row} repeats the edge from . to .\\. Merge them with duplicates='max' or 'sum'",
    ):
        build(edges, directed=directed, duplicates="error", row_name="row {}".format)


def test_lists_without_duplicates_are_no_error() -> None:
    symmetric = [(0, 1, 2.0), (1, 0, 2.0), (1, 2, 1.0), (2, 1, 1.0)]
    assert weights(build(symmetric, duplicates="error")) == {(0, 1): 2, (1, 2): 1}
    assert weights(build([(0, 1, 1.0), (1, 0, 1.0)], directed=True, duplicates="error")) == {
        (0, 1): 1,
        (1, 0): 1,
    }


@pytest.mark.parametrize(
    ("edges", "options", "messages"),
    [
        ([(0, 1, 1), (1, 2, 1)], {}, []),
        ([(0, 1, 1), (1, 0, 1)], {}, []),
        (
            [(0, 1, 1), (0, 1, 1), (0, 1, 1), (1, 0, 2), (1, 2, 1)],
            {},
            [
                "f.csv: repeated edges: 2, edges in both directions: 1; the largest weight counts. "
                "duplicates='sum' adds the weights."
            ],
        ),
        (
            [(0, 1, 1), (1, 0, 1), (1, 2, 1)],
            {"duplicates": "sum"},
            [
                "f.csv: edges in both directions: 1; their weights are added. duplicates='max' takes the "
                "largest."
            ],
        ),
        (
            [(0, 0, 1), (0, 1, 1)],
            {},
            ["f.csv: self-loops: 1; they are left out, as the graph is undirected."],
        ),
        ([(0, 0, 1)], {"directed": True}, ["f.csv: self-loops: 1; they are kept, as the graph is directed."]),
    ],
)
def test_counts_are_logged(
    edges: list[tuple[int, int, float]],
    options: dict[str, Any],
    messages: list[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.INFO, "nodecopy"):
        build(edges, **options)
    assert caplog.messages == messages


def test_edges_of_weight_zero_are_logged(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    """Before, they were left out without a word."""
    (tmp_path / "edges.csv").write_text("source,target,weight\nann,bob,0\nbob,cleo,2\n")
    with caplog.at_level(logging.INFO, "nodecopy"):
        assert read_graph(tmp_path / "edges.csv").n_edges == 1
    assert caplog.messages == ["edges.csv: edges of weight 0: 1; they are left out."]
