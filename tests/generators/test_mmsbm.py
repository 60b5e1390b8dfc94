"""The mixed-membership model: gradients of the likelihood, inference, and frequencies of edges."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from nodecopy import Graph, datasets
from nodecopy.classify import GCN, BayesianGCN
from nodecopy.errors import InputError, NotFittedError
from nodecopy.generators import MMSBM
from nodecopy.generators import blocks as mmsbm
from nodecopy.generators.blocks import _StochasticGradient
from tests.contracts.graph_models import community_graph
from tests.generators.frequencies import assert_frequencies, edge_frequencies
from tests.strategies import graphs

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
    return float(
        np.log(np.where(adjacency > 0, probability, 1 - probability))[~np.eye(len(pi), dtype=bool)].sum()
    )


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
def test_compiled_sum_neighbours_are_the_plain_ones(
    directed: bool, delta: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(5)
    graph = Graph(rng.random((40, 40)) < 0.1, directed=directed)
    pi, above = rng.dirichlet(np.ones(3), 40), np.array([0.4, 0.0, -0.02])
    gradient = _StochasticGradient(graph, delta, 40, rng)
    plain = gradient._sum_neighbours(pi, above)
    monkeypatch.setattr(mmsbm, "MIN_COMPILED_SIZE", 0)
    np.testing.assert_allclose(gradient._sum_neighbours(pi, above), plain, rtol=1e-10)


def test_settings_of_the_fit_are_used() -> None:
    model = MMSBM(n_steps=2).fit(datasets.load("karate"), rng=0)
    probability, sample = model.edge_probabilities([0], [33]), model.sample(rng=1)
    model.set_params(assignment="hard", delta=0.5)
    assert model.edge_probabilities([0], [33]) == probability
    assert model.sample(rng=1) == sample


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
        errors.append(
            np.mean([d - exact[n] for n, d in zip(nodes.tolist(), directions, strict=True)], axis=0)
        )
        thetas.append(theta)
    assert np.mean(errors, axis=0) == pytest.approx([0, 0], abs=0.05)
    assert np.mean(thetas, axis=0) == pytest.approx(whole_theta, abs=0.3)


def fixed_model(assignment: str, directed: bool = False) -> MMSBM:
    """Return a model with given memberships and strengths; one strength is below delta."""
    pi = np.random.default_rng(0).dirichlet([0.5, 0.5, 0.5], 8)
    model = MMSBM(pi, assignment=assignment, n_steps=0, delta=0.1).fit(
        Graph(np.eye(8, k=1), directed=directed)
    )
    model.strengths_ = np.array([0.9, 0.5, 0.02])
    return model


@pytest.mark.parametrize("directed", [False, True])
def test_frequencies_are_the_probabilities_of_the_model(directed: bool) -> None:
    model = fixed_model("mixed", directed)
    expected = pair_probabilities(model.memberships_, model.strengths_, 0.1)
    shape = np.ones((8, 8)) if directed else np.triu(np.ones((8, 8)))
    assert_frequencies(edge_frequencies(model) * shape, expected * shape)
    first, second = np.nonzero(expected)
    assert model.edge_probabilities(first, second) == pytest.approx(expected[first, second])


def test_hard_memberships_are_a_block_model() -> None:
    model = fixed_model("hard")
    block = model.memberships_.argmax(axis=1)
    expected = np.where(block[:, None] == block, model.strengths_[block], 0.1)
    assert_frequencies(np.triu(edge_frequencies(model), 1), np.triu(expected, 1))


def planted_graph(n_nodes: int = 300) -> Graph:
    labels = np.arange(n_nodes) % 3
    probability = np.where(labels[:, None] == labels, 0.12, 0.01)
    return Graph(np.triu(np.random.default_rng(0).random((n_nodes, n_nodes)) < probability, 1), labels=labels)


def test_inference_corrects_wrong_labels_and_estimates_strengths() -> None:
    graph = planted_graph()
    rng = np.random.default_rng(1)
    assert graph.labels is not None
    wrong = np.where(rng.random(300) < 0.3, rng.integers(0, 3, 300), graph.labels)
    model = MMSBM(delta=0.01, n_steps=200).fit(graph.replace(labels=wrong), rng=0)
    right = (model.memberships_.argmax(axis=1) == graph.labels).mean()
    assert (wrong == graph.labels).mean() < 0.85
    assert right > 0.97
    assert model.strengths_ == pytest.approx([0.12] * 3, rel=0.25)
    samples = [sample.n_edges for sample in model.sample_many(10, rng=0)]
    assert np.mean(samples) == pytest.approx(graph.n_edges, rel=0.1)


def test_memberships_in_place_of_labels() -> None:
    graph = planted_graph(30)
    assert graph.labels is not None
    given_pi = np.where(np.eye(3)[graph.labels] > 0, 9.0, 0.5)
    by_label = MMSBM(certainty=0.9, n_steps=5).fit(graph, rng=0)
    by_pi = MMSBM(given_pi, n_steps=5).fit(graph.replace(labels=None), rng=0)
    assert by_pi.memberships_ == pytest.approx(by_label.memberships_)
    assert (given_pi.max(), given_pi.min()) == (9.0, 0.5)


def test_a_hub_has_more_neighbours_than_a_batch() -> None:
    """The centre of the star is linked to all nodes, so it has no non-neighbours among the partners."""
    labels = np.arange(1201) % 2
    star = Graph.from_edges(np.zeros(1200, int), np.arange(1, 1201), labels=labels)
    model = MMSBM(n_steps=3).fit(star, rng=0)
    np.testing.assert_allclose(model.memberships_.sum(axis=1), 1)
    assert (model.memberships_.argmax(axis=1) == labels).mean() > 0.99
    expected = model.edge_probabilities(np.repeat(np.arange(1201), 1201), np.tile(np.arange(1201), 1201))
    mean = (expected.sum() - expected.reshape(1201, 1201).trace()) / 2
    n_edges = [sample.n_edges for sample in model.sample_many(20, rng=0)]
    assert np.mean(n_edges) == pytest.approx(mean, abs=5 * np.sqrt(mean / 20))


@settings(max_examples=50, deadline=None)
@given(graphs(), st.sampled_from(["mixed", "hard"]), st.sampled_from([0.0, 1e-4, 0.5]))
def test_samples_of_arbitrary_graphs_are_valid(graph: Graph, assignment: str, delta: float) -> None:
    model = MMSBM(assignment=assignment, delta=delta, n_steps=2).fit(graph, rng=0)
    assert model.memberships_.sum(axis=1) == pytest.approx(np.ones(graph.n_nodes))
    assert ((model.strengths_ >= 0) & (model.strengths_ < 1)).all()
    for sample in model.sample_many(2, rng=0):
        assert sample.replace(adjacency=graph.adjacency) == graph
        assert Graph(sample.adjacency, directed=graph.directed).rows == sample.rows
        assert not sample.adjacency.diagonal().any()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"certainty": 1.5}, r"certainty of MMSBM .* got 1\.5"),
        ({"assignment": "soft"}, "assignment of MMSBM must be one of 'mixed', 'hard'; got 'soft'"),
        ({"delta": 1.0}, r"delta of MMSBM .* got 1\.0"),
        ({"n_steps": -1}, r"n_steps of MMSBM .* got -1"),
        ({"rho": -1}, r"rho of MMSBM .* got -1"),
        ({"tau": 0}, r"tau of MMSBM .* got 0"),
        ({"memberships": np.ones((3, 2))}, r"one row for each of 34 nodes; got float64 of shape \(3, 2\)"),
        ({"memberships": np.zeros((34, 2))}, "nor all zero"),
        ({"memberships": np.full((34, 2), np.nan)}, "memberships of MMSBM must hold finite numbers"),
    ],
)
def test_invalid_settings_are_named(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        MMSBM(**wrong).fit(datasets.load("karate"))


@pytest.mark.filterwarnings("ignore:the classifier has learned almost nothing")  # after so few epochs
def test_bayesian_gcn_with_this_graph_model() -> None:
    graph = community_graph()
    classifier = BayesianGCN(MMSBM(n_steps=5), n_graphs=2, n_weight_samples=1, base=GCN(n_epochs=5))
    classifier.fit(graph, train=[0, 1, 2, 3], rng=0)
    assert classifier.predict_proba().shape == (20, 2)


def test_probabilities_need_a_fit() -> None:
    with pytest.raises(NotFittedError, match="MMSBM"):
        MMSBM().edge_probabilities([0], [1])


@pytest.mark.parametrize(
    "given_pi", [np.full((34, 2), 1e308), np.full((34, 2), 6e4, np.float16), [[2**62] * 2] * 34]
)
def test_large_memberships_are_normalised(given_pi: Any) -> None:
    fitted = MMSBM(given_pi, n_steps=2).fit(datasets.load("karate"), rng=0)
    assert (
        fitted.memberships_ == MMSBM(np.ones((34, 2)), n_steps=2).fit(fitted.graph_, rng=0).memberships_
    ).all()


@pytest.mark.parametrize(
    "large",
    [{"rho": 1e4}, {"step_size": 1e7}, {"rho": 1e300, "step_size": 1e300}, {"tau": 1e-300, "kappa": 2.0}],
)
def test_inference_that_overflows(large: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="of MMSBM must not be so large that inference overflows; got"):
        MMSBM(**large).fit(datasets.load("karate"), rng=0)
