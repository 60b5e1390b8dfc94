"""Link prediction as Kipf and Welling measure it, for tests and benchmarks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score, roc_auc_score

from nodecopy import Graph
from nodecopy.generators import split_edges
from nodecopy.generators.autoencoders import GraphAutoencoder


def score_link_prediction(
    build_model: Callable[[], GraphAutoencoder], graph: Graph, n_splits: int
) -> NDArray[Any]:
    """Return AUC and average precision of the test pairs in percent, averaged over splits."""
    scores = []
    for seed in range(n_splits):
        split = split_edges(graph, rng=seed)
        model = build_model().fit(split.train, rng=100 + seed)
        probabilities = model.edge_probabilities(*np.hstack(split.test))
        truth = np.repeat([1, 0], split.test.edges.shape[1])
        scores.append([roc_auc_score(truth, probabilities), average_precision_score(truth, probabilities)])
    mean: NDArray[Any] = 100 * np.mean(scores, axis=0)
    return mean
