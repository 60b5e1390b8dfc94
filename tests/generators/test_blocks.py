"""Block models: label propagation, frequencies of edges, and inference of mixed memberships."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from nodecopy import Graph
from nodecopy.generators import MMSBM, SBM, DegreeCorrectedSBM
from nodecopy.generators import blocks as mmsbm
from nodecopy.generators.blocks import _StochasticGradient, assign_blocks, count_pairs, draw_block_edges
from tests.generators.helpers import assert_frequencies, edge_frequencies


def test_label_propagation_without_labels_divides_cliques() -> None:
    cliques = np.kron(np.eye(4), np.ones((8, 8)))
    cliques[7, 8] = 1
    blocks = assign_blocks(Graph(cliques), np.random.default_rng(0))
    assert sorted(np.bincount(blocks).tolist()) == [8, 8, 8, 8]
    assert all(len(set(blocks[8 * k : 8 * k + 8])) == 1 for k in range(4))


def test_unlabelled_nodes_take_labels_from_neighbours() -> None:
    labels = ["cat", "", "", "dog", "", ""]
    graph = Graph.from_edges([0, 1, 3], [1, 2, 4], node_ids=range(6), labels=labels)
    assert assign_blocks(graph, np.random.default_rng(0)).tolist() == [0, 0, 0, 1, 1, 2]
    large_codes = graph.replace(labels=[7, -1, -1, 10**18, -1, -1])
    assert assign_blocks(large_codes, np.random.default_rng(0)).tolist() == [0, 0, 0, 1, 1, 2]


def all_block_pairs(n_blocks: int, directed: bool) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    first, second = np.divmod(np.arange(n_blocks**2), n_blocks)
    selected = np.ones(len(first), bool) if directed else first <= second
    return np.stack([first, second])[:, selected]


@settings(max_examples=60)
@given(st.lists(st.integers(1, 6), min_size=1, max_size=4), st.booleans(), st.sampled_from([0.4, 1.0]))
def test_each_pair_of_nodes_occurs_at_most_once(sizes: list[int], directed: bool, probability: float) -> None:
    """If all probabilities are one, the graph is complete."""
    blocks = np.random.default_rng(0).permutation(np.repeat(np.arange(len(sizes)), sizes))
    block_pairs, n_nodes = all_block_pairs(len(sizes), directed), sum(sizes)
    n_pairs = count_pairs(block_pairs, np.array(sizes), directed=directed)
    assert n_pairs.sum() == n_nodes * (n_nodes - 1) // (1 if directed else 2)
    probabilities = np.full(block_pairs.shape[1], probability)
    rng = np.random.default_rng(1)
    first, second = draw_block_edges(blocks, block_pairs, probabilities, rng, directed=directed)
    pairs = {(i, j) if directed else (min(i, j), max(i, j)) for i, j in zip(first, second, strict=True)}
    assert len(pairs) == len(first)
    assert all(i != j for i, j in pairs)
    if probability == 1:
        assert len(pairs) == n_pairs.sum()


def block_densities(graph: Graph) -> NDArray[np.float64]:
    """Return the density between the labels of two nodes, counted in plain Python."""
    adjacency, labels = graph.adjacency.toarray() > 0, graph.label_codes
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
    n_edges = [sample.n_edges for sample in samples]  # Poisson, less repeated edges
    assert 0.6 < np.var(n_edges) / np.mean(n_edges) < 1.2
    within = [(labels[first] == labels[second]).mean() for first, second, _ in map(Graph.edges, samples)]
    first, second, _ = graph.edges()
    assert np.mean(within) == pytest.approx((labels[first] == labels[second]).mean(), abs=0.03)


Floats = NDArray[np.float64]


def pair_probabilities(pi: Floats, beta: Floats, delta: float) -> Floats:
    """Return P(edge) of all pairs in plain Python, summed over the blocks that both nodes draw."""
    n_nodes, n_blocks = pi.shape
    result = np.zeros((n_nodes, n_nodes))
    for i, j in itertools.permutations(range(n_nodes), 2):
        for k, other in itertools.product(range(n_blocks), repeat=2):
            result[i, j] += pi[i, k] * pi[j, other] * (beta[k] if k == other else delta)
    return result


def log_likelihood(adjacency: NDArray[Any], phi: Floats, theta: Floats, delta: float) -> float:
    """Return the log-likelihood over all ordered pairs; twice that of an undirected graph."""
    pi, beta = phi / phi.sum(axis=1, keepdims=True), theta[1] / theta.sum(axis=0)
    probability = pair_probabilities(pi, beta, delta) + 0.5 * np.eye(len(pi))
    likelihood = np.where(adjacency > 0, probability, 1 - probability)
    return float(np.log(likelihood)[~np.eye(len(pi), dtype=bool)].sum())


@pytest.mark.parametrize("directed", [False, True])
def test_steps_are_gradients_of_the_likelihood(directed: bool) -> None:
    """With all nodes as partners the gradient is exact; the reference are finite differences."""
    rng = np.random.default_rng(3)
    graph = Graph(rng.random((7, 7)) < 0.4, directed=directed)
    phi, theta, delta = rng.random((7, 3)) + 0.1, rng.random((2, 3)) + 0.5, 0.05
    gradient = _StochasticGradient(graph, delta, 100, rng)
    pi = phi / phi.sum(axis=1, keepdims=True)
    nodes, for_phi, for_theta = gradient.draw(pi, theta[1] / theta.sum(axis=0))
    adjacency, halved = graph.adjacency.toarray(), 1 if directed else 2

    def slope(numbers: Floats, place: tuple[int, int]) -> float:
        values = []
        for step in (1e-5, -1e-5):
            numbers[place] += step
            values.append(log_likelihood(adjacency, phi, theta, delta) / halved)
            numbers[place] -= step
        return (values[0] - values[1]) / 2e-5

    for row, node in enumerate(nodes.tolist()):
        expected = [phi[node, k] * slope(phi, (node, k)) for k in range(3)]
        assert for_phi[row] == pytest.approx(expected, abs=1e-4)
    for place in itertools.product(range(2), range(3)):
        assert for_theta[place] == pytest.approx(theta[place] * slope(theta, place), abs=1e-4)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("delta", [0.0, 0.05])
def test_compiled_sum_neighbours(directed: bool, delta: float, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    graph = Graph(rng.random((40, 40)) < 0.1, directed=directed)
    pi, above = rng.dirichlet(np.ones(3), 40), np.array([0.4, 0.0, -0.02])
    gradient = _StochasticGradient(graph, delta, 40, rng)
    plain = gradient._sum_neighbours(pi, above)
    monkeypatch.setattr(mmsbm, "MIN_COMPILED_SIZE", 0)
    np.testing.assert_allclose(gradient._sum_neighbours(pi, above), plain, rtol=1e-10)


def test_the_gradient_from_few_partners_is_unbiased() -> None:
    rng = np.random.default_rng(4)
    graph = Graph(rng.random((12, 12)) < 0.3)
    pi, beta = rng.dirichlet(np.ones(2), 12), np.array([0.4, 0.3])
    nodes, whole, whole_theta = _StochasticGradient(graph, 0.01, 12, rng).draw(pi, beta)
    exact = dict(zip(nodes.tolist(), whole, strict=True))
    few = _StochasticGradient(graph, 0.01, 8, rng)
    errors, thetas = [], []
    for _ in range(1000):
        nodes, directions, theta = few.draw(pi, beta)
        pairs = zip(nodes.tolist(), directions, strict=True)
        errors.append(np.mean([direction - exact[node] for node, direction in pairs], axis=0))
        thetas.append(theta)
    assert np.mean(errors, axis=0) == pytest.approx([0, 0], abs=0.05)
    assert np.mean(thetas, axis=0) == pytest.approx(whole_theta, abs=0.3)


@pytest.mark.parametrize("directed", [False, True])
def test_frequencies_are_the_probabilities_of_the_model(directed: bool) -> None:
    """Memberships and strengths are given; one strength is below delta."""
    pi = np.random.default_rng(0).dirichlet([0.5, 0.5, 0.5], 8)
    model = MMSBM(pi, n_steps=0, delta=0.1).fit(Graph(np.eye(8, k=1), directed=directed))
    model.strengths_ = np.array([0.9, 0.5, 0.02])
    expected = pair_probabilities(model.memberships_, model.strengths_, 0.1)
    shape = np.ones((8, 8)) if directed else np.triu(np.ones((8, 8)))
    assert_frequencies(edge_frequencies(model) * shape, expected * shape)
    first, second = np.nonzero(expected)
    assert model.edge_probabilities(first, second) == pytest.approx(expected[first, second])


def planted_graph(n_nodes: int = 300) -> Graph:
    labels = np.arange(n_nodes) % 3
    probability = np.where(labels[:, None] == labels, 0.12, 0.01)
    return Graph(np.triu(np.random.default_rng(0).random((n_nodes, n_nodes)) < probability, 1), labels=labels)


def test_inference_corrects_wrong_labels_and_estimates_strengths() -> None:
    graph = planted_graph()
    rng = np.random.default_rng(1)
    assert graph.label_codes is not None
    wrong = np.where(rng.random(300) < 0.3, rng.integers(0, 3, 300), graph.label_codes)
    model = MMSBM(delta=0.01, n_steps=200).fit(graph.replace(labels=wrong), rng=0)
    right = (model.memberships_.argmax(axis=1) == graph.label_codes).mean()
    assert (wrong == graph.label_codes).mean() < 0.85
    assert right > 0.97
    assert model.strengths_ == pytest.approx([0.12] * 3, rel=0.25)
    samples = [sample.n_edges for sample in model.sample_many(10, rng=0)]
    assert np.mean(samples) == pytest.approx(graph.n_edges, rel=0.1)
