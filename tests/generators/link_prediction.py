"""Link prediction as Kipf and Welling measure it, for tests and benchmarks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score, roc_auc_score

from nodecopy import Graph
from nodecopy.generators import GAE, link_split


def link_prediction(model: Callable[[], GAE], graph: Graph, n_splits: int) -> NDArray[Any]:
    """AUC and AP of the test pairs in percent, the mean over splits."""
    found = []
    for seed in range(n_splits):
        split = link_split(graph, rng=seed)
        scores = model().fit(split.train, rng=100 + seed).edge_probabilities(*np.hstack(split.test))
        truth = np.repeat([1, 0], split.test.edges.shape[1])
        found.append([roc_auc_score(truth, scores), average_precision_score(truth, scores)])
    mean: NDArray[Any] = 100 * np.mean(found, axis=0)
    return mean
