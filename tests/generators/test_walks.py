"""Walks of graphs, generators and critics: gathered rows against one-hot vectors, and distributions."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.random import SeedSequence
from torch import Tensor
from torch.nn.functional import one_hot

from nodecopy import datasets
from nodecopy.generators.netgan import (
    LSTM,
    PENALTY_WEIGHT,
    Critic,
    ObservedWalks,
    TorchRandom,
    WalkGenerator,
    gather_rows,
)

CPU = torch.device("cpu")


def torch_random(seed: int = 0) -> TorchRandom:
    return TorchRandom(SeedSequence(seed), CPU)


def test_observed_walks_follow_edges_uniformly() -> None:
    adjacency = datasets.load("karate").adjacency
    walks = ObservedWalks(adjacency, CPU).draw(20_000, 3, torch_random()).numpy()
    assert walks.shape == (20_000, 3)
    assert (np.asarray(adjacency[walks[:, :-1].ravel(), walks[:, 1:].ravel()]) > 0).all()
    starts = np.bincount(walks[:, 0], minlength=34)
    assert np.abs(starts - 20_000 / 34).max() < 5 * np.sqrt(20_000 / 34)
    after = walks[walks[:, 0] == 33, 1]
    counts = np.bincount(after, minlength=34)[adjacency.indices[slice(*adjacency.indptr[33:35])]]
    mean = len(after) / len(counts)
    assert np.abs(counts - mean).max() < 5 * np.sqrt(mean)


def test_the_layer_is_that_of_torch() -> None:
    layer = LSTM(5, 3, torch_random())
    inputs, state = torch_random(1).normal(7, 5), (torch_random(2).normal(7, 3), torch_random(3).normal(7, 3))
    with torch.no_grad():
        layer.weights[2].copy_(torch_random(4).normal(12))
    order = torch.cat([torch.arange(6), torch.arange(9, 12), torch.arange(6, 9)])  # content before output
    first, second = (weight.T[order] for weight in layer.weights[:2])
    reference = torch.lstm_cell(
        inputs, state, first, second, (layer.weights[2] + layer.forget)[order], torch.zeros(12)
    )
    for actual, expected in zip(layer.step(layer.gates(inputs), state), reference, strict=True):
        torch.testing.assert_close(actual, expected)


def test_straight_through_gradients_are_those_of_one_hot_vectors() -> None:
    logits, table = (
        torch_random().normal(4, 9).requires_grad_(),
        torch_random(1).normal(9, 5).requires_grad_(),
    )
    node, outer = torch.tensor([3, 3, 0, 8]), torch_random(2).normal(4, 5)

    def gradients(rows: Tensor) -> tuple[Tensor, ...]:
        return torch.autograd.grad((rows * outer).sum(), (logits, table))

    soft = logits.softmax(dim=1)
    hard = (one_hot(node, 9) - soft).detach() + soft
    reference = gradients(hard @ table)
    rows = gather_rows(table, node, logits.softmax(dim=1))
    assert torch.equal(rows, table[node])
    for actual, expected in zip(gradients(rows), reference, strict=True):
        torch.testing.assert_close(actual, expected)


def test_critic_loss_is_that_of_one_hot_walks() -> None:
    """Values and the gradients of every weight, second derivatives included."""
    critic, n_nodes = Critic(11, 4, 5, torch_random()), 11
    real, fake = (torch.randint(n_nodes, (6, 3), generator=torch_random(seed).source) for seed in (1, 2))
    wide = [one_hot(walks, n_nodes).float() for walks in (real, fake)]
    between = (wide[0] + torch_random(3).uniform(6, 1, 1) * (wide[1] - wide[0])).requires_grad_()
    (slopes,) = torch.autograd.grad(
        critic.scores(between @ critic.embedding).sum(), between, create_graph=True
    )
    penalty = ((slopes.square().sum(dim=(1, 2)).sqrt() - 1) ** 2).mean()
    scores = [critic.scores(walks @ critic.embedding).mean() for walks in wide]
    reference = scores[1] - scores[0] + PENALTY_WEIGHT * penalty
    loss = critic.loss(real, fake, torch_random(3))
    assert loss.item() == pytest.approx(reference.item(), rel=1e-5)
    pairs = zip(
        *(torch.autograd.grad(value, critic.weights[:-1]) for value in (loss, reference)), strict=True
    )
    for actual, expected in pairs:
        torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-6)


def test_both_ways_to_draw_walks_have_the_same_distribution() -> None:
    """Node positions by inversion, embedded ones by Gumbel noise; walks of two nodes are compared."""
    generator, n = WalkGenerator(3, 4, 2, torch_random()), 20_000
    with torch.no_grad():
        for weight in generator.weights:
            weight.copy_(torch_random(5).normal(*weight.shape))
    numbers = generator.draw(n, 2, torch_random(1)).numpy()
    rows = (
        generator.draw_embedded(n, 2, torch.tensor(5.0), torch.eye(3), torch_random(2)).argmax(dim=2).numpy()
    )
    counts = [np.bincount(walks @ [3, 1], minlength=9) for walks in (numbers, rows)]
    deviation = np.sqrt(counts[0] + counts[1] + 1)
    assert (np.abs(counts[0] - counts[1]) < 5 * deviation).all()
    assert np.count_nonzero(counts[0] > 200) >= 4


def test_only_the_generator_has_gradients() -> None:
    generator, critic = WalkGenerator(9, 4, 5, torch_random()), Critic(9, 4, 5, torch_random(1))
    walks = generator.draw_embedded(8, 3, torch.tensor(5.0), critic.embedding.detach(), torch_random(2))
    critic.scores(walks).mean().backward(inputs=generator.weights)  # type: ignore[no-untyped-call]
    for weight in generator.weights:
        assert weight.grad is not None
        assert weight.grad.abs().max() > 0
    assert all(weight.grad is None for weight in critic.weights)
