"""A control: what the classifier says of a node that has no neighbours at all."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from nodecopy._core.csr import IntArray
from nodecopy.defend.base import Case, Correction


class WithoutEdges(Correction):
    """Predict nodes from their own features, by the trained classifier, as if they had no edges.

    A defence that does worse than this loses more by the neighbours it invents than it gains.
    Parameters are those of :class:`.Correction`.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.defend import WithoutEdges
    >>> digits = datasets.load("digits").subgraph(range(300))
    >>> split = datasets.label_split(digits.labels, 5, validation=0, test=200, rng=0)
    >>> WithoutEdges().fit(digits, split.train, rng=0).correct([7, 3]).shape
    (2, 10)
    """

    def _corrector(self, case: Case) -> NDArray[np.float32]:
        # A node without edges sees itself alone, so all nodes can lose theirs at once.
        n = case.graph.n_nodes
        return case.predict(case.graph.replace(adjacency=sparse.csr_array((n, n), dtype=np.float32)))

    def _corrected(self, corrector: Any, nodes: IntArray) -> NDArray[np.float32]:
        found: NDArray[np.float32] = corrector[nodes]
        return found
