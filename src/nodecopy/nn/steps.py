"""Training steps: Adam's, the one place in which the engine changes weights, and recorded steps on a GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

N_WARM_UP_STEPS = 3
"""Steps before the recording, in which optimisers create their state and libraries choose kernels."""


class AdamStepper:
    """Weights that are changed by steps of Adam.

    Parameters
    ----------
    weights
        Tensors, or groups of them with settings of their own, as ``torch.optim`` takes them.
    learning_rate, betas
        Of Adam.
    capturable
        Whether steps can be recorded by a :class:`CudaGraphStep`.
    """

    def __init__(
        self,
        weights: Iterable[Any],
        learning_rate: float,
        betas: tuple[float, float] = (0.9, 0.999),
        capturable: bool = False,
    ) -> None:
        self._optimiser = torch.optim.Adam(
            weights, lr=learning_rate, betas=betas, fused=True, capturable=capturable
        )
        self._weights = [weight for group in self._optimiser.param_groups for weight in group["params"]]

    def step(self, loss: Callable[[], Tensor]) -> None:
        """Compute a loss and take one step along its gradient; other weights in the loss do not change."""
        self._optimiser.zero_grad(set_to_none=True)
        loss().backward(inputs=self._weights)  # type: ignore[no-untyped-call]
        self._optimiser.step()


class CudaGraphStep:
    """A step that is recorded once and then replayed (CUDA graphs) when it is called.

    Running thousands of small kernels takes a GPU less time than launching them one by one. The step must do
    the same every time and not read a result on the CPU.

    Parameters
    ----------
    step
        The step; everything that it reads and changes is in tensors on the device of ``source``.
    source
        The only generator the step draws from.
    """

    def __init__(self, step: Callable[[], None], source: torch.Generator) -> None:
        self._step, self._source, self._runs = step, source, 0
        self._graph: torch.cuda.CUDAGraph | None = None

    def __call__(self) -> None:
        with torch.cuda.device(self._source.device):
            if self._runs < N_WARM_UP_STEPS:
                self._runs += 1
                self._run_on_side_stream()
                return
            if self._graph is None:  # recording does not run the step
                self._graph = torch.cuda.CUDAGraph()
                self._graph.register_generator_state(self._source)
                with torch.cuda.graph(self._graph):
                    self._step()
            self._graph.replay()

    def _run_on_side_stream(self) -> None:
        """Take the step on a stream of its own, as a recording does."""
        here, aside = torch.cuda.current_stream(), torch.cuda.Stream()  # type: ignore[no-untyped-call]
        aside.wait_stream(here)
        with torch.cuda.stream(aside):
            self._step()
        here.wait_stream(aside)
