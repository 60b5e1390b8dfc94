"""Training steps: Adam's, the one place in which the engine changes weights, and recorded steps on a GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

LANES = 16
"""Entries that Adam updates together on a CPU; those beyond the last multiple are rounded differently."""
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
    models_first
        Whether the first axis of every weight numbers independent models. On a CPU, the steps of a model then
        have the same bits alone and beside others: entries of a model are padded to a multiple of
        :data:`LANES`.
    """

    def __init__(
        self,
        weights: Iterable[Any],
        learning_rate: float,
        betas: tuple[float, float] = (0.9, 0.999),
        capturable: bool = False,
        models_first: bool = False,
    ) -> None:
        self._optimiser = torch.optim.Adam(
            weights, lr=learning_rate, betas=betas, fused=True, capturable=capturable
        )
        self._weights = [weight for group in self._optimiser.param_groups for weight in group["params"]]
        self._padded: list[tuple[Tensor, Tensor]] = []
        for group in self._optimiser.param_groups if models_first else ():
            group["params"] = [self._pad(weight) for weight in group["params"]]

    def step(self, loss: Callable[[], Tensor]) -> None:
        """Compute a loss and take one step along its gradient; other weights in the loss do not change."""
        self._optimiser.zero_grad(set_to_none=True)
        for weight, _ in self._padded:
            weight.grad = None
        loss().backward(inputs=self._weights)  # type: ignore[no-untyped-call]
        for weight, padded in self._padded:
            _fill(padded, weight)
            if weight.grad is not None:
                padded.grad = torch.zeros_like(padded)
                _fill(padded.grad, weight.grad)
        self._optimiser.step()
        for weight, padded in self._padded:
            weight.data.copy_(padded[:, : weight[0].numel()].view_as(weight))

    def _pad(self, weight: Tensor) -> Tensor:
        """Return a weight, or a padded copy that takes its place in the optimiser."""
        size = weight[0].numel()
        if weight.device.type != "cpu" or size % LANES == 0:
            return weight
        padded = weight.new_zeros(len(weight), size + -size % LANES)
        self._padded.append((weight, padded))
        return padded


@torch.no_grad()
def _fill(padded: Tensor, values: Tensor) -> None:
    """Write the entries of every model to the beginning of its padded row."""
    padded[:, : values[0].numel()] = values.flatten(1)


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
