from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from nodecopy.classify import GCN, BayesianGCN, Trial
from nodecopy.classify.ensemble import Ensemble, Prediction, entropy
from nodecopy.errors import InputError
from tests.contracts.classifiers import planted_graph

GRAPH = planted_graph()


def test_entropy_in_nats_of_arrays_and_tensors() -> None:
    p = np.array([[1.0, 0.0], [0.5, 0.5], [0.25, 0.75]])
    expected = [0.0, np.log(2), -(0.25 * np.log(0.25) + 0.75 * np.log(0.75))]
    np.testing.assert_allclose(entropy(p), expected, atol=1e-12)
    np.testing.assert_allclose(entropy(torch.from_numpy(p)).numpy(), expected, atol=1e-12)


def test_uncertainty_of_two_samples_that_disagree() -> None:
    """Two certain samples of different classes: all uncertainty is epistemic."""
    prediction = Prediction(np.array([[0.5, 0.5]], np.float32), np.zeros(1, np.float32))
    uncertainty = prediction.uncertainty()
    np.testing.assert_allclose(uncertainty.total, np.log(2), rtol=1e-6)
    np.testing.assert_allclose(uncertainty.epistemic, np.log(2), rtol=1e-6)
    assert uncertainty.aleatoric.tolist() == [0.0]


def test_rounding_does_not_make_the_epistemic_part_negative() -> None:
    prediction = Prediction(np.array([[0.5, 0.5]], np.float32), np.array([0.7], np.float32))
    assert prediction.uncertainty().epistemic.tolist() == [0.0]


def test_samples_are_averaged_and_so_are_their_entropies() -> None:
    samples = np.random.default_rng(0).dirichlet(np.ones(3), (4, 5))
    prediction = Prediction.from_samples(samples)
    np.testing.assert_allclose(prediction.probabilities, samples.mean(axis=0), atol=1e-6)
    np.testing.assert_allclose(prediction.mean_entropy, entropy(samples).mean(axis=0), atol=1e-6)
    for given in (torch.from_numpy(samples), list(samples), iter(samples)):
        other = Prediction.from_samples(given)
        assert np.array_equal(other.probabilities, prediction.probabilities)
    alone = Prediction.from_samples(samples[:1])
    assert alone.uncertainty().epistemic.max() < 1e-6


@pytest.mark.parametrize(
    ("samples", "message"),
    [
        (np.ones((2, 2)) / 2, r"samples must have the shape \[n_samples, n_nodes, n_classes\].* \(2, 2\)"),
        (np.ones((0, 2, 2)), "with at least one sample"),
        (np.ones((1, 2, 2)), r"samples must be probabilities.* got a row \[1. 1.\]"),
        (np.array([[[1.5, -0.5]]]), "samples must be probabilities, at least 0"),
        (np.full((1, 1, 2), np.nan), "samples must .* finite"),
        ([[["a"]]], "samples must be a dense array of class probabilities"),
        ([[[0.5, 0.5]], [[1.0]]], "samples must be a rectangular array"),
    ],
)
def test_wrong_samples(samples: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Prediction.from_samples(samples)


def test_an_ensemble_is_the_mean_of_its_networks() -> None:
    classifier = BayesianGCN(n_graphs=3, n_weight_samples=1, base=GCN(n_epochs=5))
    (prediction,) = classifier.fit_trials([Trial(GRAPH, [0, 1, 2], rng=0)], keep_networks=True)
    networks = prediction.networks
    assert isinstance(networks, Ensemble)
    singles = [
        replace(
            networks, weights=tuple(w[k : k + 1] for w in networks.weights), keys=networks.keys[k : k + 1]
        )
        for k in range(3)
    ]
    mean = np.mean([single.predict(GRAPH, "cpu").probabilities for single in singles], axis=0)
    np.testing.assert_allclose(prediction.probabilities, mean, atol=1e-6)
    joined = Ensemble.join(singles)
    assert all(np.array_equal(a, b) for a, b in zip(joined.weights, networks.weights, strict=True))
    assert np.array_equal(joined.keys, networks.keys)


@pytest.mark.filterwarnings("ignore:the classifier has learned almost nothing")  # after so few epochs
def test_features_must_have_the_width_of_the_networks() -> None:
    fitted = GCN(n_epochs=1).fit(GRAPH, [0, 1, 2], rng=0)
    with pytest.raises(InputError, match="features of the graph must have 12 columns, as in fit; got 2"):
        fitted.predict_graph(GRAPH.replace(features=np.ones((60, 2))))
