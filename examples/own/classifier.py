"""A classifier: random walks with restart at the training nodes of each class."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nodecopy.classify import Classifier, Trial


class RandomWalkClassifier(Classifier):
    """Predict a class by the personalised PageRank of the node from the training nodes of that class."""

    def __init__(self, restart: float = 0.1, n_steps: int = 50) -> None:
        self.restart, self.n_steps = restart, n_steps

    def predict_trial(self, trial: Trial) -> NDArray[np.float64]:
        n_nodes, adjacency = trial.graph.n_nodes, trial.graph.adjacency
        start = np.zeros((n_nodes, trial.n_classes))
        start[trial.train, trial.codes[trial.train]] = 1
        start /= start.sum(axis=0)
        rank, degrees = start, np.maximum(np.asarray(adjacency.sum(axis=1)), 1)[:, None]
        for _ in range(self.n_steps):
            rank = self.restart * start + (1 - self.restart) * (adjacency.T @ (rank / degrees))
        rank = rank + 1e-12  # nodes that no walk reaches are equally likely to be of any class
        return np.asarray(rank / rank.sum(axis=1, keepdims=True))
