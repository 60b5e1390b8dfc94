"""Distilled features against scikit-learn and against what they may not depend on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.special import softmax

from nodecopy.classify import GCN, Classifier, Trial
from nodecopy.defend import Defence, DistilledFeatures
from nodecopy.defend.base import remove_edges_of
from nodecopy.defend.controls import (
    INVERSE_PENALTY,
    assign_folds,
    find_training_nodes,
    fit_softmax,
    sharpen,
)
from nodecopy.errors import InputError
from tests.contracts.classifiers import planted_graph
from tests.contracts.defences import DefenceContract

TRAIN, SOME = np.arange(9), np.array([40, 3, 7, 59])
QUICK: dict[str, Any] = {"n_epochs": 25, "learning_rate": 0.05}


class TestDistilledFeatures(DefenceContract):
    @pytest.fixture(scope="class")
    @classmethod
    def classifier(cls) -> Defence:
        return DistilledFeatures(GCN(**QUICK))


def test_regression_is_that_of_scikit_learn() -> None:
    linear_model = pytest.importorskip("sklearn.linear_model")
    draws = np.random.default_rng(0)
    rows, codes = draws.normal(size=(80, 5)), draws.integers(3, size=80)
    weights = fit_softmax(sparse.csr_array(rows), np.eye(3)[codes])
    theirs = linear_model.LogisticRegression(C=INVERSE_PENALTY, max_iter=1000).fit(rows, codes)
    ours = softmax(rows @ weights[:-1] + weights[-1], axis=1)
    np.testing.assert_allclose(ours, theirs.predict_proba(rows), atol=0.01)


@pytest.mark.parametrize("model", ["logistic", "mlp"])
def test_flips_at_corrected_nodes_change_nothing_after_retraining(model: str) -> None:
    graph = planted_graph()
    fitted = DistilledFeatures(GCN(**QUICK), model=model, retrain=True).fit(graph, TRAIN, rng=0)
    without = remove_edges_of(graph, SOME)
    before, after = fitted.correct_proba(SOME), fitted.correct_proba(SOME, graph=without)
    np.testing.assert_allclose(before, after, atol=1e-6)
    np.testing.assert_allclose(before.sum(axis=1), 1, atol=1e-5)


def test_own_prediction_of_a_node_changes_nothing_at_it() -> None:
    graph = planted_graph()
    fitted = DistilledFeatures(GCN(**QUICK)).fit(graph, TRAIN, rng=0)
    changed = fitted.state_.probabilities.copy()
    changed[40] = changed[40][::-1]
    other = fitted.prepare_correction(_with_probabilities(fitted.state_, changed))
    np.testing.assert_allclose(other.predict_proba(np.array([40])), fitted.correct_proba([40]), atol=1e-3)


def test_nodes_without_edges_are_no_training_nodes() -> None:
    graph = remove_edges_of(planted_graph(), np.array([5, 8]))
    assert {5, 8}.isdisjoint(find_training_nodes(graph).tolist())
    bare = graph.replace(adjacency=sparse.csr_array(graph.adjacency.shape))
    assert len(find_training_nodes(bare)) == graph.n_nodes


class OneOfAKind(Classifier):
    """Predicts the third class at a single node, and the other two in turn."""

    def predict_trial(self, trial: Trial) -> Any:
        codes = np.arange(trial.graph.n_nodes) % 2
        codes[20] = 2
        return 0.1 + 0.7 * np.eye(3)[codes]


def test_a_class_that_other_folds_do_not_have_is_no_warning() -> None:
    fitted = DistilledFeatures(OneOfAKind(), model="mlp").fit(planted_graph(), TRAIN, rng=0)
    assert fitted.correct_proba([20])[0, 2] < 0.1


def test_folds_are_of_equal_size() -> None:
    assert np.bincount(assign_folds(60, 7)).tolist() == [9, 9, 9, 9, 8, 8, 8]


def test_sharpening_recovers_a_factor() -> None:
    """Classes drawn from probabilities whose logarithms were halved; 4000 draws fix the factor to 0.1."""
    draws = np.random.default_rng(1)
    log_p = draws.normal(size=(4000, 3))
    p = softmax(2 * log_p, axis=1)
    codes = (p.cumsum(axis=1) < draws.random((4000, 1))).sum(axis=1)
    sharpened = sharpen(softmax(log_p, axis=1), np.eye(3)[codes])
    gaps = (sharpened[:, 0] - sharpened[:, 1]) / (log_p[:, 0] - log_p[:, 1])
    np.testing.assert_allclose(gaps, 2.0, atol=0.2)


def test_error_names_wrong_parameters() -> None:
    with pytest.raises(InputError, match="model of DistilledFeatures must be"):
        DistilledFeatures(model="tree").fit(planted_graph(), TRAIN)
    with pytest.raises(InputError, match="n_folds of DistilledFeatures must be an integer of at least 2"):
        DistilledFeatures(n_folds=1).fit(planted_graph(), TRAIN)


def _with_probabilities(state: Any, probabilities: Any) -> Any:
    from dataclasses import replace

    return replace(state, probabilities=probabilities)
