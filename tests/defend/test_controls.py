"""The controls against direct computations, scikit-learn, and what they may not depend on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.special import softmax

from nodecopy import Graph
from nodecopy.classify import GCN, MLP, Classifier, Trial
from nodecopy.defend import GCNSVD, Defence, DistilledFeatures, DonorAverage, GCNJaccard, WithoutEdges
from nodecopy.defend.controls import (
    INVERSE_PENALTY,
    find_training_nodes,
    fit_softmax,
    jaccard_similarities,
    sharpen,
    split_folds,
)
from nodecopy.defend.edges import remove_edges_of
from nodecopy.errors import InputError
from tests.contracts.classifiers import planted_graph
from tests.contracts.defences import QUICK, SOME, TRAIN, DefenceContract

DEFENCES: dict[str, Defence] = {
    "donor-average": DonorAverage(GCN(**QUICK), n_donors=4),
    "without-edges": WithoutEdges(GCN(**QUICK)),
    "distilled": DistilledFeatures(GCN(**QUICK)),
    "jaccard": GCNJaccard(0.1, classifier=GCN(**QUICK)),
    "svd": GCNSVD(8, classifier=GCN(**QUICK)),
}


class TestControls(DefenceContract):
    classifiers = DEFENCES


@pytest.fixture(scope="module")
def gcn() -> GCN:
    return GCN(**QUICK).fit(planted_graph(), TRAIN, rng=0)


def test_average_of_the_donors_predictions(gcn: GCN) -> None:
    average = DonorAverage(n_donors=3).from_classifier(gcn, planted_graph())
    expected = gcn.predict_proba()[average.nearest_donors(SOME)].mean(axis=1)
    np.testing.assert_allclose(average.predict_proba()[SOME], expected, atol=1e-6)


def test_prediction_without_edges(gcn: GCN) -> None:
    graph = planted_graph()
    without = WithoutEdges().from_classifier(gcn, graph).predict_proba()
    for node in SOME:
        alone = gcn.predict_proba(remove_edges_of(graph, np.array([node])))[node]
        np.testing.assert_allclose(without[node], alone, atol=1e-6)


def test_draws_are_uniform_among_donors(gcn: GCN) -> None:
    """4000 draws of two donors; 0.04 is five standard errors of the share of each."""
    average = DonorAverage(donors=np.arange(60.0)[:, None], n_donors=2, n_graphs=4000)
    average.from_classifier(gcn, planted_graph(), targets=[30], rng=3)
    first, second = gcn.predict_proba()[average.nearest_donors([30])[0]]
    p = average.predict_proba()[30]
    assert abs(((p - second) / (first - second)).mean() - 0.5) < 0.04
    other = average.from_classifier(gcn, planted_graph(), targets=[30], rng=4)
    assert not np.array_equal(other.predict_proba()[30], p)


def test_regression_is_that_of_scikit_learn() -> None:
    linear_model = pytest.importorskip("sklearn.linear_model")
    draws = np.random.default_rng(0)
    rows, codes = draws.normal(size=(80, 5)), draws.integers(3, size=80)
    weights = fit_softmax(sparse.csr_array(rows), np.eye(3)[codes])
    theirs = linear_model.LogisticRegression(C=INVERSE_PENALTY, max_iter=1000).fit(rows, codes)
    ours = softmax(rows @ weights[:-1] + weights[-1], axis=1)
    np.testing.assert_allclose(ours, theirs.predict_proba(rows), atol=0.01)


@pytest.mark.parametrize("model", ["logistic", "mlp"])
def test_flips_at_targets_change_nothing_after_retraining(model: str) -> None:
    graph = planted_graph()
    fitted = DistilledFeatures(GCN(**QUICK), model=model, retrain=True)
    fitted.fit(graph, TRAIN, targets=SOME, rng=0)
    after = fitted.predict_proba(remove_edges_of(graph, SOME))
    np.testing.assert_allclose(fitted.predict_proba()[SOME], after[SOME], atol=1e-6)


def test_own_prediction_of_a_node_changes_nothing_at_it() -> None:
    fitted = DistilledFeatures(GCN(**QUICK)).fit(planted_graph(), TRAIN, rng=0)
    changed = fitted.state_.probabilities.copy()
    changed[40] = changed[40][::-1]
    other = fitted.prepare_correction(replace(fitted.state_, probabilities=changed))
    np.testing.assert_allclose(other.predict_proba(np.array([40]))[0], fitted.predict_proba()[40], atol=1e-3)


def test_folds_and_training_nodes() -> None:
    assert np.sum([mask for _, mask in split_folds(TRAIN, 64)], axis=0).tolist() == [1] * 64
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
    assert fitted.predict_proba()[20, 2] < 0.1


def test_sharpening_recovers_a_factor() -> None:
    """Classes drawn from probabilities whose logarithms were halved; 4000 draws fix the factor to 0.1."""
    draws = np.random.default_rng(1)
    log_p = draws.normal(size=(4000, 3))
    p = softmax(2 * log_p, axis=1)
    codes = (p.cumsum(axis=1) < draws.random((4000, 1))).sum(axis=1)
    sharpened = sharpen(softmax(log_p, axis=1), np.eye(3)[codes])
    gaps = (sharpened[:, 0] - sharpened[:, 1]) / (log_p[:, 0] - log_p[:, 1])
    np.testing.assert_allclose(gaps, 2.0, atol=0.2)


def test_jaccard_similarities_and_kept_edges() -> None:
    """Nodes with features {0, 1}, {1}, {2}, {} and {}: shares 1/2, 0 and, where there is nothing, 1."""
    features = [[1.0, 1, 0], [0, 5, 0], [0, 0, 1], [0, 0, 0], [0, 0, 0]]
    graph = Graph.from_edges([0, 1, 3, 2], [1, 2, 4, 3], features=features, labels=[0, 1, 0, 1, 0])
    pairs = zip(graph.rows.row_numbers.tolist(), graph.rows.indices.tolist(), strict=True)
    shares = dict(zip(pairs, jaccard_similarities(graph).tolist(), strict=True))
    assert shares[0, 1] == shares[1, 0] == 0.5
    assert shares[1, 2] == shares[2, 3] == 0.0
    assert shares[3, 4] == 1.0
    for threshold, similar in ((0.5, [(0, 1)]), (0.51, [])):
        kept = GCNJaccard(threshold).preprocess(graph).edges()
        assert list(zip(*kept[:2], strict=True)) == [*similar, (3, 4)]


def test_approximation_of_the_full_rank_equals_a_gcn() -> None:
    """A star has rank two, so that the approximation is exact."""
    star = np.zeros((60, 60))
    star[0, 1:] = star[1:, 0] = 1
    graph = planted_graph().replace(adjacency=star)
    plain = GCN(**QUICK).fit(graph, TRAIN, rng=0).predict_proba()
    svd = GCNSVD(2, classifier=GCN(**QUICK)).fit(graph, TRAIN, rng=0)
    np.testing.assert_allclose(svd.predict_proba(), plain, atol=1e-3)
    with pytest.raises(InputError, match="GCNSVD must be trained by fit"):
        GCNSVD().from_classifier(svd, graph)


@pytest.mark.parametrize(
    ("defence", "message"),
    [
        (DistilledFeatures(model="svm"), "model of DistilledFeatures must be one of 'logistic', 'mlp'"),
        (GCNJaccard(1.5), "threshold of GCNJaccard must be a number between 0 and 1"),
        (GCNSVD(classifier=MLP()), "classifier of GCNSVD must be a GCN"),
    ],
)
def test_wrong_parameters(defence: Defence, message: str) -> None:
    with pytest.raises(InputError, match=message):
        defence.fit(planted_graph(), TRAIN, rng=0)
