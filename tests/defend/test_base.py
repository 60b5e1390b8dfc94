"""The contract of defences: trained and external classifiers, retraining, files, a defence of one's own."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from nodecopy import Graph, load
from nodecopy.classify import APPNP, GCN, SGC, BayesianGCN, Classifier, GraphClassifier, SelfTraining, Trial
from nodecopy.classify.base import MAX_ROUNDS, ClassifierSeeds
from nodecopy.defend import (
    AttackedState,
    CopyingDefence,
    Correction,
    Defence,
    DonorAverage,
    EvidenceDefence,
    GCNJaccard,
    SuspectCorrection,
    WithoutEdges,
)
from nodecopy.defend.base import DefenceSeeds
from nodecopy.defend.copying import predict_copies
from nodecopy.defend.edges import remove_edges_of
from nodecopy.errors import InputError, NotFittedError
from nodecopy.io import FeatureEncoder
from tests.contracts.classifiers import planted_graph
from tests.contracts.defences import QUICK, SOME, TRAIN, DefenceContract

ATTACKED = np.array([40, 3, 20, 59])
CLEAN = planted_graph()
RETRAINED: Any = {"n_donors": 3, "retrain": True}


class NeighbourMean(Defence):
    """Correct a node by the mean prediction of its closed neighbourhood."""

    def __init__(self, classifier: Any = None) -> None:
        self.classifier = classifier

    def prepare_correction(self, state: AttackedState) -> Correction:
        total = abs(state.graph.adjacency) @ state.probabilities + state.probabilities
        return Correction(total / total.sum(axis=1, keepdims=True))


class TestOwnDefence(DefenceContract):
    classifiers = (NeighbourMean(GCN(**QUICK)),)


@pytest.fixture(scope="module")
def gcn() -> GCN:
    return GCN(**QUICK).fit(CLEAN, TRAIN, rng=0)


@pytest.mark.parametrize(
    ("by_name", "by_object"),
    [
        (BayesianGCN(n_graphs=1, base="appnp"), BayesianGCN(n_graphs=1, base=APPNP())),
        (SelfTraining("sgc", 1), SelfTraining(SGC(), 1)),
        (CopyingDefence("sgc", n_donors=2), CopyingDefence(SGC(), n_donors=2)),
        (GraphClassifier("sgc", random_state=0), GraphClassifier(SGC(), random_state=0)),
    ],
    ids=lambda classifier: type(classifier).__name__,
)
def test_classifiers_by_name(by_name: Any, by_object: Any, tmp_path: Any) -> None:
    if isinstance(by_name, GraphClassifier):
        y = np.full(60, -1)
        y[TRAIN] = np.asarray(CLEAN.label_codes)[TRAIN]
        first, second = (
            model.fit(CLEAN.features, y).predict_proba(CLEAN.features) for model in (by_name, by_object)
        )
    else:
        first, second = (model.fit(CLEAN, TRAIN, rng=0).predict_proba() for model in (by_name, by_object))
        by_name.save(tmp_path / "model.npz")
        assert np.array_equal(load(tmp_path / "model.npz").predict(), by_name.predict())
    assert np.array_equal(first, second)


class ExternalClassifier:
    """A classifier from outside the package: the share of the first features among neighbours."""

    def predict_proba(self, graph: Graph) -> Any:
        features: Any = graph.features
        total = 1.0 + features[:, :3] + graph.adjacency @ features[:, :3]
        return total / total.sum(axis=1, keepdims=True)


def test_corrections_from_a_trained_classifier_equal_those_of_fit() -> None:
    for inner in (GCN(**QUICK), APPNP(n_steps=3, **QUICK), GCNJaccard(0.2, classifier=GCN(**QUICK))):
        fitted = CopyingDefence(inner, n_donors=2).fit(CLEAN, TRAIN, targets=SOME, rng=0)
        trained = inner.fit(CLEAN, TRAIN, rng=0)
        again = CopyingDefence(n_donors=2).from_classifier(trained, CLEAN, targets=SOME, rng=0)
        np.testing.assert_allclose(again.predict_proba(), fitted.predict_proba(), atol=1e-6)


def test_external_classifier(tmp_path: Any) -> None:
    defence = CopyingDefence(n_donors=2, mode="copy-row")
    defence.from_classifier(ExternalClassifier(), CLEAN, targets=SOME)
    pairs = np.repeat(SOME, 2), defence.nearest_donors(SOME).ravel()
    expected = predict_copies(defence.state_, "copy-row", *pairs).reshape(4, 2, 3).mean(axis=1)
    np.testing.assert_allclose(defence.predict_proba()[SOME], expected, atol=1e-6)
    np.testing.assert_allclose(defence.predict_proba(CLEAN)[SOME], expected, atol=1e-6)
    assert set(defence.predict().tolist()) <= {0, 1, 2}
    with pytest.raises(InputError, match="must be one of nodecopy's own to be saved"):
        defence.save(tmp_path / "model.npz")

    class Short(ExternalClassifier):
        def predict_proba(self, graph: Graph) -> Any:
            return super().predict_proba(graph)[1:]

    pipeline = make_pipeline(LogisticRegression()).fit(np.eye(3), range(3))  # raised a TypeError of float()
    cases = (Short(), "must have 60 rows"), (3, "got int"), (pipeline, "got sklearn.Pipeline. Wrap one")
    for wrong, message in cases:
        with pytest.raises(InputError, match=message):
            CopyingDefence(n_donors=2).from_classifier(wrong, CLEAN)
    with pytest.raises(NotFittedError, match=r"this GCN is not fitted yet: call fit\(graph, train\) first"):
        CopyingDefence(n_donors=2).from_classifier(GCN(), CLEAN)


def test_a_second_classifier_replaces_the_first(gcn: GCN) -> None:
    defence = WithoutEdges(GCN(**QUICK)).from_classifier(ExternalClassifier(), CLEAN)
    defence.from_classifier(gcn, CLEAN)
    assert np.array_equal(defence.undefended_proba(), gcn.predict_proba(CLEAN))
    fresh = WithoutEdges(GCN(**QUICK)).fit(CLEAN, TRAIN, rng=0)
    again = defence.from_classifier(ExternalClassifier(), CLEAN).fit(CLEAN, TRAIN, rng=0)
    assert np.array_equal(again.predict_proba(CLEAN), fresh.predict_proba(CLEAN))


def attacked_graph() -> Graph:
    """The edges of some nodes are replaced by random ones."""
    adjacency = CLEAN.adjacency.toarray()
    adjacency[ATTACKED] = adjacency[:, ATTACKED] = 0
    others = np.random.default_rng(0).integers(60, size=(4, 9))
    adjacency[ATTACKED[:, None], others] = adjacency[others, ATTACKED[:, None]] = 1
    np.fill_diagonal(adjacency, 0)
    return CLEAN.replace(adjacency=adjacency)


@pytest.mark.parametrize(
    "defence",
    [
        CopyingDefence(GCN(**QUICK), **RETRAINED),
        DonorAverage(GCN(**QUICK), **RETRAINED),
        WithoutEdges(GCN(**QUICK), retrain=True),
    ],
    ids=lambda defence: type(defence).__name__,
)
def test_retraining_makes_attacks_at_known_targets_ineffective(defence: Defence) -> None:
    """Neither training nor donors use the edges of these nodes."""
    fit = partial(defence.fit, train=TRAIN, targets=ATTACKED, rng=0)
    expected = fit(CLEAN).predict_proba()[ATTACKED]
    for again in (fit(CLEAN).predict_proba(attacked_graph()), fit(attacked_graph()).predict_proba()):
        np.testing.assert_allclose(again[ATTACKED], expected, atol=1e-7)
    trials = [Trial(graph, TRAIN, rng=0) for graph in (CLEAN, attacked_graph())]
    for prediction in defence.fit_trials(trials, targets=[ATTACKED, ATTACKED]):
        np.testing.assert_allclose(prediction.probabilities[ATTACKED], expected, atol=1e-5)


def test_retraining_is_training_without_the_edges() -> None:
    graph = attacked_graph()
    retrained = CopyingDefence(GCN(**QUICK), **RETRAINED).fit(graph, TRAIN, targets=ATTACKED, rng=0)
    plain = CopyingDefence(GCN(**QUICK), n_donors=3)
    plain.fit(remove_edges_of(graph, ATTACKED), TRAIN, targets=ATTACKED, rng=0)
    np.testing.assert_allclose(retrained.predict_proba(), plain.predict_proba(), atol=1e-7)
    whole = GCN(**QUICK).fit(graph, TRAIN, rng=0)
    assert np.array_equal(retrained.undefended_proba(), whole.predict_proba())


def test_retraining_needs_fit_and_targets(tmp_path: Any, gcn: GCN) -> None:
    defence: Defence = CopyingDefence(GCN(**QUICK), **RETRAINED)
    with pytest.raises(InputError, match="retrain must be False for a classifier trained elsewhere"):
        defence.from_classifier(gcn, CLEAN)
    with pytest.raises(InputError, match="targets must be given to CopyingDefence"):
        defence.fit(CLEAN, TRAIN)
    late = CopyingDefence(GCN(**QUICK), n_donors=3).fit(CLEAN, TRAIN, rng=0).set_params(retrain=True)
    with pytest.raises(InputError, match="targets must be given to CopyingDefence"):
        late.predict(CLEAN)
    renamed = CLEAN.replace(node_ids=[f"n{number}" for number in range(60)])
    for kind in (CopyingDefence, SuspectCorrection):
        defence = kind(GCN(**QUICK), **RETRAINED).fit(CLEAN, TRAIN, targets=ATTACKED, rng=0)
        with pytest.raises(InputError, match="graph must have the nodes of the one given to fit"):
            defence.predict(renamed)
        defence.save(tmp_path / "model.npz")
        loaded: Any = load(tmp_path / "model.npz")
        assert np.array_equal(loaded.predict_proba(), defence.predict_proba())
        with pytest.raises(InputError, match="retrain must be False for a defence that was not fitted here"):
            loaded.predict(CLEAN)
    loaded.retrain = False
    plain = SuspectCorrection(GCN(**QUICK), n_donors=3).fit(CLEAN, TRAIN, targets=ATTACKED, rng=0)
    np.testing.assert_allclose(loaded.predict_proba(CLEAN), plain.predict_proba(), atol=1e-6)
    with pytest.raises(InputError, match="graph must be given to a defence that was loaded"):
        loaded.nearest_donors([1])


def test_a_loaded_defence_draws_the_same_donors(tmp_path: Any, gcn: GCN) -> None:
    seeds: Any = 7, np.random.default_rng(7), np.random.SeedSequence(7).spawn(2)[1]
    drawn = CopyingDefence(GCN(**QUICK), n_graphs=3)
    for rng in seeds:
        for fitted in (drawn.fit(CLEAN, TRAIN, rng=rng), drawn.from_classifier(gcn, CLEAN, rng=rng)):
            fitted.save(tmp_path / "model.npz")
            loaded: Any = load(tmp_path / "model.npz")
            loaded.save(tmp_path / "again.npz")
            for defence in (loaded, load(tmp_path / "again.npz")):
                again, expected = defence.predict_proba(CLEAN), fitted.predict_proba(CLEAN)
                np.testing.assert_allclose(again, expected, atol=1e-6)


def test_defences_check_how_features_were_encoded(tmp_path: Any) -> None:
    first, second = (
        CLEAN.with_feature_encoder(FeatureEncoder().fit({name: [1.0, 2.0]})) for name in ("age", "income")
    )
    inner = GCN(**QUICK).fit(first, TRAIN, rng=0)
    fitted = CopyingDefence(GCN(**QUICK)).fit(first, TRAIN, rng=0)
    fitted.save(tmp_path / "model.npz")
    for defence in (fitted, load(tmp_path / "model.npz"), CopyingDefence().from_classifier(inner, CLEAN)):
        for predict in (defence.predict, defence.undefended):
            with pytest.raises(InputError, match="features of the graph must have the columns age"):
                predict(second)
    again = fitted.from_classifier(ExternalClassifier(), second)
    assert again.predict(second).shape == (60,)


def test_labels_of_another_graph_are_not_used() -> None:
    """Labels of the graph that is corrected may be wrong or missing; those of ``fit`` are used."""
    other = CLEAN.replace(labels=np.roll(np.asarray(CLEAN.label_codes), 7))
    for defence in (
        CopyingDefence(GCN(**QUICK), **RETRAINED),
        SuspectCorrection(GCN(**QUICK), **RETRAINED),
        SuspectCorrection(GCN(**QUICK), n_donors=3),
    ):
        defence.fit(CLEAN, TRAIN, validation=np.arange(9, 30), targets=ATTACKED, rng=0)
        expected = defence.predict_proba(attacked_graph())
        for changed in (other, CLEAN.replace(labels=None)):
            graph = changed.replace(adjacency=attacked_graph().adjacency)
            assert np.array_equal(defence.predict_proba(graph), expected)


class Propagation(Classifier):
    """Predict the class frequencies among training nodes within two hops, on any graph of the same nodes."""

    def predict_trial(self, trial: Trial) -> Any:
        self.train_, self.one_hot_ = trial.train, np.eye(trial.n_classes)[trial.codes[trial.train]]
        return self._propagate(trial.graph)

    def _propagate(self, graph: Graph) -> Any:
        first = graph.adjacency[:, self.train_] @ self.one_hot_ + 0.01
        total = graph.adjacency @ first + first
        return total / total.sum(axis=1, keepdims=True)


class GraphPropagation(Propagation):
    def predict_graph(self, graph: Graph) -> Any:
        self.check_fitted()
        return self._propagate(graph)


def test_an_own_classifier_in_a_defence_needs_predict_graph() -> None:
    classifier = GraphPropagation()
    fitted = CopyingDefence(classifier).fit(CLEAN, TRAIN, targets=SOME, rng=0)
    own = GraphPropagation().fit(CLEAN, TRAIN, rng=0)
    same = CopyingDefence().from_classifier(own, CLEAN, targets=SOME, rng=0)
    (trial,) = CopyingDefence(classifier).fit_trials([Trial(CLEAN, TRAIN, rng=0)], targets=[SOME])
    for p in (same.predict_proba(), fitted.predict_proba(CLEAN), trial.probabilities):
        np.testing.assert_allclose(p, fitted.predict_proba(), rtol=1e-5)
    assert not hasattr(classifier, "prediction_")
    with pytest.raises(InputError, match=r"Define predict_graph\(graph\) in Propagation"):
        CopyingDefence(Propagation()).fit(CLEAN, TRAIN, rng=0)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"classifier_": "GCN"}, "classifier_ must be a classifier"),
        ({"targets_": np.array([60])}, "targets_ must lie between 0 and 59"),
        ({"seed_": None}, "seed_ must be the parts of a seed"),
        ({"seed_": {"entropy": -1}}, "seed_ must be the parts of a seed"),
    ],
)
def test_a_damaged_state_is_refused(gcn: GCN, wrong: Any, message: str) -> None:
    state = CopyingDefence(n_donors=2).from_classifier(gcn, CLEAN, targets=[3]).get_state()
    CopyingDefence().set_state(state)
    with pytest.raises(InputError, match=message):
        CopyingDefence().set_state(state | wrong)


def test_the_seeds_of_stored_results_stay_and_no_classifier_uses_them() -> None:
    numbers = {seed.name: seed.value for seed in DefenceSeeds}
    assert numbers == {"DONOR_EMBEDDING": 10**7, "DONOR_DRAWS": 10**7 + 1}
    assert min(DefenceSeeds) >= max(ClassifierSeeds) + MAX_ROUNDS


def test_explanations_need_targets_after_retraining() -> None:
    fitted = EvidenceDefence(GCN(**QUICK), retrain=True).fit(CLEAN, TRAIN, targets=SOME, rng=0)
    with pytest.raises(InputError, match="nodes must be targets given to fit"):
        fitted.explain([5])
