"""Classical models and the random dot product graph: the distributions of their samples."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from nodecopy import Graph, datasets
from nodecopy.generators import (
    MMSBM,
    SBM,
    BarabasiAlbert,
    BlockConfigurationModel,
    ChungLu,
    ConfigurationModel,
    DegreeCorrectedSBM,
    ErdosRenyi,
    RandomDotProduct,
)
from nodecopy.generators.base import EdgeListModel, list_edges
from nodecopy.generators.classical import IndependentEdges, _draw_pairs
from nodecopy.generators.kernels import swap_edges
from tests.generators.helpers import assert_frequencies, edge_frequencies
from tests.strategies import graphs


@pytest.mark.parametrize("directed", [False, True])
def test_erdos_renyi_has_one_probability_for_all_pairs(directed: bool) -> None:
    graph = Graph([[0, 1, 1, 0], [0, 0, 1, 0], [0, 0, 0, 0], [0, 0, 0, 0]], directed=directed)
    density = 3 / 12 if directed else 3 / 6
    off_diagonal = ~np.eye(4, dtype=bool)
    observed = edge_frequencies(ErdosRenyi().fit(graph))
    selected = off_diagonal if directed else np.triu(off_diagonal)
    assert_frequencies(observed * selected, density * selected)


def test_chung_lu_probabilities_are_products_of_degrees() -> None:
    karate = datasets.load("karate")
    degrees = karate.degrees.astype(float)
    expected = np.triu(np.minimum(np.outer(degrees, degrees) / degrees.sum(), 1), 1)
    assert (expected == 1).any()  # 16 x 17 is more than 156
    assert_frequencies(np.triu(edge_frequencies(ChungLu().fit(karate))), expected)


def test_chung_lu_uses_out_and_in_degrees_of_directed_graphs() -> None:
    graph = Graph(np.random.default_rng(0).random((12, 12)) < 0.3, directed=True)
    adjacency = graph.adjacency.toarray()
    np.fill_diagonal(adjacency, 0)
    out_degrees, in_degrees = adjacency.sum(axis=1), adjacency.sum(axis=0)
    expected = np.minimum(np.outer(out_degrees, in_degrees) / adjacency.sum(), 1)
    np.fill_diagonal(expected, 0)
    assert_frequencies(edge_frequencies(ChungLu().fit(graph)), expected)


@settings(max_examples=60)
@given(graphs(max_nodes=12), st.integers(0, 3))
def test_the_configuration_model_keeps_every_degree(graph: Graph, n_swaps: int) -> None:
    for sample in ConfigurationModel(n_swaps).fit(graph).sample_many(2, rng=0):
        matrix = sample.adjacency.toarray()
        assert (matrix.sum(axis=1) == graph.degrees).all()
        assert (matrix.sum(axis=0) == np.bincount(graph.rows.indices, minlength=graph.n_nodes)).all()
        assert (matrix.diagonal() == (graph.adjacency.diagonal() > 0)).all()


def test_preferential_attachment_of_four_nodes() -> None:
    """With one edge per arrival, the third node makes a path of three nodes.

    The fourth attaches to the middle of it with probability 1/2, which makes a star.
    """
    tree = Graph.from_edges([0, 1, 2], [1, 2, 3])
    model = BarabasiAlbert().fit(tree)
    model.edges_per_node_ = 1.0
    stars = [sample.degrees.max() == 3 for sample in model.sample_many(1500, rng=0)]
    assert np.mean(stars) == pytest.approx(0.5, abs=0.06)


def test_preferential_attachment_has_the_right_size_and_a_heavy_tail() -> None:
    even = Graph(np.random.default_rng(0).random((1000, 1000)) < 0.005)
    samples = list(BarabasiAlbert().fit(even).sample_many(5, rng=0))
    assert np.mean([sample.n_edges for sample in samples]) == pytest.approx(even.n_edges, rel=0.02)
    assert min(sample.degrees.max() for sample in samples) > 4 * even.degrees.max()
    assert min(sample.degrees.min() for sample in samples) >= 1


@pytest.mark.parametrize("directed", [False, True])
def test_the_configuration_model_within_blocks_keeps_the_edges_of_nodes_to_blocks(directed: bool) -> None:
    edges = np.random.default_rng(0).random((30, 30)) < 0.3
    np.fill_diagonal(edges, False)
    graph = Graph(edges if directed else np.triu(edges), labels=np.arange(30) % 3, directed=directed)
    member = np.eye(3)[np.arange(30) % 3]
    observed = graph.adjacency.toarray()
    for sample in BlockConfigurationModel().fit(graph).sample_many(3, rng=0):
        A = sample.adjacency.toarray()
        assert np.array_equal(A @ member, observed @ member)
        assert np.array_equal(A.T @ member, observed.T @ member)
        assert sample != graph


def test_the_configuration_model_within_blocks_is_uniform() -> None:
    """Two edges between two blocks of two nodes: both matchings, 400 times; five standard errors."""
    graph = Graph.from_edges([0, 1], [2, 3], labels=[0, 0, 1, 1])
    samples = BlockConfigurationModel().fit(graph).sample_many(400, rng=0)
    assert np.mean([sample == graph for sample in samples]) == pytest.approx(0.5, abs=0.125)


@pytest.mark.parametrize("directed", [False, True])
def test_erdos_renyi_with_a_given_number_of_edges_is_uniform(directed: bool) -> None:
    """Every pair of five nodes in 2,000 samples with four edges; five standard errors."""
    graph = Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 4], directed=directed)
    samples = list(ErdosRenyi(fixed_edges=True).fit(graph).sample_many(2_000, rng=0))
    assert {sample.n_edges for sample in samples} == {4}
    mean = sum(sample.adjacency.toarray() for sample in samples) / 2_000
    expected = (0.2 if directed else 0.4) * (1 - np.eye(5))
    assert mean == pytest.approx(expected, abs=5 * 0.5 / np.sqrt(2_000))


def test_pairs_of_large_graphs_are_pairs() -> None:
    first, second = _draw_pairs(3_000_000, 1_000, False, np.random.default_rng(0))
    assert (first < second).all()
    assert first.min() >= 0
    assert second.max() < 3_000_000
    assert second.max() > 2_900_000


def swap_plainly(edges: list[tuple[int, int]], directed: bool, left: Any, right: Any, flips: Any) -> None:
    for i, j, flip in zip(left.tolist(), right.tolist(), flips.tolist(), strict=True):
        (a, b), (c, d) = edges[i], edges[j]
        if not directed and flip:
            c, d = d, c
        new = [(a, d), (c, b)] if directed else [(min(a, d), max(a, d)), (min(c, b), max(c, b))]
        if len({a, b, c, d}) == 4 and not set(new) & set(edges):
            edges[i], edges[j] = new


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("n_swaps", [1, 40, 2000])
def test_swaps_are_those_of_the_plain_implementation(directed: bool, n_swaps: int) -> None:
    """2000 swaps of about 50 edges rebuild the hash table many times."""
    rng = np.random.default_rng(n_swaps)
    first, second = list_edges(Graph(rng.random((15, 15)) < 0.25, directed=directed))
    left, right = rng.integers(0, len(first), (2, n_swaps))
    flips = rng.random(n_swaps) < 0.5
    expected = list(zip(first.tolist(), second.tolist(), strict=True))
    observed = list(expected)
    swap_plainly(expected, directed, left, right, flips)
    table = np.empty(1 << (4 * len(first)).bit_length(), np.int64)
    swap_edges(first, second, 15, directed, left, right, flips, table)
    assert list(zip(first.tolist(), second.tolist(), strict=True)) == expected
    assert n_swaps == 1 or expected != observed


def draw_blocks(n_nodes: int, directed: bool = False) -> Graph:
    block = np.arange(n_nodes) % 2
    chance = np.where(block[:, None] == block, 0.3, 0.05)
    edges = np.random.default_rng(0).random((n_nodes, n_nodes)) < chance
    np.fill_diagonal(edges, False)
    return Graph(edges if directed else np.triu(edges), directed=directed)


@pytest.mark.parametrize("n_nodes", [25, 200])  # all singular values, and the leading ones
@pytest.mark.parametrize("directed", [False, True])
def test_probabilities_are_the_best_approximation_of_low_rank(n_nodes: int, directed: bool) -> None:
    graph = draw_blocks(n_nodes, directed)
    model = RandomDotProduct(3).fit(graph)
    u, s, vt = np.linalg.svd(graph.adjacency.toarray().astype(float))
    assert np.allclose(model.left_ @ model.right_.T, (u[:, :3] * s[:3]) @ vt[:3], atol=1e-6)


@pytest.mark.parametrize("directed", [False, True])
def test_edges_occur_with_their_probabilities(directed: bool) -> None:
    """The number of edges of 200 samples; five standard errors of its mean."""
    graph = draw_blocks(60, directed)
    model = RandomDotProduct(2).fit(graph)
    p = np.clip(model.left_ @ model.right_.T, 0, 1)
    p = p[~np.eye(60, dtype=bool)] if directed else p[np.triu_indices(60, 1)]
    mean = np.mean([sample.n_edges for sample in model.sample_many(200, rng=0)])
    assert mean == pytest.approx(p.sum(), abs=5 * np.sqrt((p * (1 - p)).sum() / 200))


@pytest.mark.parametrize("directed", [False, True])
def test_edges_are_independent_with_their_probabilities(directed: bool) -> None:
    """Means and pairwise products over 20,000 samples; five standard errors."""
    p = np.array([[0.9, 0.7, 0.2], [0.5, 0.9, 1.0], [0.0, 0.3, 0.9]])
    edges, rng, n = IndependentEdges(p, directed), np.random.default_rng(0), 20_000
    samples = np.zeros((n, 3, 3))
    for sample in samples:
        sample[edges.draw(rng)] = 1
    expected = p * (1 - np.eye(3)) if directed else np.triu(p, 1)
    assert samples.mean(axis=0) == pytest.approx(expected, abs=5 * 0.5 / np.sqrt(n))
    covariance = np.cov(samples.reshape(n, 9).T)
    assert covariance == pytest.approx(np.diag(np.diag(covariance)), abs=5 * 0.25 / np.sqrt(n))


@pytest.mark.parametrize(
    ("graph", "n_graphs"),
    [
        (Graph.from_edges(range(6), [1, 2, 3, 4, 5, 0]), 70),  # 60 hexagons and 10 pairs of triangles
        (Graph.from_edges(range(4), [1, 2, 3, 0], directed=True), 9),  # derangements
    ],
    ids=["undirected", "directed"],
)
def test_the_configuration_model_is_uniform(graph: Graph, n_graphs: int) -> None:
    samples = ConfigurationModel(n_swaps=20).fit(graph).sample_many(40 * n_graphs, rng=0)
    counts = Counter(sample.rows.indices.tobytes() for sample in samples)
    assert len(counts) == n_graphs
    assert chisquare(list(counts.values())).pvalue > 1e-4


MODELS = [
    *(ErdosRenyi(), ChungLu(), ConfigurationModel(), BarabasiAlbert(), SBM(), DegreeCorrectedSBM()),
    *(MMSBM(n_steps=2), MMSBM(n_steps=2, delta=0.5), MMSBM(n_steps=2, delta=0.0)),
]


@settings(max_examples=150)
@given(graphs(), st.sampled_from(MODELS))
def test_samples_of_arbitrary_graphs_are_valid(graph: Graph, model: EdgeListModel) -> None:
    """With and without labels, edges, nodes, isolated nodes, self-loops, weights and directions."""
    for sample in model.fit(graph, rng=0).sample_many(2, rng=0):
        assert sample.replace(adjacency=graph.adjacency) == graph
        assert Graph(sample.adjacency, directed=graph.directed).rows == sample.rows
