"""Graph autoencoders: losses, training against dense references, samplers and priors."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any, Self

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, sparse, stats
from sklearn.metrics import roc_auc_score
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from nodecopy import Graph, datasets
from nodecopy._core.random import Rng, child, seed_sequence
from nodecopy.errors import InputError
from nodecopy.generators import DGLFRM, DGLFRMB, GAE, VGAE, Graphite
from nodecopy.generators import autoencoders as module
from nodecopy.generators.autoencoders import (
    PRIOR_TEMPERATURE,
    TEMPERATURE,
    CommunityDecoder,
    FeedbackDecoder,
    GraphAutoencoder,
    PairLoss,
    PresenceLoss,
    SampledPairLoss,
    draw_normal,
    kumaraswamy_divergence,
    relaxed_divergence,
)
from nodecopy.generators.edges import calibrate_scores
from nodecopy.nn.networks import SparseStack, normalise_adjacency
from tests.contracts.graph_models import GraphModelContract, community_graph
from tests.generators.helpers import draw_edges_by_score, random_adjacency, random_vectors, two_blocks
from tests.generators.scoring import score_link_prediction


class TestContract(GraphModelContract):
    models = (
        VGAE(n_epochs=20, sampler="raw"),
        VGAE(n_epochs=20, sampler="calibrated"),
        VGAE(n_epochs=20),
        GAE(n_epochs=20, balanced=False),
        Graphite(n_epochs=20),
        DGLFRMB(n_latent=8, alpha=3, n_epochs=20),
        DGLFRM(n_latent=8, alpha=3, n_epochs=20),
    )


CPU = torch.device("cpu")


def dense_loss(z: Tensor, adjacency: sparse.csr_array) -> Tensor:
    """Compute the loss as Kipf and Welling's code does."""
    matrix = torch.from_numpy(adjacency.toarray()).to(z.dtype)
    n, ones = len(z), float(adjacency.sum())
    entropy = binary_cross_entropy_with_logits(
        z @ z.T, matrix + torch.eye(n, dtype=z.dtype), pos_weight=torch.tensor((n * n - ones) / ones)
    )
    return n * n / (2 * (n * n - ones)) * entropy


@pytest.mark.parametrize("logits_at_once", [1, 7, 23, 100, 10**6, None])
@pytest.mark.parametrize("spread", [0.1, 1.0, 10.0])
def test_gradients_are_the_dense_ones(logits_at_once: int | None, spread: float) -> None:
    adjacency = random_adjacency()
    start = spread * torch.randn(23, 4, generator=torch.Generator().manual_seed(1))
    expected = start.double().requires_grad_()
    dense = dense_loss(expected, adjacency)
    (3 * dense).backward()  # type: ignore[no-untyped-call]
    assert expected.grad is not None
    z = start.clone().requires_grad_()
    (3 * PairLoss(adjacency, CPU, logits_at_once)(z)).backward()  # type: ignore[no-untyped-call]
    assert z.grad is not None
    torch.testing.assert_close(z.grad.double(), expected.grad, rtol=1e-4, atol=1e-6 * spread)


def sampled(seed: int, adjacency: sparse.csr_array | None = None) -> SampledPairLoss:
    adjacency = random_adjacency() if adjacency is None else adjacency
    return SampledPairLoss(adjacency, CPU, np.random.default_rng(seed))


def test_the_sampled_loss_is_that_of_its_pairs() -> None:
    """The reference is a loop over edges and sampled pairs."""
    adjacency = random_adjacency()
    z = torch.randn(23, 3, generator=torch.Generator().manual_seed(3), requires_grad=True)
    permutations, _ = sampled(1).draw_permutations()
    rows, columns = adjacency.nonzero()
    at_edges = [torch.log1p(torch.exp(-z[i] @ z[j])) for i, j in zip(rows, columns, strict=True)]
    at_others = [torch.log1p(torch.exp(z[i] @ z[j])) for order in permutations for i, j in enumerate(order)]
    expected = torch.stack(at_edges).mean() + torch.stack(at_others).mean()
    actual, reference = (torch.autograd.grad(value, z)[0] for value in (sampled(1)(z), expected))
    torch.testing.assert_close(actual, reference, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("logits_at_once", [1, 20, 37, None])
def test_presence_loss_is_the_dense_one(logits_at_once: int | None) -> None:
    rng = np.random.default_rng(0)
    features = sparse.csr_array(rng.normal(size=(11, 9)) * (rng.random((11, 9)) < 0.3))
    features.data[0] = 0.0  # a stored zero is not a feature
    present = torch.from_numpy((features.toarray() != 0).astype(float))
    tensors = [torch.from_numpy(rng.normal(size=shape)) for shape in ((11, 4), (4, 9), (9,))]
    z, weight, bias = (tensor.clone().requires_grad_() for tensor in tensors)
    zeros = (present == 0).sum() / present.sum()
    dense = binary_cross_entropy_with_logits(z @ weight + bias, present, pos_weight=zeros)
    (3 * dense).backward()  # type: ignore[no-untyped-call]
    blocked = [tensor.clone().requires_grad_() for tensor in tensors]
    (3 * PresenceLoss(features, CPU, logits_at_once)(*blocked)).backward()  # type: ignore[no-untyped-call]
    for actual, expected in zip(blocked, (z, weight, bias), strict=True):
        torch.testing.assert_close(actual.grad, expected.grad)


UPPER = np.triu_indices(30, 1)


class Untrained(GraphAutoencoder):
    """An autoencoder that takes given vectors in place of a graph and draws edges by their scores."""

    def __init__(self, sampler: str, balanced: bool = True) -> None:
        self.sampler, self.balanced, self.device = sampler, balanced, "cpu"

    def fit(self, graph: Any, *, rng: Rng = None) -> Self:
        vectors = torch.from_numpy(graph)
        edges, _, _ = draw_edges_by_score(graph)
        self._set_fitted(Graph.from_edges(*edges, node_ids=np.arange(len(graph))), vectors, vectors)
        return self


@pytest.mark.parametrize("first", ["raw", "corrected"])
@pytest.mark.parametrize("then", ["raw", "calibrated", "corrected"])
def test_another_sampler_gives_the_same_as_a_fit_with_it(first: str, then: str) -> None:
    model = Untrained(first).fit(random_vectors())
    model.edge_probabilities([0], [1])  # calibrates for the first sampler
    other, expected = model.with_sampler(then), Untrained(then).fit(random_vectors())
    assert (model.sampler, model.sampler_) == (first, first)
    np.testing.assert_array_equal(other.edge_probabilities(*UPPER), expected.edge_probabilities(*UPPER))


def test_calibration_happens_once_and_only_for_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    threads = []

    def calibrate(*args: Any, **options: Any) -> Any:
        threads.append(threading.current_thread())
        return calibrate_scores(*args, **options)

    monkeypatch.setattr(module, "calibrate_scores", calibrate)
    model = Untrained("corrected").fit(random_vectors())
    model.embeddings()
    assert not threads
    list(model.sample_many(8, rng=0, workers=4))
    model.edge_probabilities([0], [1])
    assert threads == [threading.current_thread()]


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without a GPU")
def test_a_model_trained_on_a_gpu_samples_on_a_machine_without_one() -> None:
    model = Untrained("corrected").fit(random_vectors())
    expected = model.sample(rng=0)
    other = Untrained("corrected").fit(random_vectors())
    other.device = "cuda"
    assert other.sample(rng=0) == expected


@given(
    st.integers(0, 2**32), st.sampled_from([("calibrated", False), ("corrected", False), ("corrected", True)])
)
@settings(max_examples=20)
def test_the_expected_number_of_edges_is_the_observed_one(seed: int, kind: tuple[str, bool]) -> None:
    model = Untrained(*kind).fit(random_vectors(seed))
    total = model.edge_probabilities(*UPPER).sum()
    assert total == pytest.approx(model.graph_.n_edges, rel=1e-6)


def test_divergence_of_normals_is_the_integral() -> None:
    mean, log_s = 0.7, -0.4

    def integrand(x: float) -> float:
        q = stats.norm(mean, np.exp(log_s))
        return float(q.pdf(x) * (q.logpdf(x) - stats.norm.logpdf(x)))

    expected, _ = integrate.quad(integrand, -10, 10)
    heads = torch.tensor([[mean, mean, log_s, log_s]] * 3)
    _, divergence = draw_normal(heads, np.random.default_rng(0))
    assert divergence.item() == pytest.approx(2 * expected, rel=1e-5)


def test_gradients_of_normal_draws() -> None:
    heads = torch.randn(5, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)

    def draw(tensor: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return draw_normal(tensor, np.random.default_rng(1))

    noise = np.random.default_rng(1).standard_normal((5, 2), dtype=np.float32)
    expected = heads[:, :2] + heads[:, 2:].exp() * torch.from_numpy(noise)
    torch.testing.assert_close(draw(heads)[0], expected)
    assert torch.autograd.gradcheck(draw, heads.requires_grad_())


@pytest.mark.parametrize(
    ("part", "value", "message"),
    [
        ("decoded_", np.ones((3, 2)), "decoded_ must hold one row for each of 20 nodes"),
        ("decoded_", np.full((20, 2), np.nan), "decoded_ of GAE must be finite"),
        ("embeddings_", np.full((20, 2), "a"), "embeddings_ of GAE must be finite"),
        ("sampler_", "none", "sampler_ of GAE must be one of"),
    ],
)
def test_damaged_files_are_errors(part: str, value: Any, message: str, tmp_path: Path) -> None:
    model = GAE(n_epochs=1).fit(community_graph(), rng=0)
    setattr(model, part, value)
    model.save(tmp_path / "model.npz")
    with pytest.raises(InputError, match=message):
        GAE.load(tmp_path / "model.npz")


def dense_means(graph: Graph, n_epochs: int, seed: int, heads: int) -> Any:
    """Return the means of a dense model in double precision with N x N matrices."""
    weights = np.random.default_rng(child(seed_sequence(seed), 0))
    noise = np.random.default_rng(child(seed_sequence(seed), 1))
    X = torch.from_numpy(graph.features.toarray())  # type: ignore[union-attr]
    S = torch.from_numpy(normalise_adjacency(graph.adjacency).toarray()).double()
    limits = np.sqrt(6 / (X.shape[1] + 6)), np.sqrt(6 / (6 + 3))
    shapes = (X.shape[1], 6), (6, 3 * heads)
    W0, W1 = (
        torch.from_numpy(weights.uniform(-limit, limit, shape)).requires_grad_()
        for limit, shape in zip(limits, shapes, strict=True)
    )
    optimiser = torch.optim.Adam([W0, W1], lr=0.01)
    for _ in range(n_epochs):
        encoded = S @ torch.relu(S @ X @ W0) @ W1
        z, divergence = encoded, torch.zeros(())
        if heads == 2:
            mean, log_s = encoded[:, :3], encoded[:, 3:]
            z = mean + torch.from_numpy(noise.standard_normal(mean.shape, np.float32)) * torch.exp(log_s)
            each = (1 + 2 * log_s - mean**2 - torch.exp(log_s) ** 2).sum(1)
            divergence = -(0.5 / len(z)) * each.mean()
        optimiser.zero_grad()
        (dense_loss(z, graph.adjacency) + divergence).backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    return (S @ torch.relu(S @ X @ W0) @ W1)[:, :3].detach().numpy()


@pytest.mark.parametrize(("kind", "heads"), [(GAE, 1), (VGAE, 2)])
def test_training_is_that_of_the_dense_model(kind: type[GraphAutoencoder], heads: int) -> None:
    features = sparse.csr_array(np.random.default_rng(4).integers(0, 2, (23, 9)).astype(float))
    graph = Graph(random_adjacency(), features)
    model = kind(n_hidden=6, n_latent=3, n_epochs=40).fit(graph, rng=5)
    expected = dense_means(graph, 40, 5, heads)
    assert np.abs(expected).max() > 0.3
    np.testing.assert_allclose(model.embeddings(), expected, atol=2e-4)


both = pytest.mark.parametrize("kind", [GAE, VGAE])


@pytest.mark.parametrize("pairs", ["all", "sampled"])
@both
def test_blocks_are_recovered(kind: type[GraphAutoencoder], pairs: str) -> None:
    """Non-edges within a block are more likely than those between blocks, without features too."""
    graph = two_blocks()
    model = kind(n_latent=4, sampler="raw", pairs=pairs).fit(graph, rng=0)
    first, second = np.triu_indices(40, 1)
    unlinked = np.asarray(graph.adjacency[first, second]).ravel() == 0
    probability = model.edge_probabilities(first[unlinked], second[unlinked])
    within = first[unlinked] // 20 == second[unlinked] // 20
    assert roc_auc_score(within, probability) > 0.85
    assert ((probability >= 0) & (probability <= 1)).all()
    logits = (model.embeddings() @ model.embeddings().T)[first[unlinked], second[unlinked]]
    np.testing.assert_allclose(probability, 1 / (1 + np.exp(-logits)), atol=1e-6)


def dense_decoder(z: Any, X: Any, weights: Any, feedback: float) -> Any:
    """Compute the formula of the paper with N x N matrices."""
    W0, W1, W2 = weights
    rows = z / np.linalg.norm(z, axis=1, keepdims=True)
    graph = rows @ rows.T + 1
    scale = 1 / np.sqrt(graph.sum(axis=1))
    T = scale[:, None] * graph * scale
    update = np.maximum(T @ z @ W1, 0) + np.maximum(T @ X @ W0, 0)
    return (1 - feedback) * z + feedback * T @ update @ W2


@pytest.mark.parametrize("feedback", [0.0, 0.5, 1.0])
def test_the_factored_decoder_is_the_dense_formula(feedback: float) -> None:
    rng = np.random.default_rng(0)
    z, X = rng.normal(size=(13, 3)), rng.integers(0, 2, (13, 7)).astype(float)
    features = SparseStack([sparse.csr_array(X)], torch.device("cpu"))
    decoder = FeedbackDecoder(features, 3, feedback, np.random.default_rng(1))
    weights = [weight.detach()[0].double().numpy() for weight in decoder.weights]
    decoded = decoder(torch.from_numpy(z.astype(np.float32))).detach().numpy()
    np.testing.assert_allclose(decoded, dense_decoder(z, X, weights, feedback), rtol=1e-5, atol=1e-6)


def test_without_feedback_it_is_the_vgae() -> None:
    graph = two_blocks()
    plain = VGAE(n_epochs=5).fit(graph, rng=0)
    without_feedback = Graphite(n_epochs=5, feedback=0).fit(graph, rng=0)
    np.testing.assert_allclose(without_feedback.embeddings(), plain.embeddings(), atol=1e-6)
    assert not np.allclose(Graphite(n_epochs=5).fit(graph, rng=0).embeddings(), plain.embeddings(), atol=1e-3)
    plain, without_feedback = plain.set_params(pairs="sampled"), without_feedback.set_params(pairs="sampled")
    sampled = plain.fit(graph, rng=0).embeddings()
    np.testing.assert_allclose(without_feedback.fit(graph, rng=0).embeddings(), sampled, atol=1e-6)
    assert not np.allclose(VGAE(n_epochs=5).fit(graph, rng=0).embeddings(), sampled, atol=1e-4)


def build_sticks(a: float, b: float, n_latent: int = 4) -> CommunityDecoder:
    """Return a decoder whose sticks have given parameters."""
    decoder = CommunityDecoder(n_latent, 1.0, None, np.random.default_rng(0), torch.device("cpu"))
    with torch.no_grad():
        for raw, wanted in zip(decoder.sticks, (a, b), strict=True):
            raw.fill_(np.log(np.expm1(wanted)))
    return decoder


@pytest.mark.parametrize(
    ("a", "b", "alpha"), [(2.0, 1.0, 2.0), (5.0, 1.5, 10.0), (0.8, 0.6, 3.0), (9.0, 4.0, 2.0)]
)
def test_divergence_of_sticks(a: float, b: float, alpha: float) -> None:
    def integrand(v: float) -> float:
        q = a * b * v ** (a - 1) * (1 - v**a) ** (b - 1)
        return float(q * (np.log(q) - stats.beta.logpdf(v, alpha, 1)))

    expected, _ = integrate.quad(integrand, 0, 1)
    divergence = kumaraswamy_divergence(torch.tensor(a).double(), torch.tensor(b).double(), alpha)
    assert divergence.item() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(("posterior", "prior"), [(0.0, 0.0), (2.0, -1.0), (-3.0, 1.5)])
def test_divergence_of_memberships(posterior: float, prior: float) -> None:
    """The expectation of the estimate is the integral of q log(q / p)."""

    def density(x: float, logit: float, temperature: float) -> Any:
        return stats.logistic.pdf(x, loc=logit / temperature, scale=1 / temperature)

    def integrand(x: float) -> float:
        q, p = density(x, posterior, TEMPERATURE), density(x, prior, PRIOR_TEMPERATURE)
        return float(q * np.log(q / p))

    def estimate(x: float) -> float:
        values = (torch.tensor(value, dtype=torch.float64) for value in (x, posterior, prior))
        return float(density(x, posterior, TEMPERATURE) * relaxed_divergence(*values).item())

    expected, _ = integrate.quad(integrand, -40, 40, limit=200)
    mean, _ = integrate.quad(estimate, -40, 40, limit=200)
    assert mean == pytest.approx(expected, abs=1e-7)
    assert expected > 0


def test_sticks_have_kumaraswamy_distributions() -> None:
    """P(v < x) = 1 - (1 - x^a)^b; 4000 draws, an error rate of 0.1 %, a fixed seed."""
    decoder = build_sticks(3.0, 2.0)
    u = torch.from_numpy(np.random.default_rng(0).uniform(size=(4000, 4)))
    log_pi = decoder.log_sticks(u).detach().double().numpy()
    steps = np.exp(np.diff(log_pi, prepend=0, axis=1))
    assert ((steps > 0) & (steps < 1)).all()
    assert stats.kstest(steps[:, 2], lambda x: 1 - (1 - x**3) ** 2).pvalue > 0.001
    expected = decoder.expected_log_sticks().detach().numpy()
    error = log_pi.std(axis=0).max() / np.sqrt(4000)
    np.testing.assert_allclose(log_pi.mean(axis=0), expected, atol=4 * error)


@pytest.mark.parametrize("features", [np.eye(2)[np.arange(40) // 20], np.zeros((40, 3))])
def test_features_are_reconstructed_unless_all_are_zero(features: Any) -> None:
    stack = SparseStack([sparse.csr_array(features)], torch.device("cpu"))
    decoder: Any = DGLFRMB()._build_decoder(two_blocks(features=features), stack, np.random.default_rng(0))
    assert (decoder.feature_loss is not None) == features.any()


@pytest.mark.parametrize("kind", [DGLFRMB, DGLFRM])
def test_communities_are_recovered(kind: type[DGLFRMB]) -> None:
    model = kind(n_latent=10, alpha=5, n_epochs=200, sampler="raw").fit(two_blocks(), rng=0)
    first, second = np.triu_indices(40, 1)
    probabilities = model.edge_probabilities(first, second)
    within = first // 20 == second // 20
    assert probabilities[within].mean() > probabilities[~within].mean() + 0.2
    if kind is DGLFRMB:
        assert ((model.embeddings() >= 0) & (model.embeddings() <= 1)).all()
    assert model.decoded_.shape == (40, 16)


@pytest.mark.skipif(not os.environ.get("NODECOPY_DATA"), reason="NODECOPY_DATA does not name a folder")
@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "published", "n_splits", "error"),
    [(VGAE, (91.4, 92.6), 3, 1.5), (Graphite, (91.5, 93.2), 2, 2.0)],
)
def test_link_prediction_on_cora(kind: Any, published: Any, n_splits: int, error: float) -> None:
    """From split to split, the figures have a deviation of 1.5."""
    scores = score_link_prediction(lambda: kind(sampler="raw"), datasets.load("cora"), n_splits)
    assert scores == pytest.approx(published, abs=error)
