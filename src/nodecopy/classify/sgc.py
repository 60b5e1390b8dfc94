"""Simplified graph convolution (Wu et al., 2019): logistic regression on propagated features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass

import numpy as np
from numpy.typing import NDArray

from nodecopy._core.csr import unit_rows
from nodecopy._core.validation import check_integer, check_real
from nodecopy.classify.base import Classifier
from nodecopy.classify.ensemble import Prediction, entropy
from nodecopy.classify.softmax_regression import classify_embeddings
from nodecopy.classify.trial import Trial, check_trials
from nodecopy.errors import InputError
from nodecopy.features.node_embeddings import reduce_rank, weigh_by_rarity
from nodecopy.features.scaling import FeatureScaling, WeightScaling
from nodecopy.graph import Graph
from nodecopy.nn.feature_matrices import check_features
from nodecopy.nn.stack import normalise_adjacency


@dataclass(eq=False, repr=False)
class SGC(Classifier):
    """Classify nodes by logistic regression on features that are propagated along edges.

    Nothing but the regression is trained, so that it takes a fraction of a second. With few labels it is more
    accurate than networks on some graphs, also as the base of :class:`SelfTraining`.

    Parameters
    ----------
    restart
        The share of a node's own features in each step, as in :class:`APPNP`: the smaller, the farther
        features are propagated.
    n_steps
        Steps of propagation.
    rank
        Dimension to which features, weighted by TF-IDF, are reduced before, by a truncated SVD.
    C
        Inverse strength of the penalty of the regression, as in scikit-learn.
    features
        ``"auto"`` (default) standardises features unless they are word counts; other values are as in
        :class:`NetworkClassifier`.
    weights
        Scaling of edge weights, as in :class:`NetworkClassifier`.

    Notes
    -----
    The published method has no restarts and two steps. Propagated features have unit length, and are then
    scaled so that their mean squared distance from their mean is one, for ``C`` to mean the same on graphs in
    which propagation leaves little difference between nodes.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.classify import SGC
    >>> digits = datasets.load("digits")
    >>> few = datasets.label_split(digits.labels, 3, rng=0).train  # three images of each digit
    >>> SGC().fit(digits, few).score() > 0.85
    True
    """

    restart: float = 0.1
    _: KW_ONLY
    n_steps: int = 30
    rank: int = 64
    C: float = 2.0
    features: str = "auto"
    weights: str = "auto"

    def fit_trials(self, trials: Sequence[Trial], *, keep_networks: bool = False) -> list[Prediction]:
        check_real(self.restart, "restart of SGC", low=0, high=1)
        check_integer(self.n_steps, "n_steps of SGC", low=0)
        check_integer(self.rank, "rank of SGC", low=1)
        if check_real(self.C, "C of SGC", low=0) == 0:
            raise InputError("C of SGC must be above 0; got 0.")
        trials = check_trials(trials)
        graphs = {id(trial.graph): trial.graph for trial in trials}
        embeddings = {key: self._propagate(graph) for key, graph in graphs.items()}
        predictions = []
        for trial in trials:
            (probabilities,) = classify_embeddings(trial, embeddings[id(trial.graph)], (self.C,))
            predictions.append(Prediction(probabilities, entropy(probabilities)))
        return predictions

    def _propagate(self, graph: Graph) -> NDArray[np.float64]:
        """Return the scaled features of all nodes after propagation."""
        check_features(graph)
        adjacency = WeightScaling.fit(graph.adjacency, self.weights).apply(graph.adjacency)
        matrix = normalise_adjacency(adjacency)
        scaling = FeatureScaling.fit(
            graph.features, self.features, encoder=graph.feature_encoder, counts="none"
        )
        weighted = weigh_by_rarity(scaling.apply(graph.features))
        own = reduce_rank(weighted, self.rank).astype(np.float32)
        rows = own
        for _ in range(self.n_steps):
            rows = np.asarray((1 - self.restart) * (matrix @ rows) + self.restart * own)
        rows = unit_rows(rows.astype(np.float64))
        variance = float(np.square(rows - rows.mean(axis=0)).sum(axis=1).mean())
        scaled: NDArray[np.float64] = rows / np.sqrt(variance or 1.0)
        return scaled
