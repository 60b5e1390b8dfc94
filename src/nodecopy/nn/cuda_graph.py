"""A step that is taken over and over, recorded once and played back (CUDA graphs).

Thousands of small kernels cost a GPU less time than it takes to launch them one by one.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

WARM_UP = 3
"""Plain runs before the recording, in which optimisers make their state and libraries choose kernels."""


class Replay:
    """Call it to take the step; the step must do the same every time, without a look at a result.

    Parameters
    ----------
    step
        What is done; everything it reads and changes lives in tensors on the device of ``source``.
    source
        The only generator the step draws from.
    """

    def __init__(self, step: Callable[[], None], source: torch.Generator) -> None:
        self._step, self._source, self._runs = step, source, 0
        self._graph: torch.cuda.CUDAGraph | None = None

    def __call__(self) -> None:
        with torch.cuda.device(self._source.device):
            if self._runs < WARM_UP:
                self._runs += 1
                self._run_aside()
                return
            if self._graph is None:  # recording runs nothing
                self._graph = torch.cuda.CUDAGraph()
                self._graph.register_generator_state(self._source)
                with torch.cuda.graph(self._graph):
                    self._step()
            self._graph.replay()

    def _run_aside(self) -> None:
        """On a stream of its own, as a recording will."""
        here, aside = torch.cuda.current_stream(), torch.cuda.Stream()  # type: ignore[no-untyped-call]
        aside.wait_stream(here)
        with torch.cuda.stream(aside):
            self._step()
        here.wait_stream(aside)
