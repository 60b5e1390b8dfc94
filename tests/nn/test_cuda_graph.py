from __future__ import annotations

import pytest
import torch

from nodecopy.nn.cuda_graph import N_WARM_UP_STEPS, CudaGraphStep

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


def test_replayed_steps_continue_the_sequence_of_plain_steps() -> None:
    sums = []
    for is_replayed in (False, True):
        source = torch.Generator("cuda").manual_seed(0)
        total = torch.zeros(5, device="cuda")

        def step(total: torch.Tensor = total, source: torch.Generator = source) -> None:
            total.add_(torch.rand(5, device="cuda", generator=source))

        take_step = CudaGraphStep(step, source) if is_replayed else step
        for _ in range(N_WARM_UP_STEPS + 4):
            take_step()
        sums.append(total.cpu())
    torch.testing.assert_close(sums[0], sums[1])
