"""The contract for a classifier that a user writes with public methods only."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

from nodecopy import Graph, load, read_graph
from nodecopy._core.checks import type_name
from nodecopy.classify import APPNP, GCN, SGC, BayesianGCN, Classifier, Prediction, Trial
from nodecopy.errors import InputError
from tests.contracts.classifiers import CLASSES, ClassifierContract, planted_graph

GRAPH = planted_graph()


class LabelPropagation(Classifier):
    def __init__(self, n_steps: int = 10) -> None:
        self.n_steps = n_steps

    def predict_trial(self, trial: Trial) -> NDArray[np.float64]:
        adjacency, train = trial.graph.adjacency, trial.train
        p = np.full((trial.graph.n_nodes, trial.n_classes), 1 / trial.n_classes)
        for _ in range(self.n_steps):
            p[train] = np.eye(trial.n_classes)[trial.codes[train]]
            p = adjacency @ p + 1e-9
            p /= p.sum(axis=1, keepdims=True)
        return p


class TestOwnClassifier(ClassifierContract):
    needs_features = predicts_other_graphs = is_random = False

    @pytest.fixture(scope="class")
    @classmethod
    def classifier(cls) -> Classifier:
        return LabelPropagation(n_steps=8)


def test_a_subclass_must_define_predict_trial() -> None:
    with pytest.raises(NotImplementedError, match=r"Classifier must define predict_trial\(trial\)"):
        Classifier().fit(GRAPH, [0, 1, 2])


@pytest.mark.filterwarnings("ignore:the classifier has learned almost nothing")  # after so few epochs
def test_predict_trial_may_return_a_prediction() -> None:
    expected = Prediction(np.full((60, 3), 1 / 3, np.float32), np.zeros(60, np.float32), {"steps": 2})

    class Fixed(Classifier):
        def predict_trial(self, trial: Trial) -> Prediction:
            return expected

    assert Fixed().fit(GRAPH, [0, 1, 2]).prediction_ is expected


@pytest.mark.filterwarnings("ignore:the classifier has learned almost nothing")  # after so few epochs
def test_whole_numbers_as_labels_come_back() -> None:
    graph = planted_graph(strings=False)
    labels = np.array([4, 9, 2])[np.array(graph.labels)]
    fitted = GCN(n_epochs=5).fit(graph.replace(labels=labels), [0, 1, 2], rng=0)
    assert fitted.classes_.tolist() == [2, 4, 9]
    assert set(fitted.predict().tolist()) <= {2, 4, 9}


@pytest.mark.filterwarnings("ignore:the classifier has learned almost nothing")  # after so few epochs
def test_names_do_not_change_the_result() -> None:
    named, plain = (planted_graph(strings=strings) for strings in (True, False))
    first, second = (GCN(n_epochs=5).fit(graph, [0, 1, 2], rng=0) for graph in (named, plain))
    assert np.array_equal(first.predict_proba(), second.predict_proba())
    assert first.predict().tolist() == [CLASSES[code] for code in second.predict()]


@pytest.mark.filterwarnings("ignore:the classifier has learned almost nothing")  # after so few epochs
def test_the_file_holds_public_names_and_neither_graph_nor_labels(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    GCN(n_epochs=3, n_hidden=4).fit(GRAPH, [0, 1, 2], rng=0).save(path)
    with np.load(path, allow_pickle=False) as archive:
        tree = json.loads(str(archive["tree"]))
    assert tree["class"] == "nodecopy.classify.GCN"
    params = tree["params"]
    assert (params["n_epochs"], params["n_hidden"], params["dropout"]) == (3, 4, None)
    assert "device" not in params
    fitted = {"prediction_", "classes_", "node_ids_", "feature_encoder_", "temperature_"}
    assert set(tree["state"]) == fitted


@pytest.mark.filterwarnings("ignore:the classifier has learned almost nothing")  # after so few epochs
def test_the_graph_model_and_the_base_are_saved(tmp_path: Path) -> None:
    from nodecopy import NodeCopying, SameLabel

    model = NodeCopying(SameLabel(), keep=0.5)
    classifier = BayesianGCN(model, n_graphs=1, n_weight_samples=1, base=GCN(n_epochs=2))
    classifier.fit(GRAPH, [0, 1, 2], rng=0).save(tmp_path / "model.npz")
    loaded = load(tmp_path / "model.npz")
    assert (loaded.graph_model.keep, loaded.base.n_epochs) == (0.5, 2)
    assert np.array_equal(loaded.predict_proba(GRAPH), classifier.predict_proba(GRAPH))


class Constant(Classifier):
    """Return a given result, whatever the trial."""

    def __init__(self, result: Any = None) -> None:
        self.result = result

    def predict_trial(self, trial: Trial) -> Any:
        return self.result


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (None, "must be a dense array of class probabilities; got NoneType"),
        (
            sparse.csr_array(np.ones((60, 3)) / 3),
            "must be an array; got scipy.csr_array. Use its method toarray",
        ),
        (np.full((60, 3), "a"), "must be a dense array of class probabilities; got <U1"),
        (np.full((60, 3), 1j), "must be a dense array of class probabilities; got complex128"),
        (np.ones(60), r"must have 60 rows, one per node; got shape \(60,\)"),
        (np.ones((60, 2)) / 2, r"must have 3 columns, one per class; got shape \(60, 2\)"),
        (np.tile([1.5, -0.5, 0.0], (60, 1)), r"must be probabilities, .* got a row \[ 1.5 -0.5  0. \]"),
        (np.ones((60, 3)), r"must be probabilities, at least 0 and with a sum of 1 in each row"),
        (np.full((60, 3), np.nan), "must hold finite numbers; got nan"),
    ],
)
def test_predict_trial_must_return_probabilities(result: Any, message: str) -> None:
    with pytest.raises(InputError, match="predict_trial of Constant " + message):
        Constant(result).fit(GRAPH, [0, 1, 2])
    if isinstance(result, np.ndarray):
        with pytest.raises(InputError, match="predict_trial of Constant " + message):
            Constant(Prediction(result, result)).fit(GRAPH, [0, 1, 2])


@pytest.mark.parametrize("graph", [None, np.eye(3)])
def test_graph_must_be_a_graph(graph: Any) -> None:
    got = type_name(graph)
    with pytest.raises(InputError, match=f"graph must be a Graph.*; got {got}"):
        GCN().fit(graph)
    with pytest.raises(InputError, match=f"graph must be a Graph.*; got {got}"):
        Trial(graph)


def test_predict_graph_may_return_an_array() -> None:
    class Uniform(LabelPropagation):
        def predict_graph(self, graph: Any) -> NDArray[np.float64]:
            return np.full((graph.n_nodes, len(self.classes_)), 1 / 3)

    fitted = Uniform().fit(GRAPH, [0, 1, 2])
    np.testing.assert_allclose(fitted.predict_proba(GRAPH.subgraph(range(5))), np.full((5, 3), 1 / 3))
    with pytest.raises(InputError, match=r"unless the class defines predict_graph\(graph\)"):
        LabelPropagation().fit(GRAPH, [0, 1, 2]).predict(GRAPH)


@pytest.mark.filterwarnings("ignore:the classifier has learned almost nothing")  # after so few epochs
def test_new_rows_are_encoded_as_those_of_fit(tmp_path: Path) -> None:
    """Text and missing cells were refused; new rows with other categories would have other columns."""
    pytest.importorskip("sklearn")
    edges = {"source": list("abcde"), "target": list("bcdef")}
    ages, cities = [31, None, 45, 38, 50, 29], ["Oslo", "Rome", "Oslo", "Rome", "Oslo", ""]
    features = {"id": list("abcdef"), "age": ages, "city": cities}
    pandas = pytest.importorskip("pandas")
    frames = pandas.DataFrame(edges), pandas.DataFrame(features)
    graph = read_graph(frames[0], features=frames[1]).replace(labels=[0, 1, 0, 1, 0, 1])
    fitted = GCN(n_epochs=5).fit(graph, rng=0)
    fitted.save(tmp_path / "fitted.npz")
    loaded = load(tmp_path / "fitted.npz")
    new = frames[1].assign(city=["Oslo", "Bergen", "Oslo", "Rome", "Rome", "Rome"])
    with pytest.raises(InputError, match=r"features of the graph must have the columns age, .* city = Oslo"):
        loaded.predict(read_graph(frames[0], features=new))
    encoded = read_graph(frames[0], features=new, encoder=loaded.feature_encoder_)
    assert loaded.predict_proba(encoded).shape == (6, 2)
    np.testing.assert_allclose(loaded.predict_proba(graph), fitted.predict_proba(), atol=1e-6)


DAMAGES: dict[str, Callable[[NDArray[Any]], Any]] = {
    "truncated": lambda array: array[:-1],
    "lengthened": lambda array: np.concatenate([array, array]),
    "another dimension": lambda array: array[None],
    "narrow": lambda array: array[..., :-1],
    "not finite": lambda array: np.full(array.shape, np.nan, np.float32),
    "complex": lambda array: np.zeros(array.shape, np.complex64),
}


@pytest.mark.filterwarnings("ignore:the classifier has learned almost nothing")
@pytest.mark.parametrize("classifier", [GCN(n_epochs=2, bias=True), APPNP(n_epochs=2)], ids=repr)
def test_damaged_archives_of_classifiers_are_refused(classifier: Any, tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    graph = Graph(np.ones((6, 6)), np.eye(6), [0, 1, 2, 0, 1, 2])
    fitted = classifier.fit(graph, [0, 1, 2], rng=0)
    fitted.save(path)
    with np.load(path) as archive:
        arrays = dict(archive)
    assert len(arrays) > 5
    for name in set(arrays) - {"tree"}:
        for change in DAMAGES.values():
            np.savez(path, **arrays | {name: change(arrays[name])})
            with pytest.raises(InputError, match=r"model\.npz"):
                load(path)
    for key, wrong in {"n_weight_samples": 10**12, "n_steps": 10**12, "n_hidden": 10**9}.items():
        tree = re.sub(rf'("{key}": )\d+', rf"\g<1>{wrong}", str(arrays["tree"]))
        np.savez(path, **arrays | {"tree": np.array(tree)})
        with pytest.raises(InputError, match=rf"{key} must be an integer"):
            load(path)


def test_a_class_that_predicts_in_another_way_may_use_validation_nodes() -> None:
    class Tuned(SGC):
        def fit_trials(self, trials: Any, *, keep_networks: bool = False) -> Any:
            return super().fit_trials(trials, keep_networks=keep_networks)

    class Stated(Tuned):
        uses_validation = property(lambda self: False)

    class Renamed(Stated):
        pass

    classes = SGC, Tuned, Stated, Renamed, LabelPropagation
    assert [part().uses_validation for part in classes] == [False, True, False, False, True]
