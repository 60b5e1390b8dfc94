"""The one way to change weights: Adam's own steps, and only for the weights that were given."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from nodecopy.nn.training import AdamStepper


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


@pytest.mark.parametrize("shape", [(1, 7), (5, 3), (16, 2)])
def test_models_have_the_same_bits_alone_and_beside_others(shape: tuple[int, ...]) -> None:
    """Before, Adam rounded the last entries of a tensor differently, whichever model they were of."""
    source = torch.Generator().manual_seed(0)
    start, pulls = (torch.randn(5, *shape, generator=source) for _ in range(2))

    def train(models: slice) -> Tensor:
        weight, unused = (start[models].clone().requires_grad_() for _ in range(2))
        groups = [{"params": [weight, unused], "weight_decay": 0.1}]
        stepper = AdamStepper(groups, 0.05, models_first=True)
        for _ in range(50):
            stepper.step(lambda: ((weight - pulls[models]) ** 4).sum())
        assert torch.equal(unused, start[models])
        return weight.detach()

    together = train(slice(None))
    assert (together - start).abs().mean() > 0.1
    for model in range(5):
        assert torch.equal(train(slice(model, model + 1))[0], together[model])
