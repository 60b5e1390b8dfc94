"""Signals against their definitions with dense matrices."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from nodecopy import Graph, Interactions
from nodecopy.features.neighbours import MAX_LEAF, approximate_nearest
from nodecopy.links.signals import LinkSignals, NodeFacts, ObservedLinks, name_signals, split_by_size


def random_graph(*, directed: bool = False) -> Graph:
    draws = np.random.default_rng(0)
    dense = draws.random((30, 30)) < 0.15
    np.fill_diagonal(dense, False)
    x = draws.random((30, 5)) < 0.4
    return Graph(dense, x, np.arange(30) % 3 - 1, directed=directed)


def compute(data: Any, pairs: Any, kept: Any = slice(None)) -> tuple[dict[str, Any], LinkSignals]:
    links, facts = ObservedLinks.from_data(data), NodeFacts(data)
    signals = LinkSignals(links, kept, facts, 7)
    columns = signals.compute(*np.asarray(pairs).T).T
    names = [name for name, _ in name_signals(links, facts, 7)]
    return dict(zip(names, columns, strict=True)), signals


def test_signals_of_an_undirected_graph() -> None:
    graph = random_graph()
    pairs = np.argwhere(np.triu(np.ones((30, 30)), 1))
    values, signals = compute(graph, pairs)
    i, j = pairs.T
    A, P = graph.adjacency.toarray(), signals.P.toarray()
    assert np.allclose(P.sum(axis=1), 1)
    assert not P.diagonal().any()
    W = A / np.sqrt(np.outer(A.sum(1), A.sum(0)))
    expected = {
        "copied by one endpoint": P @ A + (P @ A).T,
        "copied by both endpoints": P @ A @ P.T,
        "walks of length 2": W @ W,
        "walks of length 3": W @ W @ W,
        "smaller degree": np.minimum.outer(A.sum(1), A.sum(1)),
    }
    for name, matrix in expected.items():
        assert np.allclose(values[name], matrix[i, j], atol=1e-6), name


def test_signals_of_a_directed_graph() -> None:
    graph = random_graph(directed=True)
    pairs = np.argwhere(~np.eye(30, dtype=bool))
    values, signals = compute(graph, pairs)
    i, j = pairs.T
    A, P = graph.adjacency.toarray(), signals.P.toarray()
    out, into = A.sum(axis=1), A.sum(axis=0)
    W = A / np.sqrt(np.maximum(np.outer(out, into), 1e-9))
    expected = {
        "reciprocal edge": A.T,
        "copied by the source": P @ A,
        "copied by the target": A @ P.T,
        "directed walks of length 2": W @ W,
        "shared targets and sources": W @ W.T @ W,
        "out-degree of the source": np.tile(out[:, None], 30),
        "in-degree of the target": np.tile(into, (30, 1)),
    }
    for name, matrix in expected.items():
        assert np.allclose(values[name], matrix[i, j], atol=1e-5), name


def test_held_out_edges_leave_no_trace() -> None:
    """Signals are the same if the held-out edges are anywhere else."""
    graph = random_graph()
    links = ObservedLinks.from_data(graph)
    facts, kept = NodeFacts(graph), np.arange(len(links.first)) % 4 > 0
    moved = replace(links, second=np.where(kept, links.second, (links.second + 7) % 30))
    values = [LinkSignals(part, kept, facts, 7).compute(links.first, links.second) for part in (links, moved)]
    assert np.array_equal(values[0], values[1])


@pytest.mark.parametrize(
    "data", [random_graph(), random_graph(directed=True), Interactions(np.eye(4, 6) + 1 > 1)]
)
def test_absent_pairs_are_in_the_population_and_no_edges(data: Any) -> None:
    links = ObservedLinks.from_data(data)
    first, second = links.draw_absent(3000, np.random.default_rng(0))
    assert links.absent(first, second).all()
    n_distinct = len(np.unique(links.keys(first, second)))
    assert n_distinct <= links.n_pairs - len(links.first)
    assert n_distinct > 0.95 * min(links.n_pairs - len(links.first), 3000 * 0.6)
    assert (links.find(links.first, links.second) == np.arange(len(links.first))).all()


def test_blocks_cover_all_rows_in_order() -> None:
    blocks = list(split_by_size(np.array([3, 9, 1, 1, 20, 2]), limit=10))
    assert np.concatenate([np.arange(6)[block] for block in blocks]).tolist() == list(range(6))
    assert len(blocks) > 2
    assert list(split_by_size(np.zeros(0))) == []


def test_the_approximate_search_finds_most_of_the_nearest_rows() -> None:
    draws = np.random.default_rng(0)
    centres = draws.normal(size=(100, 16))
    rows = centres[draws.integers(100, size=5 * MAX_LEAF)] + 0.5 * draws.normal(size=(5 * MAX_LEAF, 16))
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    found, cosines = approximate_nearest(rows, 10)
    assert np.allclose(np.einsum("nd,nkd->nk", rows, rows[found]), cosines)
    everything = rows @ rows.T
    np.fill_diagonal(everything, -1)
    exact = np.argsort(-everything, axis=1)[:, :10]
    assert np.mean([len(set(a) & set(b)) / 10 for a, b in zip(found, exact, strict=True)]) > 0.8
