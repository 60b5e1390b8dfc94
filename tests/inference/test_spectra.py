"""Eigenvalues and PageRank by compiled code against those of single vectors."""

from __future__ import annotations

import numpy as np
import pytest

from nodecopy import Graph, datasets
from nodecopy.inference import kernels as spectral_kernels
from nodecopy.inference import statistics as spectra
from nodecopy.inference.statistics import largest_eigenvalue, pagerank
from nodecopy.metrics.counting_kernels import sort_by_degree
from tests.inference.known_graphs import draw_graph, two_blocks

CLUB = datasets.load("karate")
LONELY = Graph.from_edges([0, 1, 2], [1, 2, 3], node_ids=range(6))
STAR = Graph.from_edges([0] * 9, range(1, 10))
CYCLE = Graph.from_edges(range(8), [*range(1, 8), 0])
GRAPHS = [CLUB, LONELY, STAR, CYCLE, draw_graph(two_blocks(300), np.random.default_rng(0))]


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spectra, "MIN_COMPILED_ENTRIES", 1)


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("graph", GRAPHS)
def test_compiled_eigenvalue_is_that_of_the_matrix(graph: Graph) -> None:
    exact = np.linalg.eigvalsh(graph.adjacency.toarray().astype(float)).max()
    assert largest_eigenvalue(graph) == pytest.approx(exact, rel=1e-8)


@pytest.mark.parametrize("graph", GRAPHS)
def test_compiled_pagerank_solves_the_same_equation(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = pagerank(graph)
    monkeypatch.setattr(spectra, "MIN_COMPILED_ENTRIES", 1)
    rank = pagerank(graph)
    assert np.abs(rank - expected).sum() < 1e-7
    assert rank.sum() == pytest.approx(1)


@pytest.mark.parametrize("tolerance", [1e-4, 1e-8, 1e-13])
def test_residual_of_pagerank_is_small_although_steps_are_in_single_precision(tolerance: float) -> None:
    graph = GRAPHS[-1]
    A, degrees = graph.adjacency.toarray().astype(float), graph.degrees.astype(float)
    assert degrees.min() > 0
    *rows, number = sort_by_degree(graph.rows.indptr, graph.rows.indices)
    rank = spectral_kernels.pagerank(*rows, 0.85, tolerance, 200)[number]
    solution = rank * graph.n_nodes / (1 - 0.85)
    residual = (1 - solution + 0.85 * A @ (solution / degrees)) / np.sqrt(degrees)
    assert np.linalg.norm(residual) <= 1.1 * tolerance * np.linalg.norm(1 / np.sqrt(degrees))


@pytest.mark.usefixtures("compiled")
def test_directed_graphs_are_not_taken_for_undirected_ones() -> None:
    graph = Graph.from_edges([0, 1], [1, 2], directed=True)
    assert pagerank(graph)[2] > pagerank(graph)[0]
