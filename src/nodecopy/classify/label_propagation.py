"""Label propagation (Zhou et al., 2004): training labels spread along edges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from nodecopy._core.validation import check_integer, check_real
from nodecopy.classify.base import Classifier
from nodecopy.classify.ensemble import Prediction, entropy
from nodecopy.classify.trial import Trial
from nodecopy.features.scaling import WeightScaling

ALPHAS = (0.5, 0.8, 0.9, 0.95, 0.99)
"""Values of ``alpha`` that are compared on validation nodes."""
DEFAULT_ALPHA = 0.95
"""The value without validation nodes."""


@dataclass(eq=False, repr=False)
class LabelPropagation(Classifier):
    """Classify nodes by the labels that reach them along edges; features are not used.

    In each step a node takes the share ``alpha`` of its score of a class from its neighbours, by
    D^-1/2 A D^-1/2, and the rest from its own label, if it is a training node. Scores are scaled to
    probabilities; a node that no label reaches has equal ones. In a directed graph, neighbours are those to
    which a node has an edge, and the degrees are out-degrees on the left and in-degrees on the right.

    Parameters
    ----------
    alpha
        The share that comes from neighbours. By default that of 0.5, 0.8, 0.9, 0.95 and 0.99 with the highest
        accuracy on validation nodes, ties going to the first, and 0.95 without validation nodes.
    n_steps
        Steps of propagation.
    weights
        Of edges, as in :class:`NetworkClassifier`.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.classify import LabelPropagation
    >>> fitted = LabelPropagation().fit(datasets.load("karate"), [0, 33])  # two labels
    >>> fitted.score() > 0.9
    True
    """

    alpha: float | None = None
    n_steps: int = 50
    _: KW_ONLY
    weights: str = "auto"

    def predict_trial(self, trial: Trial) -> Prediction:
        check_integer(self.n_steps, "n_steps of LabelPropagation", low=1)
        nodes, best = trial.validation, 0
        if self.alpha is not None:
            alphas: tuple[float, ...] = (check_real(self.alpha, "alpha of LabelPropagation", low=0, high=1),)
        else:
            alphas = (DEFAULT_ALPHA,) if nodes is None or not len(nodes) else ALPHAS
        candidates = self._propagate(trial, alphas)
        if len(alphas) > 1:
            is_right = candidates[:, nodes].argmax(axis=2) == trial.codes[nodes]
            best = int(is_right.mean(axis=1).argmax())
        return Prediction(candidates[best], entropy(candidates[best]), {"alpha": alphas[best]})

    def _propagate(self, trial: Trial, alphas: Sequence[float]) -> NDArray[np.float32]:
        """Return the probabilities with each alpha, ``[n_alphas, n_nodes, n_classes]``."""
        adjacency = trial.graph.adjacency
        adjacency = WeightScaling.fit(adjacency, self.weights).apply(adjacency).astype(np.float32)
        outgoing = _inverse_roots(adjacency.sum(axis=1))
        incoming = _inverse_roots(adjacency.sum(axis=0)) if trial.graph.directed else outgoing
        matrix = sparse.csr_array(outgoing @ adjacency @ incoming)
        n_nodes, shape = trial.graph.n_nodes, (trial.graph.n_nodes, len(alphas), trial.n_classes)
        own = np.zeros(shape, np.float32)
        weights = 1 if trial.weights is None else trial.weights[:, None]
        own[trial.train] = (weights * trial.label_probabilities)[:, None, :]
        shares = np.array(alphas, np.float32)[:, None]
        scores = own
        for _ in range(self.n_steps):
            spread = (matrix @ scores.reshape(n_nodes, -1)).reshape(shape)
            scores = shares * spread + (1 - shares) * own
        total = scores.sum(axis=2, keepdims=True)
        equal = np.full(shape, 1 / trial.n_classes, np.float32)
        probabilities: NDArray[np.float32] = np.divide(scores, total, where=total > 0, out=equal)
        return probabilities.transpose(1, 0, 2)


def _inverse_roots(degrees: NDArray[Any]) -> sparse.dia_array:
    """Return D^-1/2, with zeros for nodes without edges."""
    roots = np.divide(1, np.sqrt(degrees), where=degrees > 0, out=np.zeros_like(degrees))
    return sparse.diags_array(roots)
