"""A training step that is recorded once and then replayed (CUDA graphs).

Running thousands of small kernels takes a GPU less time than launching them one by one.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

N_WARM_UP_STEPS = 3
"""Steps before the recording, in which optimisers create their state and libraries choose kernels."""


class CudaGraphStep:
    """Call it to take the step, which must do the same every time and not read a result on the CPU.

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
