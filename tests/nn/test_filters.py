from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.random import SeedSequence
from scipy import sparse

from nodecopy.errors import InputError
from nodecopy.nn.filters import (
    CUTOFF,
    FREQUENCIES,
    VARIANCE_EPSILON,
    FilterConfig,
    FilterNetworks,
    attend,
    fit_coefficients,
)
from nodecopy.nn.networks import SparseStack, normalise_adjacency

CPU = torch.device("cpu")
N, F, K = 9, 5, 3


def matrix(seed: int, n: int = N) -> sparse.csr_array:
    upper = np.triu(np.random.default_rng(seed).random((n, n)) < 0.3, 1)
    return normalise_adjacency(sparse.csr_array((upper | upper.T).astype(np.float32)))


def test_coefficients_of_the_authors_filter() -> None:
    """Their solver prints a residual of 1.134 for orders 5 and 3."""
    a, b = fit_coefficients(5, 3, 0.9)
    x, step = FREQUENCIES, FREQUENCIES >= CUTOFF
    fed, forward = np.polyval(np.append(a[::-1], 0), x), np.polyval(b[::-1], x)
    assert np.linalg.norm(step + step * fed - forward) == pytest.approx(1.1341, abs=5e-5)
    assert np.abs(np.polyval(a[::-1], x)).max() == pytest.approx(0.9, abs=1e-9)
    np.testing.assert_allclose(a, [0.783, -9.108, 15.567, -8.826, 1.667], atol=6e-4)
    np.testing.assert_allclose(b, [0.015, -0.622, 2.519, -0.768], atol=6e-4)


@pytest.mark.parametrize(("feedback", "feedforward"), [(1, 0), (2, 1), (3, 4)])
@pytest.mark.parametrize("radius", [0.1, 0.9])
def test_no_allowed_coefficients_near_by_are_better(feedback: int, feedforward: int, radius: float) -> None:
    a, b = fit_coefficients(feedback, feedforward, radius)
    x, step = FREQUENCIES, FREQUENCIES >= CUTOFF

    def residual(a: Any, b: Any) -> float:
        return float(np.linalg.norm(step * (1 + x * np.polyval(a[::-1], x)) - np.polyval(b[::-1], x)))

    draw, best, tried = np.random.default_rng(0), residual(a, b), 0
    for _ in range(2000):
        other = a + 0.01 * draw.normal(size=a.shape), b + 0.01 * draw.normal(size=b.shape)
        if np.abs(np.polyval(other[0][::-1], x)).max() <= radius:
            tried += 1
            assert residual(*other) >= best
    assert tried > 50


def networks(config: FilterConfig, n_models: int = 2) -> FilterNetworks:
    features = sparse.csr_array((np.random.default_rng(2).random((N, F)) < 0.5).astype(np.float32))
    seeds = [SeedSequence(number) for number in range(n_models)]
    return FilterNetworks.initialise(config, SparseStack([features] * n_models, CPU), K, seeds)


def dense_logits(nets: FilterNetworks, b: int, spread: Any) -> Any:
    """One model in plain NumPy: dense powers, dense attention, batch normalisation as a table."""
    config = nets.config

    def take(tensor: torch.Tensor) -> Any:
        return tensor[b].detach().numpy().astype(np.float64)

    x = (nets.features @ torch.eye(F).expand(len(nets.weights[0]), F, F))[b].numpy().astype(np.float64)
    a, c = fit_coefficients(config.feedback, config.feedforward, config.radius)
    power = np.linalg.matrix_power
    fed = sum(-value * power(-spread, p + 1) for p, value in enumerate(a))
    forward = sum(value * power(-spread, p) for p, value in enumerate(c))
    h = x
    for own, signal, bias, *norm_and_scores in nets.layers:
        scale, shift, scores = map(take, norm_and_scores)
        normal = (h - h.mean(axis=0)) / np.sqrt(h.var(axis=0) + VARIANCE_EPSILON) * scale + shift
        out = fed @ normal @ take(own) + forward @ x @ take(signal) + take(bias)
        width = out.shape[1] // config.n_heads
        parts = []
        for head in range(config.n_heads):
            mine, weights = (part[:, head * width : (head + 1) * width] for part in (out, scores))
            raw = (mine @ weights[0])[:, None] + mine @ weights[1]
            raw = np.where(raw > 0, raw, np.expm1(np.minimum(raw, 0)))
            soft = np.where(spread > 0, np.exp(raw - raw.max()), 0)
            parts.append(soft / soft.sum(axis=1, keepdims=True) @ mine)
        h = np.hstack([h, np.maximum(np.hstack(parts), 0)])
    return h @ take(nets.weights[-2]) + take(nets.weights[-1])


@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize("orders", [(5, 3), (1, 4)])
def test_logits_against_dense_powers(heads: int, orders: tuple[int, int]) -> None:
    nets = networks(FilterConfig(widths=(2, 3), n_heads=heads, feedback=orders[0], feedforward=orders[1]))
    draw = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for _, _, _, scale, shift, *_ in nets.layers:
            scale.copy_(torch.rand(scale.shape, generator=draw))
            shift.copy_(torch.rand(shift.shape, generator=draw))
        found = nets.logits(SparseStack([matrix(0), matrix(1)], CPU), None, None)
    for b in range(2):
        np.testing.assert_allclose(found[b], dense_logits(nets, b, matrix(b).toarray()), rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("heads", [1, 2])
def test_weights_of_unit_length(heads: int) -> None:
    nets = networks(FilterConfig(widths=(4, 2), n_heads=heads))
    with torch.no_grad():
        for weight in nets.weights:
            weight.mul_(3.0)
    nets.constrain()
    for own, signal, bias, _, _, *scores in nets.layers:
        for kernel in (own, signal):
            np.testing.assert_allclose(kernel.detach().norm(dim=1), 1, rtol=1e-5)
        for vectors in (bias, *scores):
            for part in vectors.detach().chunk(heads, dim=2):
                np.testing.assert_allclose(part.flatten(1).norm(dim=1), 1, rtol=1e-5)
    np.testing.assert_allclose(nets.weights[-2].detach().norm(dim=1), 1, rtol=1e-5)
    counted = sum(len(group["params"]) for group in nets.parameter_groups)
    assert counted == len(nets.weights)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"widths": ()}, "widths must be a list of integers"),
        ({"widths": (8, 0)}, "widths must be an integer of at least 1; got 0"),
        ({"propagation": "convolution"}, "propagation must be one of 'filter'"),
    ],
)
def test_wrong_configs(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        replace(FilterConfig(), **settings)


@pytest.mark.parametrize("dropped", [False, True])
def test_attention_is_a_masked_softmax(dropped: bool) -> None:
    graphs = SparseStack([matrix(0), matrix(1)], CPU)
    dense, own, other = (torch.randn(2, N, *rest, dtype=torch.float64) for rest in ((4,), (), ()))
    own, other = 3 * own, 3 * other
    factors = torch.rand(len(graphs.values), dtype=torch.float64) if dropped else None
    found = attend(graphs, dense, own, other, factors)
    place = 0
    for b, pattern in enumerate((matrix(0), matrix(1))):
        for i in range(N):
            neighbours = pattern.indices[pattern.indptr[i] : pattern.indptr[i + 1]].tolist()
            raw = [float(own[b, i] + other[b, j]) for j in neighbours]
            weights = np.exp([z if z > 0 else np.exp(z) - 1 for z in raw])
            weights /= weights.sum()
            if factors is not None:
                weights *= factors[place : place + len(neighbours)].numpy()
            place += len(neighbours)
            np.testing.assert_allclose(found[b, i], weights @ dense[b, neighbours].numpy(), rtol=1e-10)


@pytest.mark.parametrize("dropped", [False, True])
def test_gradient_of_attention(dropped: bool) -> None:
    graphs = SparseStack([matrix(0), matrix(1)], CPU, torch.float64)
    inputs = [torch.randn(2, N, *rest, dtype=torch.float64, requires_grad=True) for rest in ((2,), (), ())]
    factors = torch.rand(len(graphs.values), dtype=torch.float64) if dropped else None
    attend_graphs = lambda dense, own, other: attend(graphs, dense, own, other, factors)  # noqa: E731
    assert torch.autograd.gradcheck(attend_graphs, inputs)


def test_large_scores_do_not_overflow() -> None:
    graphs = SparseStack([matrix(0)], CPU)
    found = attend(graphs, torch.ones(1, N, 2), torch.full((1, N), 1e4), torch.full((1, N), 1e4), None)
    np.testing.assert_allclose(found, 1.0, rtol=1e-5)
