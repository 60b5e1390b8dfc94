"""The one way to change weights: Adam's own steps, and only for the weights that were given."""

from __future__ import annotations

import torch
from torch import Tensor

from nodecopy.nn.adam import AdamStepper


def test_only_given_weights_change() -> None:
    mine, unused, other = (torch.ones(3, requires_grad=True) for _ in range(3))
    descent = AdamStepper([mine, unused], 0.1)
    for _ in range(3):
        descent.step(lambda: (mine * other).sum())
    assert (mine < 1).all()
    assert torch.equal(other, torch.ones(3))
    assert other.grad is None
    assert torch.equal(unused, torch.ones(3))


def test_betas_and_decay_are_those_of_adam() -> None:
    start, pull = torch.tensor([1.0, -2.0, 0.5]), torch.tensor([0.3, 0.1, -2.0])

    def loss(weights: Tensor) -> Tensor:
        return (weights**2 * pull).sum()

    mine, theirs = start.clone().requires_grad_(), start.clone().requires_grad_()
    descent = AdamStepper([{"params": [mine], "weight_decay": 0.2}], 0.01, (0.5, 0.9))
    adam = torch.optim.Adam([theirs], lr=0.01, betas=(0.5, 0.9), weight_decay=0.2)
    for _ in range(20):
        descent.step(lambda: loss(mine))
        adam.zero_grad()
        loss(theirs).backward()  # type: ignore[no-untyped-call]
        adam.step()
    torch.testing.assert_close(mine, theirs)
    assert (mine - start).abs().min() > 0.01
