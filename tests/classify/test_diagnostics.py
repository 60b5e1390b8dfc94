"""Classifiers that have not learned say so; those that have, even from one label per class, do not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nodecopy import Graph, datasets
from nodecopy.classify import (
    APPNP,
    GCN,
    MLP,
    SGC,
    BayesianGCN,
    Classifier,
    Prediction,
    SelfTraining,
    SoftVoting,
    Trial,
)
from nodecopy.classify.base import warn_if_not_learned
from nodecopy.errors import DataWarning, InputError


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


@pytest.mark.parametrize(
    ("parameters", "hint"),
    [(["features"], " Try features='standardise'."), (["n_epochs"], " Try n_epochs=NUMBER."), ([], "")],
)
def test_the_advice_names_parameters_of_the_classifier(parameters: list[str], hint: str) -> None:
    with pytest.warns(DataWarning, match="almost nothing") as caught:
        warn_if_not_learned(prediction(0.59, 0), ["a", "b"], parameters=parameters)
    assert str(caught[0].message).endswith(f"that the labels belong to the nodes.{hint}")


@pytest.mark.parametrize(
    ("classifier", "hint"),
    [
        (SGC(C=1e-6), "Try features='standardise'."),
        (BayesianGCN(n_graphs=2, base=GCN(n_epochs=2)), "or n_epochs=NUMBER of its base."),
        (SelfTraining(SGC(C=1e-6), 1), "Try features='standardise' of its base."),
        (SelfTraining(n_rounds=0), "Try features='standardise'."),
        (SoftVoting([SGC(), GCN(n_epochs=2)]), "or n_epochs=NUMBER of its classifiers."),
    ],
)
def test_the_advice_can_be_followed(classifier: Classifier, hint: str) -> None:
    """Some classifiers take the parameters of their base only."""
    zeros = measurements().replace(features=np.zeros((200, 4)))
    with pytest.warns(DataWarning, match="almost nothing") as caught:
        classifier.fit(zeros, range(40), rng=0)
    assert str(caught[-1].message).endswith(hint)


def test_many_trials_do_not_warn() -> None:
    graph = measurements()
    GCN(features="rows").fit_trials([Trial(graph, range(40), rng=seed) for seed in range(3)])


@pytest.mark.parametrize("kind", [GCN, APPNP, MLP])
def test_a_label_per_class_is_no_false_alarm(kind: Any) -> None:
    digits = datasets.load("digits")
    split = datasets.label_split(digits.labels, 1, validation=0, test=100, rng=0)
    kind(n_epochs=100).fit(digits, split.train, rng=0)  # a warning would be an error


class Fixed(Classifier):
    """Predicts probabilities that are given: class 0 for all nodes."""

    def predict_trial(self, trial: Trial) -> Any:
        p = np.full((trial.graph.n_nodes, trial.n_classes), 0.01)
        p[:, 0] = 1 - 0.01 * (trial.n_classes - 1)
        p[0] = 1 / trial.n_classes
        p[1, 1], p[1, 0] = p[1, 0], p[1, 1]
        return p


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ([2, 4], "all of the 2 nodes are predicted correctly"),
        ([3, 5], "none of the 2 nodes are predicted correctly"),
        ([2, 3, 5, 7], r"it is at the bound of what is allowed \(1 of 4"),
    ],
)
def test_a_temperature_that_labelled_nodes_do_not_determine(nodes: list[int], message: str) -> None:
    graph = Graph(np.zeros((10, 10)), labels=np.arange(10) % 2)
    fitted = Fixed().fit(graph, [0, 1])
    with pytest.warns(DataWarning, match=f"does not calibrate the probabilities: {message}"):
        fitted.calibrate(nodes)


def test_the_temperature_and_its_nodes_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    """Node 9 has a class that no training node has."""
    graph = Graph(np.zeros((10, 10)), labels=[0, 1, 0, 1, 0, 0, 0, 0, 0, 2])
    with caplog.at_level("INFO", "nodecopy"), pytest.warns(DataWarning, match="no training node"):
        fitted = Fixed().fit(graph, [0, 1], validation=range(2, 10))
    assert "left out (1 of 8)" in caplog.text
    with caplog.at_level("INFO", "nodecopy"):
        fitted.calibrate(range(2, 10))
    assert f"is {fitted.temperature_:.3g}, fitted to 7 labelled nodes; nodes of a class" in caplog.text
    assert "are left out (1)." in caplog.text
    assert np.array_equal(fitted.predict(), Fixed().predict_trial(fitted.trial_).argmax(axis=1))
    with pytest.raises(InputError, match="nodes must hold nodes of the classes of train"):
        fitted.calibrate([9])
