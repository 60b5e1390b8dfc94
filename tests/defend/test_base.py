"""The contract of defences: trained and external classifiers, retraining, files, a defence of one's own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nodecopy import Graph, load
from nodecopy.classify import APPNP, GCN, Classifier, Trial
from nodecopy.defend import (
    AttackedState,
    CopyingDefence,
    Correction,
    Defence,
    DonorAverage,
    GCNJaccard,
    SuspectCorrection,
    WithoutEdges,
    correct_trials,
)
from nodecopy.defend.base import remove_edges_of
from nodecopy.defend.copying import WholeGraphCopier
from nodecopy.errors import InputError, NotFittedError
from tests.contracts.classifiers import planted_graph
from tests.contracts.defences import DefenceContract

TRAIN, SOME, ATTACKED = np.arange(9), np.array([40, 3, 7, 59]), np.array([40, 3, 20, 59])
QUICK: dict[str, Any] = {"n_epochs": 25, "learning_rate": 0.05}
CLEAN = planted_graph()


class NeighbourMean(Defence):
    """Correct a node by the mean prediction of its closed neighbourhood."""

    def __init__(self, classifier: Any = None) -> None:
        self.classifier = classifier

    def prepare_correction(self, state: AttackedState) -> Correction:
        total = abs(state.graph.adjacency) @ state.probabilities + state.probabilities
        return Correction(total / total.sum(axis=1, keepdims=True))


class TestOwnDefence(DefenceContract):
    @pytest.fixture(scope="class")
    @classmethod
    def classifier(cls) -> Defence:
        return NeighbourMean(GCN(**QUICK))


@pytest.fixture(scope="module")
def gcn() -> GCN:
    return GCN(**QUICK).fit(planted_graph(), TRAIN, rng=0)


class ExternalClassifier:
    """A classifier from outside the package: the share of the first features among neighbours."""

    def predict_proba(self, graph: Graph) -> Any:
        features: Any = graph.features
        total = 1.0 + features[:, :3] + graph.adjacency @ features[:, :3]
        return total / total.sum(axis=1, keepdims=True)


def test_corrections_from_a_trained_classifier_equal_those_of_fit() -> None:
    graph = planted_graph()
    for inner in (GCN(**QUICK), APPNP(n_steps=3, **QUICK), GCNJaccard(0.2, classifier=GCN(**QUICK))):
        fitted = CopyingDefence(inner, n_donors=2).fit(graph, TRAIN, rng=0)
        trained = inner.fit(graph, TRAIN, rng=0)
        from_trained = CopyingDefence(n_donors=2).from_classifier(trained, graph, rng=0)
        np.testing.assert_allclose(from_trained.correct_proba(SOME), fitted.correct_proba(SOME), atol=1e-6)


def test_external_classifier(tmp_path: Any) -> None:
    graph = planted_graph()
    defence = CopyingDefence(n_donors=2, mode="copy-row").from_classifier(ExternalClassifier(), graph)
    whole = WholeGraphCopier(ExternalClassifier().predict_proba, graph, "copy-row")
    expected = (
        whole.predict_pairs(np.repeat(SOME, 2), defence.nearest_donors(SOME).ravel())
        .reshape(4, 2, 3)
        .mean(axis=1)
    )
    np.testing.assert_allclose(defence.correct_proba(SOME), expected, atol=1e-6)
    np.testing.assert_allclose(defence.correct_proba(SOME, graph=graph), expected, atol=1e-6)
    assert set(defence.predict().tolist()) <= {0, 1, 2}
    np.testing.assert_allclose(defence.predict_proba(graph), defence.predict_proba(), atol=1e-6)
    with pytest.raises(InputError, match="must be one of nodecopy's own to be saved"):
        defence.save(tmp_path / "model.npz")

    class Short(ExternalClassifier):
        def predict_proba(self, graph: Graph) -> Any:
            return super().predict_proba(graph)[1:]

    with pytest.raises(InputError, match="predict_proba of the classifier must have 60 rows"):
        CopyingDefence(n_donors=2).from_classifier(Short(), graph)


def test_fit_replaces_an_external_classifier() -> None:
    graph = planted_graph()
    with pytest.raises(NotFittedError, match=r"this GCN is not fitted yet: call fit\(graph, train\) first"):
        CopyingDefence(n_donors=2).from_classifier(GCN(), graph)
    fresh = CopyingDefence(GCN(**QUICK), n_donors=2).fit(graph, TRAIN, rng=0)
    again = (
        CopyingDefence(GCN(**QUICK), n_donors=2)
        .from_classifier(ExternalClassifier(), graph)
        .fit(graph, TRAIN, rng=0)
    )
    assert np.array_equal(again.correct_proba(SOME, graph=graph), fresh.correct_proba(SOME, graph=graph))


def test_loaded_defence_needs_a_graph(gcn: GCN, tmp_path: Any) -> None:
    CopyingDefence(n_donors=2).from_classifier(gcn, planted_graph()).save(tmp_path / "model.npz")
    loaded: Any = load(tmp_path / "model.npz")
    with pytest.raises(InputError, match="graph must be given to a defence that was loaded"):
        loaded.correct_proba(SOME)


def test_second_classifier_replaces_the_first(gcn: GCN) -> None:
    graph = planted_graph()

    class Constant:
        def predict_proba(self, graph: Graph) -> Any:
            return [[1.0, 0.0, 0.0]] * graph.n_nodes

    defence = WithoutEdges().from_classifier(Constant(), graph)
    assert defence.correct_proba([3]).tolist() == [[1, 0, 0]]
    defence.from_classifier(gcn, graph)
    np.testing.assert_allclose(defence.predict_proba(graph), gcn.predict_proba(graph))
    with pytest.raises(InputError, match=r"classifier must have predict_proba\(graph\); got int"):
        defence.from_classifier(3, graph)


def attacked_graph() -> Graph:
    """The edges of some nodes are replaced by random ones."""
    adjacency = CLEAN.adjacency.toarray()
    adjacency[ATTACKED] = adjacency[:, ATTACKED] = 0
    others = np.random.default_rng(0).integers(60, size=(4, 9))
    adjacency[ATTACKED[:, None], others] = adjacency[others, ATTACKED[:, None]] = 1
    np.fill_diagonal(adjacency, 0)
    return CLEAN.replace(adjacency=adjacency)


def defences(**parameters: Any) -> list[Defence]:
    inner = GCN(**QUICK)
    donors: Any = {"n_donors": 3, **parameters}
    return [CopyingDefence(inner, **donors), DonorAverage(inner, **donors), WithoutEdges(inner, retrain=True)]


@pytest.mark.parametrize("defence", defences(retrain=True), ids=lambda d: type(d).__name__)
def test_retraining_makes_attacks_at_known_targets_ineffective(defence: Defence) -> None:
    """Neither training nor donors use the edges of these nodes."""
    corrected = [defence.fit(g, TRAIN, rng=0).correct_proba(ATTACKED) for g in (CLEAN, attacked_graph())]
    np.testing.assert_allclose(corrected[0], corrected[1], atol=1e-7)
    trials = [Trial(g, TRAIN, rng=0) for g in (CLEAN, attacked_graph())]
    for prediction in defence.correct_trials(trials, [ATTACKED, ATTACKED]):
        np.testing.assert_allclose(prediction.probabilities, corrected[0], atol=1e-5)
    again = defence.fit(CLEAN, TRAIN, rng=0).correct_proba(ATTACKED, graph=attacked_graph())
    np.testing.assert_allclose(again, corrected[0], atol=1e-7)


def test_retraining_is_training_without_the_edges() -> None:
    graph = attacked_graph()
    pruned = remove_edges_of(graph, ATTACKED)
    retrained = CopyingDefence(GCN(**QUICK), n_donors=3, retrain=True).fit(graph, TRAIN, rng=0)
    plain = CopyingDefence(GCN(**QUICK), n_donors=3).fit(pruned, TRAIN, rng=0)
    np.testing.assert_allclose(retrained.correct_proba(ATTACKED), plain.correct_proba(ATTACKED), atol=1e-7)
    whole = GCN(**QUICK).fit(graph, TRAIN, rng=0)
    assert np.array_equal(retrained.predict_proba(), whole.predict_proba())


def test_retraining_needs_fit(tmp_path: Any) -> None:
    graph = CLEAN
    defence = CopyingDefence(GCN(**QUICK), n_donors=3, retrain=True)
    with pytest.raises(InputError, match="retrain must be False for a classifier that was trained elsewhere"):
        defence.from_classifier(GCN(**QUICK).fit(graph, TRAIN, rng=0), graph)
    defence.fit(graph, TRAIN, rng=0).save(tmp_path / "model.npz")
    loaded: Any = load(tmp_path / "model.npz")
    assert np.array_equal(loaded.predict_proba(), defence.predict_proba())
    with pytest.raises(InputError, match="retrain must be False for a defence that was not fitted here"):
        loaded.correct_proba(ATTACKED, graph=graph)
    loaded.retrain = False
    plain = CopyingDefence(GCN(**QUICK), n_donors=3).fit(graph, TRAIN, rng=0)
    np.testing.assert_allclose(
        loaded.correct_proba(ATTACKED, graph=graph), plain.correct_proba(ATTACKED), atol=1e-6
    )
    suspects = SuspectCorrection(GCN(**QUICK), n_donors=3, retrain=True).fit(graph, TRAIN, rng=0)
    suspects.save(tmp_path / "suspects.npz")
    with pytest.raises(InputError, match="retrain must be False for a defence that was not fitted here"):
        load(tmp_path / "suspects.npz").correct_proba(ATTACKED, graph=graph)


def test_labels_of_another_graph_are_not_used() -> None:
    """Labels of the graph that is corrected may be wrong or missing; those of ``fit`` are used."""
    other = CLEAN.replace(labels=np.roll(np.asarray(CLEAN.labels), 7))
    for defence in (
        CopyingDefence(GCN(**QUICK), n_donors=3, retrain=True),
        SuspectCorrection(GCN(**QUICK), n_donors=3, retrain=True),
        SuspectCorrection(GCN(**QUICK), n_donors=3),
    ):
        defence.fit(CLEAN, TRAIN, validation=np.arange(9, 30), rng=0)
        expected = defence.correct_proba(ATTACKED, graph=attacked_graph())
        for changed in (other, CLEAN.replace(labels=None)):
            graph = changed.replace(adjacency=attacked_graph().adjacency)
            assert np.array_equal(defence.correct_proba(ATTACKED, graph=graph), expected)


def test_retraining_needs_the_nodes_of_fit() -> None:
    renamed = CLEAN.replace(node_ids=[f"n{number}" for number in range(60)])
    for kind in (CopyingDefence, SuspectCorrection):
        defence = kind(GCN(**QUICK), n_donors=3, retrain=True).fit(CLEAN, TRAIN, rng=0)
        with pytest.raises(InputError, match="graph must have the nodes of the one given to fit"):
            defence.correct_proba(ATTACKED, graph=renamed)


def test_parameters_do_not_change_through_use(gcn: GCN) -> None:
    """Neither ``fit`` nor a trained classifier nor a correction changes what ``get_params`` returns."""
    defence = CopyingDefence(n_donors=2)
    before = repr(defence.get_params())
    defence.from_classifier(gcn, CLEAN).correct([3])
    assert defence.classifier_ is gcn
    assert repr(defence.get_params()) == before
    defence.fit(CLEAN, TRAIN, rng=0).correct([3], graph=CLEAN)
    assert repr(defence.get_params()) == before


def test_predictions_of_a_plain_classifier_in_trials() -> None:
    trials = [Trial(CLEAN, TRAIN, rng=0)]
    (prediction,) = correct_trials(GCN(**QUICK), trials, [SOME])
    (whole,) = GCN(**QUICK).fit_trials(trials)
    assert np.array_equal(prediction.probabilities, whole.probabilities[SOME])


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
    fitted = CopyingDefence(classifier).fit(CLEAN, TRAIN, rng=0)
    same = CopyingDefence().from_classifier(GraphPropagation().fit(CLEAN, TRAIN, rng=0), CLEAN, rng=0)
    np.testing.assert_allclose(fitted.correct_proba(SOME), same.correct_proba(SOME), rtol=1e-5)
    assert fitted.correct(SOME, graph=CLEAN).tolist() == fitted.correct(SOME).tolist()
    assert not hasattr(classifier, "prediction_")
    (trials,) = CopyingDefence(classifier).correct_trials([Trial(CLEAN, TRAIN, rng=0)], [SOME])
    np.testing.assert_allclose(trials.probabilities, fitted.correct_proba(SOME), rtol=1e-5)
    with pytest.raises(InputError, match=r"Define predict_graph\(graph\) in Propagation"):
        CopyingDefence(Propagation()).fit(CLEAN, TRAIN, rng=0).correct([1])


@pytest.mark.parametrize("wrong", [None, "GCN", [1]])
def test_a_state_whose_classifier_is_something_else_is_refused(gcn: GCN, wrong: Any) -> None:
    state = CopyingDefence(n_donors=2).from_classifier(gcn, planted_graph()).get_state()
    CopyingDefence().set_state(state)
    with pytest.raises(InputError, match="classifier_ must be a classifier"):
        CopyingDefence().set_state(state | {"classifier_": wrong})


def test_parameters_of_training_are_those_of_the_classifier() -> None:
    """Errors named a parameter of the defence that it does not have."""
    classifier = GCN(n_epochs=5)
    parameters = CopyingDefence(classifier).training_parameters()
    assert parameters == classifier.training_parameters() | {"owner": "its classifier"}
