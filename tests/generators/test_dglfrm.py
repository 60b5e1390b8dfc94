"""DGLFRM: divergences against integrals, the stick-breaking prior, and recovered communities."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy import integrate, stats

from nodecopy import Graph, GraphModel
from nodecopy.errors import InputError
from nodecopy.generators import DGLFRM, DGLFRMB
from nodecopy.generators.dglfrm import (
    PRIOR_TEMPERATURE,
    TEMPERATURE,
    CommunityDecoder,
    kumaraswamy_divergence,
    logit_from_log,
    relaxed_divergence,
)
from tests.contracts.graph_models import GraphModelContract
from tests.generators.test_vgae import two_blocks

both = pytest.mark.parametrize("kind", [DGLFRMB, DGLFRM])


class TestContract(GraphModelContract):
    @pytest.fixture(
        scope="class",
        params=[kind(n_latent=8, alpha=3, n_epochs=20) for kind in (DGLFRMB, DGLFRM)],
        ids=["DGLFRMB", "DGLFRM"],
    )
    @classmethod
    def model(cls, request: pytest.FixtureRequest) -> GraphModel[Graph]:
        model: GraphModel[Graph] = request.param
        return model


def build_sticks(a: float, b: float, n_latent: int = 4) -> CommunityDecoder:
    """Return a decoder whose sticks have given parameters."""
    decoder = CommunityDecoder(n_latent, (3, 2), 1.0, None, np.random.default_rng(0), torch.device("cpu"))
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
    np.testing.assert_allclose(
        log_pi.mean(axis=0), expected, atol=4 * log_pi.std(axis=0).max() / np.sqrt(4000)
    )


@pytest.mark.parametrize("alpha", [0.5, 10.0, 50.0, 1e4])
def test_sticks_start_at_the_prior(alpha: float) -> None:
    decoder = CommunityDecoder(4, (3, 2), alpha, None, np.random.default_rng(0), torch.device("cpu"))
    a, b = decoder.stick_parameters()
    np.testing.assert_allclose(a.detach(), alpha, rtol=1e-5)
    np.testing.assert_allclose(b.detach(), 1, rtol=1e-5)
    np.testing.assert_allclose(kumaraswamy_divergence(a, b, alpha).detach(), 0, atol=1e-5)


def test_logits_from_logarithms() -> None:
    p = torch.tensor([1e-6, 0.2, 0.5, 0.999], dtype=torch.float64)
    torch.testing.assert_close(logit_from_log(p.log()), torch.logit(p))


@both
def test_blocks_are_recovered(kind: type[DGLFRMB]) -> None:
    model = kind(n_latent=10, alpha=5, n_epochs=200, sampler="raw").fit(two_blocks(), rng=0)
    first, second = np.triu_indices(40, 1)
    probabilities = model.edge_probabilities(first, second)
    within = first // 20 == second // 20
    assert probabilities[within].mean() > probabilities[~within].mean() + 0.2
    if kind is DGLFRMB:
        assert ((model.embeddings() >= 0) & (model.embeddings() <= 1)).all()
    assert model.decoded_.shape == (40, 16)


def test_features_are_reconstructed_only_if_requested() -> None:
    features = np.eye(2)[np.arange(40) // 20]
    graph = two_blocks(features=features)
    with_features, without_features = (
        DGLFRMB(n_latent=6, n_epochs=3, reconstruct_features=reconstructed).fit(graph, rng=0).decoded_
        for reconstructed in (True, False)
    )
    assert not np.allclose(with_features, without_features, atol=1e-4)
    zeros = two_blocks(features=np.zeros((40, 3)))
    decoded, expected = (
        DGLFRMB(n_latent=6, n_epochs=2, reconstruct_features=reconstructed).fit(zeros, rng=0).decoded_
        for reconstructed in (True, False)
    )
    np.testing.assert_array_equal(decoded, expected)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": 0}, "alpha of DGLFRMB must be above 0; got 0"),
        ({"alpha": -1}, "alpha of DGLFRMB .* got -1"),
        (
            {"decoder_widths": (32,)},
            r"decoder_widths of DGLFRMB must be a tuple of two integers; got \(32,\)",
        ),
        ({"decoder_widths": (32, 0)}, "decoder_widths of DGLFRMB .* got 0"),
        ({"dropout": 1.0}, r"dropout of DGLFRMB .* got 1\.0"),
        ({"sampler": "?"}, "sampler of DGLFRMB .* got '?'"),
    ],
)
def test_invalid_settings(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        DGLFRMB(**options).fit(two_blocks())


def test_a_graph_without_edges() -> None:
    with pytest.raises(InputError, match="must have an edge"):
        DGLFRM().fit(Graph(np.zeros((3, 3))))
