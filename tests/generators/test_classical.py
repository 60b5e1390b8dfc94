"""Classical models: the distributions of their samples."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from nodecopy import Graph, datasets
from nodecopy.errors import InputError
from nodecopy.generators import (
    BarabasiAlbert,
    BlockConfigurationModel,
    ChungLu,
    ConfigurationModel,
    ErdosRenyi,
)
from nodecopy.generators.base import EdgeListModel
from nodecopy.generators.classical import _draw_pairs
from tests.generators.frequencies import assert_frequencies, edge_frequencies
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


@settings(max_examples=60, deadline=None)
@given(graphs(max_nodes=12), st.integers(0, 3))
def test_the_configuration_model_keeps_every_degree(graph: Graph, n_swaps: int) -> None:
    for sample in ConfigurationModel(n_swaps).fit(graph).sample_many(2, rng=0):
        matrix = sample.adjacency.toarray()
        assert (matrix.sum(axis=1) == graph.degrees).all()
        assert (matrix.sum(axis=0) == np.bincount(graph.rows.indices, minlength=graph.n_nodes)).all()
        assert (matrix.diagonal() == (graph.adjacency.diagonal() > 0)).all()


def test_the_configuration_model_is_uniform() -> None:
    """The graphs on six nodes with two neighbours each: 60 hexagons and 10 pairs of triangles."""
    hexagon = Graph.from_edges(range(6), [1, 2, 3, 4, 5, 0])
    samples = ConfigurationModel(n_swaps=20).fit(hexagon).sample_many(2800, rng=0)
    counts = Counter(sample.rows.indices.tobytes() for sample in samples)
    assert len(counts) == 70
    assert chisquare(list(counts.values())).pvalue > 1e-4


def test_the_directed_configuration_model_is_uniform() -> None:
    """The graphs on four nodes with out- and in-degrees of one, without self-loops: nine derangements."""
    ring = Graph.from_edges(range(4), [1, 2, 3, 0], directed=True)
    samples = ConfigurationModel(n_swaps=20).fit(ring).sample_many(900, rng=0)
    counts = Counter(sample.rows.indices.tobytes() for sample in samples)
    assert len(counts) == 9
    assert chisquare(list(counts.values())).pvalue > 1e-4


def test_more_swaps_than_slots_of_the_hash_table() -> None:
    graph = Graph(np.random.default_rng(0).random((60, 60)) < 0.1)
    sample = ConfigurationModel(n_swaps=200).fit(graph).sample(rng=0)
    assert (sample.degrees == graph.degrees).all()
    assert sample != graph


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


def test_directed_edges_lead_from_new_to_old_nodes() -> None:
    """A directed sample has no cycles and about ten outgoing edges per node."""
    graph = Graph(np.random.default_rng(0).random((200, 200)) < 0.05, directed=True)
    sample = BarabasiAlbert().fit(graph).sample(rng=0)
    remaining = sample.adjacency
    while remaining.shape[0]:
        last = np.flatnonzero(remaining.sum(axis=0) == 0)  # nodes without incoming edges
        assert len(last), "a cycle"
        rest = np.setdiff1d(np.arange(remaining.shape[0]), last)
        remaining = remaining[rest][:, rest]
    assert np.median(sample.degrees) in (9, 10, 11)


@settings(max_examples=100, deadline=None)
@given(graphs(), st.sampled_from([ErdosRenyi(), ChungLu(), ConfigurationModel(), BarabasiAlbert()]))
def test_samples_of_arbitrary_graphs_are_valid(graph: Graph, model: EdgeListModel) -> None:
    for sample in model.fit(graph, rng=0).sample_many(2, rng=0):
        assert sample.replace(adjacency=graph.adjacency) == graph
        assert Graph(sample.adjacency, directed=graph.directed).rows == sample.rows


def test_complete_and_empty_graphs_are_reproduced() -> None:
    for directed, model in itertools.product([False, True], [ErdosRenyi(), ConfigurationModel()]):
        full = Graph(1 - np.eye(7), directed=directed)
        assert model.fit(full).sample(rng=0) == full
        empty = Graph(np.zeros((7, 7)), directed=directed)
        assert model.fit(empty).sample(rng=0) == empty


def test_the_number_of_swaps_is_that_of_the_fit() -> None:
    model = ConfigurationModel(n_swaps=0).fit(datasets.load("karate"))
    model.set_params(n_swaps=10)
    assert model.sample(rng=0) == model.graph_
    assert model.fit(model.graph_).sample(rng=0) != model.graph_


def test_invalid_settings_are_named() -> None:
    with pytest.raises(InputError, match=r"n_swaps of ConfigurationModel .* got -1"):
        ConfigurationModel(-1).fit(datasets.load("karate"))


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
