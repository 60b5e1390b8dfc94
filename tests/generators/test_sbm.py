"""Block models: densities, degrees, and the frequencies of edges in samples."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from nodecopy import Graph, datasets
from nodecopy.generators import SBM, DegreeCorrectedSBM
from nodecopy.generators.base import EdgeListModel
from tests.generators.frequencies import N_SAMPLES, assert_frequencies, edge_frequencies
from tests.strategies import graphs


def block_densities(graph: Graph) -> NDArray[np.float64]:
    """Return the density between the labels of two nodes, counted in plain Python."""
    adjacency, labels = graph.adjacency.toarray() > 0, graph.labels
    assert labels is not None
    nodes = range(graph.n_nodes)
    result = np.zeros((len(nodes), len(nodes)))
    for i, j in itertools.permutations(nodes, 2):
        pairs = [
            adjacency[a, b]
            for a, b in itertools.permutations(nodes, 2)
            if (labels[a], labels[b]) == (labels[i], labels[j])
        ]
        result[i, j] = sum(pairs) / len(pairs)
    return result


def labelled_graph(directed: bool) -> Graph:
    rng = np.random.default_rng(5)
    labels = np.array([0] * 5 + [1] * 4 + [2])
    probability = np.where(labels[:, None] == labels, 0.8, 0.25)
    return Graph(rng.random((10, 10)) < probability, labels=labels, directed=directed)


@pytest.mark.parametrize("directed", [False, True])
def test_frequencies_are_the_densities_of_blocks(directed: bool) -> None:
    graph = labelled_graph(directed)
    observed, expected = edge_frequencies(SBM().fit(graph)), block_densities(graph)
    if not directed:
        observed, expected = np.triu(observed), np.triu(expected)
    assert_frequencies(observed, expected)


def test_edges_of_a_sample_are_independent() -> None:
    """The variance of their number is that of a sum of independent Bernoulli variables."""
    model = SBM().fit(labelled_graph(directed=False))
    counts = [sample.n_edges for sample in model.sample_many(N_SAMPLES, rng=1)]
    probability = np.triu(block_densities(model.graph_))
    assert np.var(counts) == pytest.approx((probability * (1 - probability)).sum(), rel=0.15)


@pytest.mark.parametrize("directed", [False, True])
def test_expected_degrees_are_the_observed_ones(directed: bool) -> None:
    """Compare nodes of small degree, which rarely repeat an edge."""
    rng = np.random.default_rng(2)
    weight = 1 / np.arange(1, 301) ** 0.4
    labels = np.arange(300) % 3
    probability = 0.1 * np.outer(weight, weight) * np.where(labels[:, None] == labels, 2, 1)
    graph = Graph(rng.random((300, 300)) < probability, labels=labels, directed=directed)
    samples = list(DegreeCorrectedSBM().fit(graph).sample_many(300, rng=0))
    for axis in (0, 1):
        observed = graph.adjacency.sum(axis=axis)
        mean = np.mean([sample.adjacency.sum(axis=axis) for sample in samples], axis=0)
        few = observed <= 8
        assert mean[few] == pytest.approx(observed[few], abs=0.9)
        assert mean[few].sum() == pytest.approx(observed[few].sum(), rel=0.05)
    within = [(labels[first] == labels[second]).mean() for first, second, _ in map(Graph.edges, samples)]
    first, second, _ = graph.edges()
    assert np.mean(within) == pytest.approx((labels[first] == labels[second]).mean(), abs=0.03)


@settings(max_examples=100, deadline=None)
@given(graphs(), st.sampled_from([SBM(), DegreeCorrectedSBM()]))
def test_samples_of_arbitrary_graphs_are_valid(graph: Graph, model: EdgeListModel) -> None:
    """With and without labels, edges, nodes, isolated nodes, self-loops, weights and directions."""
    for sample in model.fit(graph, rng=0).sample_many(2, rng=0):
        assert sample.replace(adjacency=graph.adjacency) == graph
        assert Graph(sample.adjacency, directed=graph.directed).rows == sample.rows
        assert not sample.adjacency.diagonal().any()


def test_weights_and_self_loops_are_ignored() -> None:
    plain = Graph([[0, 1, 0], [1, 0, 1], [0, 0, 0]], labels=[0, 0, 1], directed=True)
    weighted = Graph([[9, 2, 0], [3, 0, 4], [0, 0, 5]], labels=[0, 0, 1], directed=True)
    assert SBM().fit(weighted).sample(rng=0) == SBM().fit(plain).sample(rng=0)
    assert SBM().fit(weighted).probabilities_.tolist() == [1.0, 0.5]


def test_a_single_block_has_the_density_of_the_graph() -> None:
    karate = datasets.load("karate").replace(labels=np.zeros(34, int))
    assert SBM().fit(karate).probabilities_.tolist() == [78 / 561]
