"""Block models: what they learn, and how often pairs are linked in samples."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import chi2

from nodecopy import Graph, datasets
from nodecopy.errors import InputError
from nodecopy.generators import SBM, DegreeCorrectedSBM
from nodecopy.generators.base import PairModel, blocks_of
from nodecopy.generators.block_pairs import Cells, draw_cells, n_pairs
from tests.strategies import graphs

SAMPLES = 1500


def frequencies(model: PairModel, samples: int = SAMPLES) -> NDArray[np.float64]:
    """How often each entry of the adjacency is an edge."""
    return np.asarray(
        sum(sample.adjacency.toarray() for sample in model.sample_many(samples, rng=0)) / samples
    )


def assert_close(found: NDArray[Any], expected: NDArray[Any], samples: int = SAMPLES) -> None:
    """A chi-squared test of the counts of independent edges, and certainty where there is any."""
    sure = (expected <= 0) | (expected >= 1)
    assert (found[sure] == expected[sure]).all()
    expected, found = expected[~sure], found[~sure]
    distance = samples * ((found - expected) ** 2 / (expected * (1 - expected))).sum()
    assert distance < chi2.ppf(1 - 1e-6, len(expected))


def by_hand(graph: Graph) -> NDArray[np.float64]:
    """The density between the labels of two nodes, counted in plain Python."""
    adjacency, labels = graph.adjacency.toarray() > 0, graph.labels
    assert labels is not None
    nodes = range(graph.n_nodes)
    result = np.zeros((len(nodes), len(nodes)))
    for i, j in itertools.permutations(nodes, 2):
        alike = [
            adjacency[a, b]
            for a, b in itertools.permutations(nodes, 2)
            if (labels[a], labels[b]) == (labels[i], labels[j])
        ]
        result[i, j] = sum(alike) / len(alike)
    return result


def labelled(directed: bool) -> Graph:
    draw = np.random.default_rng(5)
    labels = np.array([0] * 5 + [1] * 4 + [2])
    chance = np.where(labels[:, None] == labels, 0.8, 0.25)
    return Graph(draw.random((10, 10)) < chance, labels=labels, directed=directed)


@pytest.mark.parametrize("directed", [False, True])
def test_every_pair_is_as_likely_as_the_density_of_its_blocks(directed: bool) -> None:
    graph = labelled(directed)
    found, expected = frequencies(SBM().fit(graph)), by_hand(graph)
    if not directed:
        found, expected = np.triu(found), np.triu(expected)
    assert_close(found, expected)


def test_edges_of_a_sample_are_independent() -> None:
    """The variance of their number is that of a sum of independent coins."""
    model = SBM().fit(labelled(directed=False))
    counts = [sample.n_edges for sample in model.sample_many(SAMPLES, rng=1)]
    chance = np.triu(by_hand(model.graph_))
    assert np.var(counts) == pytest.approx((chance * (1 - chance)).sum(), rel=0.15)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 6), min_size=1, max_size=4), st.booleans(), st.sampled_from([0.4, 1.0]))
def test_cells_hold_each_pair_once(sizes: list[int], directed: bool, probability: float) -> None:
    """Where all probabilities are one, the graph is complete, however pairs are numbered."""
    blocks = np.random.default_rng(0).permutation(np.repeat(np.arange(len(sizes)), sizes))
    first, second = np.divmod(np.arange(len(sizes) ** 2), len(sizes))
    if not directed:
        first, second = first[first <= second], second[first <= second]
    n_nodes = sum(sizes)
    space = n_pairs(first, second, np.array(sizes), directed=directed)
    assert space.sum() == n_nodes * (n_nodes - 1) // (1 if directed else 2)
    cells = Cells(first, second, np.full(len(first), probability))
    one, other = draw_cells(blocks, cells, np.random.default_rng(1), directed=directed)
    pairs = {(a, b) if directed else (min(a, b), max(a, b)) for a, b in zip(one, other, strict=True)}
    assert len(pairs) == len(one)
    assert all(a != b for a, b in pairs)
    if probability == 1:
        assert len(pairs) == space.sum()


@pytest.mark.parametrize("directed", [False, True])
def test_degrees_are_kept_on_average(directed: bool) -> None:
    """Where repeated edges are rare, the expected degrees are the observed ones."""
    draw = np.random.default_rng(2)
    weight = 1 / np.arange(1, 301) ** 0.4
    labels = np.arange(300) % 3
    chance = 0.1 * np.outer(weight, weight) * np.where(labels[:, None] == labels, 2, 1)
    graph = Graph(draw.random((300, 300)) < chance, labels=labels, directed=directed)
    samples = list(DegreeCorrectedSBM().fit(graph).sample_many(300, rng=0))
    for matrix, axis in itertools.product([graph.adjacency], [0, 1]):
        observed = matrix.sum(axis=axis)
        found = np.mean([sample.adjacency.sum(axis=axis) for sample in samples], axis=0)
        few = observed <= 8
        assert found[few] == pytest.approx(observed[few], abs=0.9)
        assert found[few].sum() == pytest.approx(observed[few].sum(), rel=0.05)
    within = [(labels[first] == labels[second]).mean() for first, second, _ in map(Graph.edges, samples)]
    first, second, _ = graph.edges()
    assert np.mean(within) == pytest.approx((labels[first] == labels[second]).mean(), abs=0.03)


def test_communities_are_found_where_labels_are_missing() -> None:
    cliques = np.kron(np.eye(4), np.ones((8, 8)))
    cliques[7, 8] = 1
    blocks = blocks_of(Graph(cliques), np.random.default_rng(0))
    assert sorted(np.bincount(blocks).tolist()) == [8, 8, 8, 8]
    assert all(len(set(blocks[8 * k : 8 * k + 8])) == 1 for k in range(4))


def test_unknown_labels_are_taken_from_neighbours() -> None:
    labels = ["cat", "", "", "dog", "", ""]
    graph = Graph.from_edges([0, 1, 3], [1, 2, 4], node_ids=range(6), labels=labels)
    assert blocks_of(graph, np.random.default_rng(0)).tolist() == [0, 0, 0, 1, 1, 2]
    sparse_codes = graph.replace(labels=[7, -1, -1, 10**18, -1, -1])
    assert blocks_of(sparse_codes, np.random.default_rng(0)).tolist() == [0, 0, 0, 1, 1, 2]


@settings(max_examples=100, deadline=None)
@given(graphs(), st.sampled_from([SBM(), DegreeCorrectedSBM()]))
def test_any_graph_will_do(graph: Graph, model: PairModel) -> None:
    """No labels, some labels, one class, no edges, no nodes, isolated nodes, loops, weights, directions."""
    for sample in model.fit(graph, rng=0).sample_many(2, rng=0):
        assert sample.replace(adjacency=graph.adjacency) == graph
        assert Graph(sample.adjacency, directed=graph.directed).rows == sample.rows
        assert not sample.adjacency.diagonal().any()


def test_weights_and_loops_do_not_count() -> None:
    plain = Graph([[0, 1, 0], [1, 0, 1], [0, 0, 0]], labels=[0, 0, 1], directed=True)
    odd = Graph([[9, 2, 0], [3, 0, 4], [0, 0, 5]], labels=[0, 0, 1], directed=True)
    assert SBM().fit(odd).sample(rng=0) == SBM().fit(plain).sample(rng=0)
    assert SBM().fit(odd).cells_.probability.tolist() == [1.0, 0.5]


def test_one_class_is_one_density() -> None:
    club = datasets.load("karate").replace(labels=np.zeros(34, int))
    assert SBM().fit(club).cells_.probability.tolist() == [78 / 561]


def test_only_graphs_are_fitted() -> None:
    with pytest.raises(InputError, match="graph of SBM must be a Graph; got ndarray"):
        SBM().fit(np.eye(3))  # type: ignore[arg-type]
