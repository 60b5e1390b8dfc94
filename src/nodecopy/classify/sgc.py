"""Simplified graph convolution (Wu et al., 2019): logistic regression on propagated features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace

import numpy as np
from numpy.typing import NDArray

from nodecopy._core.validation import check_integer, check_real
from nodecopy.classify.base import Classifier
from nodecopy.classify.embedding_regression import EmbeddingRegression
from nodecopy.classify.ensemble import Prediction
from nodecopy.classify.propagated_features import PropagatedFeatures
from nodecopy.classify.softmax_regression import MAX_STRENGTH, softmax_regressions
from nodecopy.classify.trial import Trial, check_trials
from nodecopy.errors import InputError
from nodecopy.graph import Graph


@dataclass(eq=False, repr=False)
class SGC(Classifier):
    """Classify nodes by logistic regression on features that are propagated along edges.

    Nothing but the regression is trained, so that it takes a fraction of a second. With few labels it is more
    accurate than networks on some graphs, also as the base of :class:`SelfTraining`, whose default averages
    both.

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
        Inverse strength of the penalty of the regression, as in scikit-learn, of training nodes whose weights
        add up to one per class on average. So it means the same with few and with many labels.
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
    C: float = 10.0
    features: str = "auto"
    weights: str = "auto"

    @property
    def uses_validation(self) -> bool:
        return False

    def fit_trials(self, trials: Sequence[Trial], *, keep_networks: bool = False) -> list[Prediction]:
        check_real(self.restart, "restart of SGC", low=0, high=1)
        check_integer(self.n_steps, "n_steps of SGC", low=0)
        check_integer(self.rank, "rank of SGC", low=1)
        if check_real(self.C, "C of SGC", low=0, high=MAX_STRENGTH) == 0:
            raise InputError("C of SGC must be above 0; got 0.")
        trials = check_trials(trials)
        graphs = {id(trial.graph): trial.graph for trial in trials}
        embeddings = {key: self._propagate(graph) for key, graph in graphs.items()}
        predictions = []
        for trial in trials:
            embedding, rows = embeddings[id(trial.graph)]
            weights = np.ones(len(trial.train)) if trial.weights is None else trial.weights
            scaled = weights * (trial.n_classes / weights.sum())
            (solution,) = softmax_regressions(rows[trial.train], trial.label_probabilities, (self.C,), scaled)
            regression = EmbeddingRegression(embedding, *solution)
            prediction = regression.classify(rows)
            predictions.append(replace(prediction, networks=regression) if keep_networks else prediction)
        return predictions

    def _propagate(self, graph: Graph) -> tuple[PropagatedFeatures, NDArray[np.float64]]:
        """Return how features are propagated, and those of a graph."""
        return PropagatedFeatures.fit(
            graph,
            rank=self.rank,
            restart=self.restart,
            n_steps=self.n_steps,
            features=self.features,
            weights=self.weights,
        )
