"""DGLFRM: divergences against integrals, the stick against its definition, communities found."""

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
    _Communities,
    kumaraswamy_divergence,
    logit_of_log,
    relaxed_divergence,
)
from nodecopy.generators.vgae import drawn_normal
from tests.contracts.graph_models import GraphModelContract
from tests.generators.test_vgae import two_blocks

both = pytest.mark.parametrize("kind", [DGLFRMB, DGLFRM])


class TestContract(GraphModelContract):
    @pytest.fixture(
        scope="class",
        params=[kind(latent=8, alpha=3, epochs=20) for kind in (DGLFRMB, DGLFRM)],
        ids=["DGLFRMB", "DGLFRM"],
    )
    @classmethod
    def model(cls, request: pytest.FixtureRequest) -> GraphModel[Graph]:
        model: GraphModel[Graph] = request.param
        return model


def sticks(a: float, b: float, latent: int = 4) -> _Communities:
    """A stick with given parameters."""
    parts = _Communities(latent, (3, 2), 1.0, None, np.random.default_rng(0), torch.device("cpu"))
    with torch.no_grad():
        for raw, wanted in zip(parts.sticks, (a, b), strict=True):
            raw.fill_(np.log(np.expm1(wanted)))
    return parts


@pytest.mark.parametrize(
    ("a", "b", "alpha"), [(2.0, 1.0, 2.0), (5.0, 1.5, 10.0), (0.8, 0.6, 3.0), (9.0, 4.0, 2.0)]
)
def test_divergence_of_sticks(a: float, b: float, alpha: float) -> None:
    def integrand(v: float) -> float:
        q = a * b * v ** (a - 1) * (1 - v**a) ** (b - 1)
        return float(q * (np.log(q) - stats.beta.logpdf(v, alpha, 1)))

    expected, _ = integrate.quad(integrand, 0, 1)
    found = kumaraswamy_divergence(torch.tensor(a).double(), torch.tensor(b).double(), alpha)
    assert found.item() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(("posterior", "prior"), [(0.0, 0.0), (2.0, -1.0), (-3.0, 1.5)])
def test_divergence_of_memberships(posterior: float, prior: float) -> None:
    """The mean of the estimate over its own draws is the integral of q log(q / p)."""

    def density(x: float, logit: float, temperature: float) -> Any:
        return stats.logistic.pdf(x, loc=logit / temperature, scale=1 / temperature)

    def integrand(x: float) -> float:
        q, p = density(x, posterior, TEMPERATURE), density(x, prior, PRIOR_TEMPERATURE)
        return float(q * np.log(q / p))

    def estimated(x: float) -> float:
        values = (torch.tensor(value, dtype=torch.float64) for value in (x, posterior, prior))
        return float(density(x, posterior, TEMPERATURE) * relaxed_divergence(*values).item())

    expected, _ = integrate.quad(integrand, -40, 40, limit=200)
    found, _ = integrate.quad(estimated, -40, 40, limit=200)
    assert found == pytest.approx(expected, abs=1e-7)
    assert expected > 0


def test_divergence_of_normals() -> None:
    mean, log_s = 0.7, -0.4

    def integrand(x: float) -> float:
        q = stats.norm(mean, np.exp(log_s))
        return float(q.pdf(x) * (q.logpdf(x) - stats.norm.logpdf(x)))

    expected, _ = integrate.quad(integrand, -10, 10)
    heads = torch.tensor([[mean, mean, log_s, log_s]] * 3)
    _, found = drawn_normal(heads, np.random.default_rng(0))
    assert found.item() == pytest.approx(2 * expected, rel=1e-5)


def test_drawn_normals_have_the_slopes_of_their_values() -> None:
    heads = torch.randn(5, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)

    def drawn(tensor: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return drawn_normal(tensor, np.random.default_rng(1))

    noise = np.random.default_rng(1).standard_normal((5, 2), dtype=np.float32)
    expected = heads[:, :2] + heads[:, 2:].exp() * torch.from_numpy(noise)
    torch.testing.assert_close(drawn(heads)[0], expected)
    assert torch.autograd.gradcheck(drawn, heads.requires_grad_())


def test_sticks_break_as_kumaraswamy_variables() -> None:
    """P(v < x) = 1 - (1 - x^a)^b; with 4000 draws and a fixed seed, a chance of 0.1 % to fail if right."""
    parts = sticks(3.0, 2.0)
    u = torch.from_numpy(np.random.default_rng(0).uniform(size=(4000, 4)))
    log_pi = parts.log_sticks(u).detach().double().numpy()
    steps = np.exp(np.diff(log_pi, prepend=0, axis=1))
    assert ((steps > 0) & (steps < 1)).all()
    assert stats.kstest(steps[:, 2], lambda x: 1 - (1 - x**3) ** 2).pvalue > 0.001
    expected = parts.expected_log_sticks().detach().numpy()
    np.testing.assert_allclose(
        log_pi.mean(axis=0), expected, atol=4 * log_pi.std(axis=0).max() / np.sqrt(4000)
    )


@pytest.mark.parametrize("alpha", [0.5, 10.0, 50.0, 1e4])
def test_sticks_start_at_the_prior(alpha: float) -> None:
    parts = _Communities(4, (3, 2), alpha, None, np.random.default_rng(0), torch.device("cpu"))
    a, b = parts.stick_parameters()
    np.testing.assert_allclose(a.detach(), alpha, rtol=1e-5)
    np.testing.assert_allclose(b.detach(), 1, rtol=1e-5)
    np.testing.assert_allclose(kumaraswamy_divergence(a, b, alpha).detach(), 0, atol=1e-5)


def test_logits_of_logarithms() -> None:
    p = torch.tensor([1e-6, 0.2, 0.5, 0.999], dtype=torch.float64)
    torch.testing.assert_close(logit_of_log(p.log()), torch.logit(p))


@both
def test_blocks_are_found(kind: type[DGLFRMB]) -> None:
    model = kind(latent=10, alpha=5, epochs=200, sampler="raw").fit(two_blocks(), rng=0)
    first, second = np.triu_indices(40, 1)
    chance = model.edge_probabilities(first, second)
    within = first // 20 == second // 20
    assert chance[within].mean() > chance[~within].mean() + 0.2
    if kind is DGLFRMB:
        assert ((model.embeddings() >= 0) & (model.embeddings() <= 1)).all()
    assert model.law_.decoded.shape == (40, 16)


def test_features_are_told_only_where_asked_for() -> None:
    features = np.eye(2)[np.arange(40) // 20]
    graph = two_blocks(features=features)
    with_them, without = (
        DGLFRMB(latent=6, epochs=3, reconstruct_features=told).fit(graph, rng=0).law_.decoded
        for told in (True, False)
    )
    assert not np.allclose(with_them, without, atol=1e-4)
    DGLFRMB(latent=6, epochs=2).fit(two_blocks(features=np.zeros((40, 3))), rng=0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": 0}, "alpha of DGLFRMB must be above 0; got 0"),
        ({"alpha": -1}, "alpha of DGLFRMB .* got -1"),
        ({"decoder": (32,)}, r"decoder of DGLFRMB must be a tuple of two widths; got \(32,\)"),
        ({"decoder": (32, 0)}, "decoder of DGLFRMB .* got 0"),
        ({"dropout": 1.0}, r"dropout of DGLFRMB .* got 1\.0"),
        ({"sampler": "?"}, "sampler of DGLFRMB .* got '?'"),
    ],
)
def test_wrong_settings(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        DGLFRMB(**options).fit(two_blocks())


def test_nothing_to_learn_from() -> None:
    with pytest.raises(InputError, match="must have an edge"):
        DGLFRM().fit(Graph(np.zeros((3, 3))))
