"""Soft voting: the weighted mean of the probabilities of several classifiers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nodecopy._core.notices import log_decisions_once
from nodecopy._core.validation import check_finite, check_numbers, check_type, check_vector, show
from nodecopy.classify.base import Classifier
from nodecopy.classify.ensemble import Prediction, TrainedNetworks
from nodecopy.classify.trial import Trial
from nodecopy.errors import InputError
from nodecopy.graph import Graph

ALLOWED = "a list of at least one classifier, such as [GCN(), SGC()]"


@dataclass(eq=False, repr=False)
class SoftVoting(Classifier):
    """Classify nodes by the weighted mean of the probabilities of several classifiers.

    Classifiers that err at other nodes correct each other. Their disagreement counts as epistemic
    uncertainty.

    Parameters
    ----------
    classifiers
        The classifiers. Each is fitted to the same training nodes.
    weights
        Weights of the classifiers in the mean, at least 0; equal by default.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.classify import GCN, SGC, SoftVoting
    >>> digits = datasets.load("digits")
    >>> few = datasets.label_split(digits.labels, 3, rng=0).train  # three images of each digit
    >>> SoftVoting([GCN(n_epochs=50), SGC()], [1, 2]).fit(digits, few, rng=0).score() > 0.85
    True
    """

    classifiers: Sequence[Classifier]
    weights: ArrayLike | None = None

    def fit_trials(self, trials: Sequence[Trial], *, keep_networks: bool = False) -> list[Prediction]:
        classifiers, weights = self._check_parameters()
        with log_decisions_once():
            of_classifiers = [
                classifier.fit_trials(trials, keep_networks=keep_networks) for classifier in classifiers
            ]
        return [average(predictions, weights) for predictions in zip(*of_classifiers, strict=True)]

    def _check_parameters(self) -> tuple[list[Classifier], NDArray[np.float64]]:
        """Return the classifiers and their weights, which add up to one."""
        is_list = isinstance(self.classifiers, (list, tuple))  # a set has no order that weights could follow
        given: list[Classifier] = list(self.classifiers) if is_list else []
        if not given or not all(isinstance(classifier, Classifier) for classifier in given):
            raise InputError(f"classifiers of SoftVoting must be {ALLOWED}; got {show(self.classifiers)}.")
        if self.weights is None:
            return given, np.full(len(given), 1 / len(given))
        name = "weights of SoftVoting"
        vector = check_vector(self.weights, name, length=len(given), per="classifier")
        weights = check_numbers(vector, name).astype(np.float64)
        check_finite(weights, name)
        if (weights < 0).any() or not weights.any():
            raise InputError(f"{name} must be at least 0, and one above 0; got {show(self.weights)}.")
        weights = weights / weights.max()  # whose sum does not overflow
        return given, weights / weights.sum()

    def predict_graph(self, graph: Graph) -> ArrayLike | Prediction:
        if self.check_fitted().networks is None:
            names = ", ".join(type(classifier).__name__ for classifier in self.classifiers)
            raise InputError(
                "graph must be left out: a SoftVoting predicts on other graphs than that of fit only if all "
                f"of its classifiers do; got {names}."
            )
        return super().predict_graph(graph)

    def training_parameters(self) -> dict[str, Any]:
        of_classifiers = [classifier.training_parameters()["parameters"] for classifier in self.classifiers]
        return {"parameters": set().union(*of_classifiers), "owner": "its classifiers"}

    def network_device(self) -> str:
        """Return the device of the first classifier that is not on the CPU."""
        devices = [classifier.network_device() for classifier in self._check_parameters()[0]]
        return next((device for device in devices if device != "cpu"), "cpu")


@dataclass(frozen=True, eq=False)
class VotingNetworks:
    """The trained networks of several classifiers, whose predictions are averaged.

    Parameters
    ----------
    networks
        Of each classifier.
    weights
        Of the classifiers, which add up to one.
    """

    networks: tuple[TrainedNetworks, ...]
    weights: NDArray[np.float64]

    def predict(self, graph: Graph, device: str) -> Prediction:
        """Return the weighted mean of the predictions on a graph."""
        return average([networks.predict(graph, device) for networks in self.networks], self.weights)

    def check(self, n_classes: int) -> None:
        """Raise an error unless there are networks that predict, each with a weight, as in a whole file."""
        check_type(self.networks, tuple, "networks of the vote", "a tuple of networks")
        weights = check_vector(
            self.weights, "weights of the vote", length=len(self.networks), per="classifier"
        )
        check_finite(check_numbers(weights, "weights of the vote"), "weights of the vote")
        if not len(weights) or (weights < 0).any() or abs(weights.sum() - 1) > 1e-6:
            raise InputError(
                f"weights of the vote must be at least 0 with a sum of 1; got {weights.tolist()}."
            )
        for networks in self.networks:
            check = getattr(networks, "check", None)
            if check is None or not callable(getattr(networks, "predict", None)):
                raise InputError(f"networks of the vote must predict; got {show(networks)}.")
            check(n_classes)


def average(predictions: Sequence[Prediction], weights: NDArray[np.float64]) -> Prediction:
    """Return the weighted mean of predictions; the networks are kept if all predictions have some."""
    networks = tuple(prediction.networks for prediction in predictions if prediction.networks is not None)
    details = {name: value for prediction in predictions for name, value in prediction.details.items()}
    return Prediction(
        np.average([p.probabilities for p in predictions], axis=0, weights=weights).astype(np.float32),
        np.average([p.mean_entropy for p in predictions], axis=0, weights=weights).astype(np.float32),
        details,
        VotingNetworks(networks, weights) if len(networks) == len(predictions) else None,
    )
