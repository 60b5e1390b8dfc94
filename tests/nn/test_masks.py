from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.random import SeedSequence

from nodecopy.nn.stack import Masks, draw_keys

CPU = torch.device("cpu")
SEEDS = [SeedSequence([5, number]) for number in range(6)]
KEYS = draw_keys(SEEDS, CPU)
N = 2**16
LIMIT = 5.0
"""Standard errors; under independence one of the 100 comparisons here fails with probability 6e-5."""


@pytest.mark.parametrize("rate", [0.0, 0.1, 0.5, 0.8])
def test_the_share_dropped_and_the_expectation(rate: float) -> None:
    factors = Masks(KEYS, rate).draw(N, step=3, place=1).numpy()
    exact = round(256 * rate) / 256
    assert set(np.unique(factors)) <= {0, np.float32(1 / (1 - exact))}
    error = np.sqrt(exact * (1 - exact) / N)
    assert (np.abs((factors == 0).mean(axis=1) - exact) <= LIMIT * error).all()
    assert np.abs(factors.mean(axis=1) - 1).max() <= LIMIT * error / (1 - exact)


def test_models_steps_places_and_neighbours_are_independent() -> None:
    masks = Masks(KEYS, 0.5)
    drawn = [masks.draw(N, step=step, place=place) for step in (0, 1, 200) for place in (0, 1)]
    signs = torch.cat(drawn).numpy() - 1  # -1 or 1
    correlation = signs @ signs.T / np.sqrt(N)
    assert np.abs(correlation[np.triu_indices(len(signs), 1)]).max() < LIMIT
    for lag in (1, 2, 3, 4, 16):
        assert np.abs((signs[:, lag:] * signs[:, :-lag]).sum(axis=1)).max() < LIMIT * np.sqrt(N)


def test_a_mask_is_a_pure_function_of_model_step_and_place() -> None:
    masks = Masks(KEYS, 0.4)
    first = masks.draw(1001, step=7, place=2)
    masks.draw(10, step=8, place=0)
    assert torch.equal(masks.draw(1001, step=7, place=2), first)
    assert torch.equal(masks.draw(17, step=7, place=2), first[:, :17])
    assert torch.equal(Masks(draw_keys(SEEDS[4:5], CPU), 0.4).draw(1001, step=7, place=2), first[4:5])


def test_entries_drawn_one_by_one_are_the_same() -> None:
    masks = Masks(KEYS, 0.4)
    model = torch.tensor([0, 3, 5, 3, 1])
    position = torch.tensor([0, 1, 1000, 2, 999], dtype=torch.int32)
    expected = masks.draw(1001, step=9, place=0)[model, position.long()]
    assert torch.equal(masks.draw_at(model, position, step=9, place=0), expected)
