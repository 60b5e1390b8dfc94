"""Deep Graph Infomax (Velickovic et al., 2019) with logistic regression on its embeddings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from nodecopy._core.random import Rng, child
from nodecopy._core.validation import check_integer, check_real
from nodecopy.classify.base import Classifier
from nodecopy.classify.embedding_regression import EmbeddingRegression
from nodecopy.classify.ensemble import Prediction
from nodecopy.classify.infomax_embedding import InfomaxEmbedding
from nodecopy.classify.seeds import ClassifierSeeds
from nodecopy.classify.softmax_regression import MAX_STRENGTH, softmax_regressions
from nodecopy.classify.trial import Trial, check_trials
from nodecopy.errors import InputError
from nodecopy.graph import Graph
from nodecopy.nn.devices import check_device

STRENGTHS = (1000.0, 100.0, 10.0, 1.0)
"""Values of ``C`` that are compared on validation nodes."""
DEFAULT_STRENGTH = 10.0
"""The value without validation nodes."""


@dataclass(eq=False, repr=False)
class DGI(Classifier):
    """Classify nodes by logistic regression on embeddings that are trained without labels.

    The embeddings are those of Deep Graph Infomax: the outputs of one graph convolution, trained to
    differ from those of the graph with permuted features. They are scaled to unit length.

    Parameters
    ----------
    n_hidden
        Dimension of the embeddings.
    C
        Inverse strength of the penalty of the regression, as in scikit-learn. By default that of 1, 10, 100
        and 1000 with the highest accuracy on validation nodes, ties going to the largest, and 10 without
        validation nodes.
    learning_rate
        Of Adam.
    n_epochs
        Epochs of training, at most.
    patience
        Epochs without a lower loss before training stops and takes back the best weights.
    features, weights
        Scaling of features and edge weights, as in :class:`NetworkClassifier`.
    seed
        Of the embeddings, which depend on the graph and not on its labels: with a fixed seed, as by default,
        they are trained once for all trials on a graph, and ``rng`` of ``fit`` has no effect. ``None`` draws
        them from ``rng``, so that the variance over seeds includes theirs.
    device
        ``"cpu"`` or ``"cuda"``.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.classify import DGI
    >>> digits = datasets.load("digits")
    >>> few = datasets.label_split(digits.labels, 3, rng=0).train  # three images of each digit
    >>> DGI(64, n_epochs=30).fit(digits, few).score() > 0.7
    True
    """

    n_hidden: int = 512
    _: KW_ONLY
    C: float | None = None
    learning_rate: float = 0.001
    n_epochs: int = 2000
    patience: int = 20
    features: str = "auto"
    weights: str = "auto"
    seed: int | None = 0
    device: str = "cpu"

    def fit_trials(self, trials: Sequence[Trial], *, keep_networks: bool = False) -> list[Prediction]:
        for name in ("n_hidden", "n_epochs", "patience"):
            check_integer(getattr(self, name), f"{name} of DGI", low=1)
        if self.seed is not None:
            check_integer(self.seed, "seed of DGI", low=0, high=math.inf)
        check_real(self.learning_rate, "learning_rate of DGI", low=0)
        if self.C is not None and check_real(self.C, "C of DGI", low=0, high=MAX_STRENGTH) == 0:
            raise InputError("C of DGI must be above 0; got 0.")
        device = check_device(self.device)
        trials = check_trials(trials)
        if self.seed is None:
            embeddings = [
                self._embed(trial.graph, child(trial.rng, ClassifierSeeds.NETWORKS), device)
                for trial in trials
            ]
        else:
            graphs = {id(trial.graph): trial.graph for trial in trials}
            by_graph = {key: self._embed(graph, self.seed, device) for key, graph in graphs.items()}
            embeddings = [by_graph[id(trial.graph)] for trial in trials]
        pairs = zip(trials, embeddings, strict=True)
        predictions = [self._classify(trial, *embedding, device) for trial, embedding in pairs]
        return predictions if keep_networks else [replace(each, networks=None) for each in predictions]

    def _embed(
        self, graph: Graph, seed: Rng, device: torch.device
    ) -> tuple[InfomaxEmbedding, NDArray[np.float32]]:
        """Return the trained layer, and the embeddings of a graph."""
        return InfomaxEmbedding.fit(
            graph,
            seed,
            features=self.features,
            weights=self.weights,
            device=device,
            n_hidden=self.n_hidden,
            learning_rate=self.learning_rate,
            n_epochs=self.n_epochs,
            patience=self.patience,
        )

    def _classify(
        self, trial: Trial, embedding: InfomaxEmbedding, rows: NDArray[np.float32], device: torch.device
    ) -> Prediction:
        """Return the prediction of the regression with the best penalty."""
        nodes = trial.validation
        has_validation = nodes is not None and len(nodes) > 0
        strengths = STRENGTHS if has_validation else (DEFAULT_STRENGTH,)
        if self.C is not None:
            strengths = (self.C,)
        solutions = softmax_regressions(
            rows[trial.train].astype(np.float64), trial.label_probabilities, strengths, trial.weights, device
        )
        regressions = [EmbeddingRegression(embedding, *solution) for solution in solutions]
        candidates = [regression.classify(rows) for regression in regressions]
        best = 0
        if len(strengths) > 1:
            scores = [
                (candidate.probabilities[nodes].argmax(axis=1) == trial.codes[nodes]).mean()
                for candidate in candidates
            ]
            best = int(np.argmax(scores))
        details = {"C": strengths[best], "epochs": embedding.n_epochs}
        return replace(candidates[best], details=details, networks=regressions[best])
