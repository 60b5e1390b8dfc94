"""Classical models: the laws they promise."""

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
from nodecopy.generators import BarabasiAlbert, ChungLu, ConfigurationModel, ErdosRenyi
from nodecopy.generators.base import PairModel
from tests.generators.test_sbm import assert_close, frequencies
from tests.strategies import graphs


@pytest.mark.parametrize("directed", [False, True])
def test_erdos_renyi_links_all_pairs_alike(directed: bool) -> None:
    graph = Graph([[0, 1, 1, 0], [0, 0, 1, 0], [0, 0, 0, 0], [0, 0, 0, 0]], directed=directed)
    density = 3 / 12 if directed else 3 / 6
    off_diagonal = ~np.eye(4, dtype=bool)
    found = frequencies(ErdosRenyi().fit(graph))
    kept = off_diagonal if directed else np.triu(off_diagonal)
    assert_close(found * kept, density * kept)


def test_chung_lu_links_pairs_by_the_product_of_their_degrees() -> None:
    club = datasets.load("karate")
    degrees = club.degrees.astype(float)
    expected = np.triu(np.minimum(np.outer(degrees, degrees) / degrees.sum(), 1), 1)
    assert (expected == 1).any()  # 16 x 17 is more than 156
    assert_close(np.triu(frequencies(ChungLu().fit(club))), expected)


def test_chung_lu_of_directed_graphs_keeps_both_degrees_apart() -> None:
    graph = Graph(np.random.default_rng(0).random((12, 12)) < 0.3, directed=True)
    adjacency = graph.adjacency.toarray()
    np.fill_diagonal(adjacency, 0)
    leaving, entering = adjacency.sum(axis=1), adjacency.sum(axis=0)
    expected = np.minimum(np.outer(leaving, entering) / adjacency.sum(), 1)
    np.fill_diagonal(expected, 0)
    assert_close(frequencies(ChungLu().fit(graph)), expected)


@settings(max_examples=60, deadline=None)
@given(graphs(max_nodes=12), st.integers(0, 3))
def test_the_configuration_model_keeps_every_degree(graph: Graph, swaps: int) -> None:
    for sample in ConfigurationModel(swaps).fit(graph).sample_many(2, rng=0):
        pattern = sample.adjacency.toarray()
        assert (pattern.sum(axis=1) == graph.degrees).all()
        assert (pattern.sum(axis=0) == np.bincount(graph.rows.indices, minlength=graph.n_nodes)).all()
        assert (pattern.diagonal() == (graph.adjacency.diagonal() > 0)).all()


def test_the_configuration_model_draws_all_graphs_alike() -> None:
    """The graphs on six nodes with two neighbours each: 60 hexagons and 10 pairs of triangles."""
    hexagon = Graph.from_edges(range(6), [1, 2, 3, 4, 5, 0])
    samples = ConfigurationModel(swaps=20).fit(hexagon).sample_many(2800, rng=0)
    counts = Counter(sample.rows.indices.tobytes() for sample in samples)
    assert len(counts) == 70
    assert chisquare(list(counts.values())).pvalue > 1e-4


def test_directed_swaps_reach_all_graphs_alike() -> None:
    """Out- and in-degrees one on four nodes, no loops: the nine permutations that move every node."""
    ring = Graph.from_edges(range(4), [1, 2, 3, 0], directed=True)
    samples = ConfigurationModel(swaps=20).fit(ring).sample_many(900, rng=0)
    counts = Counter(sample.rows.indices.tobytes() for sample in samples)
    assert len(counts) == 9
    assert chisquare(list(counts.values())).pvalue > 1e-4


def test_long_chains_of_swaps_fill_no_table() -> None:
    """More swaps than the table has places, with the same degrees in the end."""
    graph = Graph(np.random.default_rng(0).random((60, 60)) < 0.1)
    sample = ConfigurationModel(swaps=200).fit(graph).sample(rng=0)
    assert (sample.degrees == graph.degrees).all()
    assert sample != graph


def test_who_is_richer_gets_more() -> None:
    """Of four nodes with one edge each on arrival, the law of the largest degree, by hand.

    The third node makes a path. The fourth takes its middle with probability 1/2, which makes a star.
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


def test_new_nodes_cite_old_ones() -> None:
    """A directed sample has no cycles and, with ten edges per node, nearly as many out of each."""
    graph = Graph(np.random.default_rng(0).random((200, 200)) < 0.05, directed=True)
    sample = BarabasiAlbert().fit(graph).sample(rng=0)
    left = sample.adjacency
    while left.shape[0]:
        last = np.flatnonzero(left.sum(axis=0) == 0)  # nobody cites them
        assert len(last), "a cycle"
        rest = np.setdiff1d(np.arange(left.shape[0]), last)
        left = left[rest][:, rest]
    assert np.median(sample.degrees) in (9, 10, 11)


@settings(max_examples=100, deadline=None)
@given(graphs(), st.sampled_from([ErdosRenyi(), ChungLu(), ConfigurationModel(), BarabasiAlbert()]))
def test_any_graph_will_do(graph: Graph, model: PairModel) -> None:
    for sample in model.fit(graph, rng=0).sample_many(2, rng=0):
        assert sample.replace(adjacency=graph.adjacency) == graph
        assert Graph(sample.adjacency, directed=graph.directed).rows == sample.rows


def test_complete_and_empty_graphs_stay_so() -> None:
    for directed, model in itertools.product([False, True], [ErdosRenyi(), ConfigurationModel()]):
        full = Graph(1 - np.eye(7), directed=directed)
        assert model.fit(full).sample(rng=0) == full
        empty = Graph(np.zeros((7, 7)), directed=directed)
        assert model.fit(empty).sample(rng=0) == empty


def test_wrong_settings_are_named() -> None:
    with pytest.raises(InputError, match=r"swaps of ConfigurationModel .* got -1"):
        ConfigurationModel(-1).fit(datasets.load("karate"))
