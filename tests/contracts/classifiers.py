"""The contract of classifiers as a test suite; a test class inherits it and provides a classifier."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nodecopy import Graph, load
from nodecopy._core.random import seed_sequence
from nodecopy.classify import Classifier, Trial
from nodecopy.datasets import label_split
from nodecopy.errors import DataWarning, InputError, NotFittedError
from nodecopy.metrics.classification import nll
from tests.contracts.parameters import parametrise

CLASSES = ("ash", "oak", "yew")
N_NODES = 60


def planted_graph(*, strings: bool = True) -> Graph:
    """Three communities of twenty nodes; features say a little about them, and node 7 has none."""
    draw = np.random.default_rng(3)
    community = np.arange(N_NODES) % 3
    chance = np.where(community[:, None] == community, 0.3, 0.02)
    upper = np.triu(draw.random((N_NODES, N_NODES)) < chance, 1)
    features = draw.random((N_NODES, 12)) < np.where(np.arange(12) % 3 == community[:, None], 0.6, 0.1)
    features[7] = False
    labels = np.array(CLASSES)[community] if strings else community
    ids = [f"node {number}" for number in draw.permutation(N_NODES)]
    return Graph(upper | upper.T, features.astype(np.float32), labels, ids)


def other_edges(graph: Graph) -> Graph:
    adjacency = graph.adjacency.toarray()
    adjacency[:, :10] = adjacency[:10] = 0
    return graph.replace(adjacency=adjacency)


class ClassifierContract:
    """Inherit, and set ``classifiers`` to some that are not fitted; each is fitted once per class.

    The suite works for classes of your own. Set ``needs_features`` and ``predicts_other_graphs`` to False
    where they do not apply, ``is_random`` to False if nothing is drawn, ``trains`` to False if ``fit`` trains
    nothing, and ``can_be_saved`` to False if ``save`` raises an error.
    """

    needs_features = True
    predicts_other_graphs = True
    is_random = True
    trains = True
    can_be_saved = True
    classifiers: Mapping[str, Classifier] | tuple[Classifier, ...] = ()

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        parametrise(metafunc, classifier=self.classifiers)

    @pytest.fixture(scope="class")
    @classmethod
    def observed(cls) -> Graph:
        return planted_graph()

    @pytest.fixture(scope="class")
    @classmethod
    def nodes(cls, observed: Graph) -> Any:
        return label_split(observed.label_codes, 3, validation=15, test=30, rng=0)

    @pytest.fixture(scope="class")
    @classmethod
    def fitted(cls, classifier: Classifier, observed: Graph, nodes: Any) -> Classifier:
        unfitted = copy.deepcopy(classifier)
        assert unfitted.fit(observed, nodes.train, validation=nodes.validation, rng=0) is unfitted
        return unfitted

    def fit(self, classifier: Classifier, graph: Graph, nodes: Any, rng: Any = 0) -> Classifier:
        return copy.deepcopy(classifier).fit(graph, nodes.train, validation=nodes.validation, rng=rng)

    def test_better_than_chance(self, fitted: Classifier, observed: Graph, nodes: Any) -> None:
        """Guessing gets 18 of 30 right with probability 0.003."""
        right = fitted.predict()[nodes.test] == np.array(observed.labels)[nodes.test]
        assert right.sum() >= 18
        assert fitted.score(nodes.test) == right.mean()

    def test_score(self, fitted: Classifier, observed: Graph, nodes: Any) -> None:
        right = fitted.predict() == np.array(observed.labels)
        mask = np.zeros(N_NODES, bool)
        mask[nodes.test] = True
        assert fitted.score(mask) == fitted.score(observed.node_ids[nodes.test]) == right[mask].mean()
        unused = np.setdiff1d(np.arange(N_NODES), np.concatenate([nodes.train, nodes.validation]))
        assert fitted.score() == right[unused].mean()
        with pytest.raises(InputError, match="nodes must lie between 0 and 59; got 60"):
            fitted.score([60])
        if self.predicts_other_graphs:
            changed = other_edges(observed)
            expected = (fitted.predict(changed) == np.array(observed.labels)).mean()
            assert fitted.score(graph=changed) == expected
            with pytest.raises(InputError, match="graph must have labels to compare"):
                fitted.score(graph=observed.replace(labels=None))

    def test_predictions_without_validation_nodes(
        self, classifier: Classifier, fitted: Classifier, observed: Graph, nodes: Any
    ) -> None:
        if classifier.uses_validation:
            pytest.skip("validation nodes may change predictions")
        other = copy.deepcopy(classifier).fit(observed, nodes.train, rng=0)
        assert np.array_equal(other.predict_proba(), fitted.predict_proba())

    def test_default_training_nodes(self, classifier: Classifier, observed: Graph, nodes: Any) -> None:
        if not self.trains:
            pytest.skip("fit trains nothing")
        labels = np.array(observed.labels)
        labels[nodes.test] = ""
        graph = observed.replace(labels=labels)
        train = np.setdiff1d(np.flatnonzero(labels != ""), nodes.validation)
        default = copy.deepcopy(classifier).fit(graph, validation=nodes.validation, rng=0)
        explicit = copy.deepcopy(classifier).fit(graph, train, validation=nodes.validation, rng=0)
        assert np.array_equal(default.predict_proba(), explicit.predict_proba())
        with pytest.raises(InputError, match="at least one labelled node; got none"):
            default.score()

    def test_parameters(self, classifier: Classifier) -> None:
        params = classifier.get_params(deep=False)
        again = type(classifier)(**params)
        assert repr(again) == repr(classifier)
        assert again.get_params(deep=False) == params
        with pytest.raises(InputError, match=f"a parameter of {type(classifier).__name__} must be one of"):
            again.set_params(no_such_parameter=1)

    def test_predictions_are_probabilities_of_named_classes(self, fitted: Classifier) -> None:
        p = fitted.predict_proba()
        assert p.shape == (N_NODES, 3)
        assert p.dtype == np.float32
        assert p.min() >= 0
        np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-5)
        assert fitted.classes_.tolist() == list(CLASSES)
        assert set(fitted.predict().tolist()) <= set(CLASSES)

    def test_uncertainty_adds_up(self, fitted: Classifier) -> None:
        unsure = fitted.uncertainty()
        for part in (unsure.total, unsure.aleatoric, unsure.epistemic):
            assert part.shape == (N_NODES,)
            assert part.min() >= 0
        np.testing.assert_allclose(unsure.total, unsure.aleatoric + unsure.epistemic, atol=1e-6)
        assert unsure.total.max() <= np.log(3) + 1e-5

    def test_a_data_frame_tells_the_same(self, fitted: Classifier, observed: Graph) -> None:
        frame = fitted.to_pandas()
        assert frame.index.tolist() == observed.node_ids.tolist()
        assert frame["predicted"].tolist() == fitted.predict().tolist()
        columns = [f"p_{name}" for name in CLASSES]
        np.testing.assert_allclose(frame[columns], fitted.predict_proba(), atol=1e-6)

    def test_same_seed_same_result(
        self, classifier: Classifier, fitted: Classifier, observed: Graph, nodes: Any
    ) -> None:
        for rng in (0, np.random.SeedSequence(0)):
            again = self.fit(classifier, observed, nodes, rng)
            assert np.array_equal(again.predict_proba(), fitted.predict_proba())
        other = self.fit(classifier, observed, nodes, 1)
        assert np.array_equal(other.predict_proba(), fitted.predict_proba()) != self.is_random
        by_generator = [self.fit(classifier, observed, nodes, np.random.default_rng(0)) for _ in range(2)]
        assert np.array_equal(by_generator[0].predict_proba(), by_generator[1].predict_proba())

    def test_a_trial_is_the_same_whoever_runs_beside_it(
        self, classifier: Classifier, fitted: Classifier, observed: Graph, nodes: Any
    ) -> None:
        other = label_split(observed.label_codes, 2, validation=12, test=30, rng=1)
        trials = [
            Trial(other_edges(observed), other.train, other.validation, 5),
            Trial(observed, nodes.train, nodes.validation, seed_sequence(0)),
            Trial(observed, other.train, other.validation, 6),
        ]
        found = classifier.fit_trials(trials)
        np.testing.assert_allclose(found[1].probabilities, fitted.predict_proba(), atol=1e-5)
        assert all(prediction.networks is None for prediction in found)

    def test_input_stays_as_it_was(self, classifier: Classifier, observed: Graph, nodes: Any) -> None:
        before, train = pickle.loads(pickle.dumps(observed)), nodes.train.copy()
        settings = copy.deepcopy(vars(classifier))
        fitted = self.fit(classifier, observed, nodes, 1)
        assert observed == before
        assert np.array_equal(train, nodes.train)
        assert {key: repr(vars(fitted)[key]) for key in settings} == {k: repr(v) for k, v in settings.items()}

    def test_labels_that_must_not_be_seen_are_not(
        self, classifier: Classifier, fitted: Classifier, observed: Graph, nodes: Any
    ) -> None:
        hidden = np.setdiff1d(np.arange(N_NODES), np.concatenate([nodes.train, nodes.validation]))
        labels = np.array(observed.labels)
        labels[hidden] = np.roll(labels[hidden], 1)
        assert (labels != np.array(observed.labels)).any()
        shuffled = self.fit(classifier, observed.replace(labels=labels), nodes)
        assert np.array_equal(shuffled.predict_proba(), fitted.predict_proba())
        labels[hidden] = ""
        unknown = self.fit(classifier, observed.replace(labels=labels), nodes)
        assert np.array_equal(unknown.predict_proba(), fitted.predict_proba())

    def test_another_graph(self, fitted: Classifier, observed: Graph) -> None:
        if not self.predicts_other_graphs:
            with pytest.raises(InputError, match="graph must be left out"):
                fitted.predict_proba(observed)
            return
        np.testing.assert_allclose(fitted.predict_proba(observed), fitted.predict_proba(), atol=1e-6)
        changed = other_edges(observed)
        by_graph = fitted.predict_proba(changed)
        assert np.array_equal(by_graph, fitted.predict_proba(changed))
        assert np.array_equal(fitted.predict(changed), fitted.classes_[by_graph.argmax(axis=1)])
        p = by_graph.astype(np.float64)
        entropy = -(p * np.log(np.where(p > 0, p, 1))).sum(axis=1)
        np.testing.assert_allclose(fitted.uncertainty(changed).total, entropy, atol=1e-5)
        few = fitted.predict_proba(observed.replace(labels=None).subgraph(np.arange(20)))
        assert few.shape == (20, 3)

    def test_another_graph_must_have_the_same_features(self, fitted: Classifier, observed: Graph) -> None:
        if not self.needs_features or not self.predicts_other_graphs:
            pytest.skip("features are not used")
        with pytest.raises(InputError, match=r"features of the graph must have 12 columns.* got 5"):
            fitted.predict_proba(observed.replace(features=np.ones((N_NODES, 5))))
        with pytest.raises(InputError, match="must have features"):
            fitted.predict_proba(observed.replace(features=None))

    def test_saved_and_loaded(self, fitted: Classifier, observed: Graph, tmp_path: Path) -> None:
        if not self.can_be_saved:
            pytest.skip("it cannot be saved")
        path = tmp_path / "model.npz"
        fitted.save(path)
        loaded = load(path, classes=[type(fitted)])
        assert type(loaded) is type(fitted)
        assert repr(loaded) == repr(fitted)
        assert np.array_equal(loaded.predict_proba(), fitted.predict_proba())
        assert np.array_equal(loaded.uncertainty().aleatoric, fitted.uncertainty().aleatoric)
        assert np.array_equal(loaded.predict(), fitted.predict())
        assert np.array_equal(loaded.node_ids_, observed.node_ids)
        assert loaded.prediction_.details == fitted.prediction_.details
        for graph in (observed, other_edges(observed)) if self.predicts_other_graphs else ():
            np.testing.assert_allclose(loaded.predict_proba(graph), fitted.predict_proba(graph), atol=1e-6)
        assert [entry.name for entry in tmp_path.iterdir()] == ["model.npz"]
        with pytest.raises(InputError, match="graph must be given to score a classifier that was loaded"):
            loaded.score()

    @pytest.mark.filterwarnings("ignore:the temperature")  # some classifiers are right at all nodes
    def test_calibration(
        self, classifier: Classifier, fitted: Classifier, observed: Graph, nodes: Any, tmp_path: Path
    ) -> None:
        before, codes = fitted.predict_proba(), np.asarray(observed.label_codes)
        calibrated = copy.copy(fitted).calibrate()
        p = calibrated.predict_proba()
        assert p.dtype == np.float32
        assert nll(p, codes, nodes.validation) <= nll(before, codes, nodes.validation) + 1e-4
        assert np.array_equal(calibrated.predict(), fitted.predict())
        assert np.array_equal(calibrated.uncertainty().total, fitted.uncertainty().total)
        table = calibrated.table()
        np.testing.assert_allclose(np.transpose([table[f"p_{name}"] for name in CLASSES]), p, atol=1e-6)
        by_id = copy.copy(fitted).calibrate(observed.node_ids[nodes.validation])
        assert by_id.temperature_ == calibrated.temperature_
        if self.can_be_saved:
            calibrated.save(tmp_path / "model.npz")
            loaded = load(tmp_path / "model.npz", classes=[type(fitted)])
            assert np.array_equal(loaded.predict_proba(), p)
            with pytest.raises(InputError, match="calibrate must be called before a classifier is saved"):
                loaded.calibrate()
        assert np.array_equal(self.fit(calibrated, observed, nodes).predict_proba(), before)

    def test_scikit_learn_knows_a_classifier(self, classifier: Classifier, fitted: Classifier) -> None:
        base = pytest.importorskip("sklearn.base")
        assert base.is_classifier(classifier)
        assert not base.is_regressor(classifier)
        assert not base.get_tags(classifier).input_tags.two_d_array
        copied = base.clone(fitted)
        assert repr(copied) == repr(classifier)
        assert not hasattr(copied, "prediction_")

    def test_pickles(self, fitted: Classifier, observed: Graph) -> None:
        again = pickle.loads(pickle.dumps(fitted))
        graph = observed if self.predicts_other_graphs else None
        assert np.array_equal(again.predict_proba(graph), fitted.predict_proba(graph))

    def test_nothing_before_fit(self, classifier: Classifier, observed: Graph, tmp_path: Path) -> None:
        for ask in (
            classifier.predict_proba,
            classifier.predict,
            classifier.uncertainty,
            classifier.score,
            lambda: classifier.predict_proba(observed),
            lambda: classifier.save(tmp_path / "model.npz"),
        ):
            with pytest.raises(NotFittedError, match=r"call fit\(graph, train\) first"):
                ask()

    @pytest.mark.parametrize(
        ("features", "message"),
        [
            (None, "a graph must have features"),
            (np.zeros((N_NODES, 0)), "must have features"),
            (np.eye(N_NODES) * 1e300, "features in single precision must .* finite"),
        ],
    )
    def test_wrong_features(
        self, classifier: Classifier, observed: Graph, nodes: Any, features: Any, message: str
    ) -> None:
        if not self.needs_features:
            pytest.skip("features are not used")
        with pytest.raises(InputError, match=message):
            self.fit(classifier, observed.replace(features=features), nodes)

    def test_classes_without_training_nodes(
        self, classifier: Classifier, observed: Graph, nodes: Any
    ) -> None:
        """It was refused before, although its labels would serve the evaluation only."""
        if not self.trains:
            pytest.skip("fit trains nothing")
        truth = np.array(observed.labels)
        train = nodes.train[truth[nodes.train] != "yew"]
        validation = nodes.validation[truth[nodes.validation] != "yew"]
        fitted = copy.deepcopy(classifier)
        with pytest.warns(DataWarning, match=r"no training node has class yew \(20 nodes\)"):
            fitted.fit(observed, train, validation=nodes.validation, rng=0)
        assert fitted.classes_.tolist() == ["ash", "oak"]
        assert fitted.predict_proba().shape == (N_NODES, 2)
        right = fitted.predict() == truth
        assert not right[truth == "yew"].any()
        used = np.concatenate([train, validation])
        assert fitted.score() == right[np.setdiff1d(np.arange(N_NODES), used)].mean()
        unlabelled = observed.replace(labels=np.where(truth == "yew", "", truth))
        same = copy.deepcopy(classifier).fit(unlabelled, train, validation=validation, rng=0)
        assert np.array_equal(same.predict_proba(), fitted.predict_proba())

    def test_trials_with_other_classes(self, classifier: Classifier, observed: Graph, nodes: Any) -> None:
        fewer = nodes.train[np.array(observed.labels)[nodes.train] != "yew"]
        complete = Trial(observed, nodes.train, nodes.validation, 0)
        with pytest.warns(DataWarning, match="no training node has class yew"):
            partial = Trial(observed, fewer, nodes.validation, 1)
        alone = [classifier.fit_trials([trial])[0].probabilities for trial in (partial, complete)]
        together = classifier.fit_trials([complete, partial, complete])
        for prediction, expected in zip(together, (alone[1], alone[0], alone[1]), strict=True):
            np.testing.assert_allclose(prediction.probabilities, expected, atol=1e-5)
