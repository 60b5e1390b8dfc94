"""Label propagation (Zhou et al., 2004): training labels spread along edges."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse

from nodecopy._core.arrays import Singles
from nodecopy._core.checks import check_integer, check_real
from nodecopy._core.messages import log_decision, warn_about_data
from nodecopy.classify.base import Classifier, Prediction, Trial, entropy
from nodecopy.errors import InputError
from nodecopy.features.scaling import WeightScaling
from nodecopy.graph import Graph
from nodecopy.nn.networks import SparseStack

ALPHAS: tuple[float, ...] = (0.5, 0.8, 0.9, 0.95, 0.99)  # compared on validation nodes
DEFAULT_ALPHA = 0.95  # the value without validation nodes


@dataclass(eq=False, repr=False)
class LabelPropagation(Classifier):
    """Classify nodes by the labels that reach them along edges; features are not used.

    In each step a node takes the share ``alpha`` of its score of a class from its neighbours, by
    D^-1/2 A D^-1/2, and the rest from its own label, if it is a training node. Scores are scaled to
    probabilities, which are equal, with a warning, if no label reaches a node. In directed graphs A + A^T
    replaces A.

    Parameters
    ----------
    alpha
        The share of neighbours, below 1. By default that of 0.5, 0.8, 0.9, 0.95 and 0.99 with the highest
        validation accuracy, ties going to the first, and 0.95 without validation nodes.
    n_steps
        Steps of propagation.
    weights
        Of edges, as in :class:`NetworkClassifier`.

    Notes
    -----
    ``prediction_.details`` holds ``alpha`` and the number of nodes that no label reaches (``unreached``).

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.classify import LabelPropagation
    >>> fitted = LabelPropagation().fit(datasets.load("karate"), [0, 33])  # two labels
    >>> fitted.score() > 0.9
    True
    """

    needs_features: ClassVar[bool] = False

    alpha: float | None = None
    n_steps: int = 50
    _: KW_ONLY
    weights: str = "auto"

    def log_choices(self) -> None:
        """Log how labels have spread, and warn of nodes that none has reached."""
        details, nodes = self.prediction_.details, self.trial_.validation
        if self.trial_.graph.directed:
            log_decision("label propagation: labels spread along both directions of the directed edges.")
        if self.alpha is None:
            since = "the default without validation nodes"
            if nodes is not None and len(nodes):
                since = f"the most accurate of {len(ALPHAS)} values on the validation nodes ({len(nodes)})"
            log_decision(f"label propagation: alpha is {details['alpha']}, {since}.", "alpha")
        if details["unreached"]:
            warn_about_data(
                f"no label reaches {details['unreached']} of {len(self.node_ids_)} nodes in {self.n_steps} "
                f"steps along edges: their predicted class is the first, {self.classes_[0]}. Label a node in "
                "each connected component, or use a classifier that reads features."
            )

    def predict_trial(self, trial: Trial) -> Prediction:
        check_integer(self.n_steps, "n_steps of LabelPropagation", low=1)
        nodes, best = trial.validation, 0
        alphas = ALPHAS if trial.has_validation else (DEFAULT_ALPHA,)
        if self.alpha is not None:
            alphas = (check_real(self.alpha, "alpha of LabelPropagation", low=0, high=1),)
            if np.float32(alphas[0]) == 1:
                allowed = f"must be below 1, for labels to count; got {self.alpha!r}. Use 0.99."
                raise InputError("alpha of LabelPropagation", allowed)
        matrix, labels = spreading_matrix(trial.graph, self.weights), trial.label_probabilities
        own = np.zeros((trial.graph.n_nodes, trial.n_classes), np.float32)
        own[trial.train] = labels if trial.weights is None else trial.weights[:, None] * labels
        spread = [propagate(matrix, own, 1 - alpha, self.n_steps) for alpha in alphas]
        candidates = [normalise(scores) for scores in spread]
        if len(alphas) > 1:
            best = int(
                np.argmax([(p[nodes].argmax(axis=1) == trial.codes[nodes]).mean() for p in candidates])
            )
        n_unreached = int((spread[best].sum(axis=1) == 0).sum())
        details = {"alpha": alphas[best], "unreached": n_unreached}
        return Prediction(candidates[best], entropy(candidates[best]), details)


def propagate(matrix: Any, own: NDArray[Any], restart: float, n_steps: int, device: str = "cpu") -> Singles:
    """Return ``own`` after steps of propagation with restarts."""
    rows: Any = own
    if device != "cpu":
        matrix = SparseStack([matrix], torch.device(device)).tensor
        rows = own = torch.from_numpy(own).to(device)  # type: ignore[assignment]
    for _ in range(n_steps):
        rows = (1 - restart) * (matrix @ rows) + restart * own
    return np.asarray(rows if device == "cpu" else rows.cpu().numpy(), np.float32)


def normalise(scores: NDArray[Any]) -> NDArray[Any]:
    """Return rows scaled to a sum of one; equal probabilities if all are zero."""
    total = scores.sum(axis=1, keepdims=True)
    equal = np.full(scores.shape, 1 / scores.shape[1], scores.dtype)
    return np.asarray(np.divide(scores, total, where=total > 0, out=equal))


def spreading_matrix(graph: Graph, weights: str) -> sparse.csr_array:
    """Return D^-1/2 A D^-1/2 with scaled weights, where A + A^T replaces A in directed graphs."""
    adjacency = WeightScaling.fit(graph.adjacency, weights).apply(graph.adjacency).astype(np.float32)
    if graph.directed:
        adjacency = adjacency + adjacency.T
    degrees = adjacency.sum(axis=1)
    inverse = np.divide(1, np.sqrt(degrees), where=degrees > 0, out=np.zeros_like(degrees))
    roots = sparse.diags_array(inverse)
    return sparse.csr_array(roots @ adjacency @ roots)
