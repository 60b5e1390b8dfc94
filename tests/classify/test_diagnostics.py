"""Classifiers that have not learned say so; those that have, even from one label per class, do not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nodecopy import Graph, datasets
from nodecopy.classify import APPNP, GCN, MLP, Prediction, Trial
from nodecopy.classify.diagnostics import warn_if_not_learned
from nodecopy.errors import DataWarning


def prediction(largest: float, n_uniform: int) -> Prediction:
    """100 nodes of two classes; ``n_uniform`` have uniform probabilities, the others alternate in class."""
    p = np.full((100, 2), 0.5, np.float32)
    rest = np.arange(n_uniform, 100)
    p[rest, rest % 2], p[rest, 1 - rest % 2] = largest, 1 - largest
    return Prediction(p, np.zeros(100, np.float32))


@pytest.mark.parametrize(("largest", "n_uniform"), [(0.59, 0), (0.59, 50), (0.9, 81)])
def test_nearly_uniform_probabilities(largest: float, n_uniform: int) -> None:
    share = 81 if largest == 0.9 else 100
    sign = f"probability of {share}% of the nodes is at most 0.60, and 0.50 would be uniform"
    with pytest.warns(DataWarning, match=f"almost nothing: the largest {sign}"):
        warn_if_not_learned(prediction(largest, n_uniform), ["a", "b"])


@pytest.mark.parametrize(("largest", "n_uniform"), [(0.61, 0), (0.9, 78)])
def test_some_decisive_nodes_are_enough(largest: float, n_uniform: int) -> None:
    warn_if_not_learned(prediction(largest, n_uniform), ["a", "b"])  # a warning would be an error


def test_one_class_for_all() -> None:
    p = np.tile([0.1, 0.9], (10, 1)).astype(np.float32)
    with pytest.warns(DataWarning, match="all 10 nodes are predicted to be of class b, one of 2"):
        warn_if_not_learned(Prediction(p, np.zeros(10, np.float32)), ["a", "b"])


def measurements() -> Graph:
    """Two classes that differ by a standard deviation in features of different units."""
    draw = np.random.default_rng(0)
    labels = np.arange(200) % 2
    units = np.array([170.0, 5000.0, 0.3, 40.0])
    features = units * (1 + 0.1 * (labels[:, None] + draw.normal(size=(200, 4))))
    edges = np.triu(draw.random((200, 200)) < np.where(labels[:, None] == labels, 0.06, 0.02), 1)
    return Graph(edges | edges.T, features, labels)


@pytest.mark.parametrize("scaling", ["rows", "none"])
def test_measurements_in_their_own_units_are_not_learned(scaling: str) -> None:
    """Without a warning an accuracy of one half was all there was to see."""
    graph = measurements()
    with pytest.warns(DataWarning, match=r"almost nothing: .* Try features='standardise' or n_epochs=NUMBER"):
        fitted = GCN(features=scaling).fit(graph, range(40), rng=0)
    assert fitted.score() < 0.6
    features = np.asarray(graph.features)
    scaled = graph.replace(features=(features - features.mean(axis=0)) / features.std(axis=0))
    assert GCN(features=scaling).fit(scaled, range(40), rng=0).score() > 0.9


def test_many_trials_do_not_warn() -> None:
    graph = measurements()
    GCN(features="rows").fit_trials([Trial(graph, range(40), rng=seed) for seed in range(3)])


@pytest.mark.parametrize("kind", [GCN, APPNP, MLP])
def test_a_label_per_class_is_no_false_alarm(kind: Any) -> None:
    digits = datasets.load("digits")
    split = datasets.label_split(digits.labels, 1, validation=0, test=100, rng=0)
    kind(n_epochs=100).fit(digits, split.train, rng=0)  # a warning would be an error
