"""The contract of a classifier that a user writes, trials, predictions, warnings, and damaged files."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy import sparse

from nodecopy import Graph, datasets, load, read_graph
from nodecopy.classify import APPNP, GCN, MLP, SGC, Classifier, Prediction, SelfTraining, Trial
from nodecopy.classify.base import entropy, warn_if_not_learned
from nodecopy.errors import DataWarning, InputError
from tests.contracts.classifiers import planted_graph

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


@pytest.mark.filterwarnings("ignore:the classifier has learned almost nothing")  # after so few epochs
def test_whole_numbers_as_labels_come_back() -> None:
    graph = planted_graph(strings=False)
    labels = np.array([4, 9, 2])[np.array(graph.label_codes)]
    fitted = GCN(n_epochs=5).fit(graph.replace(labels=labels), [0, 1, 2], rng=0)
    assert fitted.classes_.tolist() == [2, 4, 9]
    assert set(fitted.predict().tolist()) <= {2, 4, 9}


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
    fitted = {"prediction_", "classes_", "node_ids_", "feature_encoder_", "graph_kind_", "temperature_"}
    assert set(tree["state"]) == fitted


class Alternating(Classifier):
    """Predict class 0 and 1 in turn."""

    def predict_trial(self, trial: Trial) -> Any:
        return np.eye(trial.n_classes)[np.arange(trial.graph.n_nodes) % 2]


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
        (sparse.csr_array(np.ones((60, 3)) / 3), "must be an array; got scipy.csr_array"),
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


def test_predict_graph_may_return_an_array() -> None:
    class Uniform(LabelPropagation):
        def predict_graph(self, graph: Any) -> NDArray[np.float64]:
            return np.full((graph.n_nodes, len(self.classes_)), 1 / 3)

    fitted = Uniform().fit(GRAPH, [0, 1, 2])
    np.testing.assert_allclose(fitted.predict_proba(GRAPH.subgraph(range(5))), np.full((5, 3), 1 / 3))
    with pytest.raises(InputError, match=r"unless it defines predict_graph\(graph\)"):
        LabelPropagation().fit(GRAPH, [0, 1, 2]).predict(GRAPH)


@pytest.mark.filterwarnings("ignore:the classifier has learned almost nothing")  # after so few epochs
def test_new_rows_are_encoded_as_those_of_fit(tmp_path: Path) -> None:
    """Text and missing cells were refused; new rows with other categories would have other columns."""
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


EDGES = np.random.default_rng(0).integers(0, 60, (2, 200))
WEIGHTED = Graph.from_edges(
    EDGES[0], EDGES[1], 1 + np.arange(200) % 7, node_ids=np.arange(60), features=np.eye(60)
)
WEIGHTED = WEIGHTED.replace(labels=np.arange(60) % 2)
DIRECTED = Graph.from_edges(EDGES[0], EDGES[1], node_ids=np.arange(60), features=np.eye(60), directed=True)
DIRECTED = DIRECTED.replace(labels=np.arange(60) % 2)
SUMMED = WEIGHTED.with_edge_settings(duplicates="sum")


@pytest.mark.filterwarnings("ignore:the classifier has learned almost nothing")  # after so few epochs
@pytest.mark.parametrize(
    ("fitted_to", "given", "equal", "message"),
    [
        (DIRECTED, DIRECTED.undirected(), None, "directed must be True, as in fit; got False"),
        (SUMMED, WEIGHTED.with_edge_settings(duplicates="max"), None, "duplicates must be 'sum', as in fit"),
        (SUMMED, WEIGHTED, SUMMED, ""),
        (WEIGHTED, WEIGHTED.binary(), WEIGHTED.binary(), "all edges have the weight 1"),
        (WEIGHTED.binary(), WEIGHTED, WEIGHTED.binary(), "without weights, as in fit"),
        (DIRECTED.undirected(), DIRECTED, DIRECTED.undirected(), "without directions, as in fit"),
    ],
)
def test_predictions_on_a_graph_of_another_kind(
    fitted_to: Graph, given: Graph, equal: Graph | None, message: str, tmp_path: Path, caplog: Any
) -> None:
    """Probabilities moved by up to 0.2, without a word."""
    GCN(n_epochs=5).fit(fitted_to, range(10), rng=0).save(tmp_path / "fitted.npz")
    loaded = load(tmp_path / "fitted.npz")
    with caplog.at_level("INFO", "nodecopy"):
        if equal is None:
            with pytest.raises(InputError, match=message):
                loaded.predict_proba(given)
            loaded.graph_kind_ = None  # a file of an earlier version
            assert loaded.predict_proba(given).shape == (60, 2)
        else:
            caplog.clear()
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                predicted = loaded.predict_proba(given)
            assert message in caplog.text + "".join(str(warning.message) for warning in caught)
            assert bool(caplog.text or caught) == bool(message)
            expected = loaded.evaluate_graph(equal).probabilities
            np.testing.assert_array_equal(predicted, expected)


@pytest.mark.filterwarnings("ignore:the classifier has learned almost nothing")  # after so few epochs
def test_what_a_classifier_does_not_use_may_differ() -> None:
    for classifier in (MLP(n_epochs=5), SelfTraining(MLP(n_epochs=5), n_rounds=0)):
        assert classifier.fit(DIRECTED, range(10), rng=0).predict(WEIGHTED).shape == (60,)
    assert GCN(n_epochs=5, weights="binary").fit(WEIGHTED, range(10)).predict(WEIGHTED.binary()).shape == (
        60,
    )


@pytest.mark.filterwarnings("ignore:the classifier has learned almost nothing")  # after so few epochs
def test_labels_of_another_graph_are_classes_of_fit() -> None:
    """The accuracy was 0, whatever was predicted."""
    fitted = GCN(n_epochs=5).fit(WEIGHTED, range(10), rng=0)
    texts = np.array(["no", "yes"])[np.arange(60) % 2]
    with pytest.raises(InputError, match="labels must be classes of fit, 0, 1; got no, yes"):
        fitted.score(graph=WEIGHTED.replace(labels=texts))
    texts = (np.arange(60) % 2).astype(str)
    assert fitted.score(graph=WEIGHTED.replace(labels=texts)) == fitted.score(graph=WEIGHTED) > 0


def test_edges_between_different_classes() -> None:
    first, second = np.nonzero(np.triu(np.arange(60)[:, None] % 2 != np.arange(60) % 2))
    graph = Graph.from_edges(first, second, features=np.eye(60)[:, :2], labels=np.arange(60) % 2)
    with pytest.warns(DataWarning, match=r"0% of the 400 edges .* 50% would by chance.* MLP\(\)"):
        Alternating().fit(graph, range(40))
    Alternating().fit(graph, range(4))  # too few edges for a warning, which would be an error
    Alternating().fit(GRAPH, range(60))
    MLP().fit(graph.replace(features=np.eye(60)[:, :2] + np.arange(60)[:, None] % 2), range(40), rng=0)


def test_a_trial_holds_positions_codes_and_a_seed() -> None:
    trial = Trial(GRAPH, GRAPH.node_ids[[5, 1, 0]], np.arange(60) == 7, 3)
    assert (trial.train.tolist(), trial.n_classes) == ([5, 1, 0], 3)
    assert trial.validation is not None
    assert trial.validation.tolist() == [7]
    assert (trial.rng.entropy, trial.rng.spawn_key) == (3, ())
    assert np.array_equal(trial.codes, np.arange(60) % 3)


def test_codes_number_the_labels_that_occur() -> None:
    labels = np.array([4, 9, 2])[np.arange(60) % 3]
    labels[10] = -1
    trial = Trial(planted_graph(strings=False).replace(labels=labels))
    assert trial.codes[:3].tolist() == [1, 2, 0]
    assert trial.codes[10] == -1
    assert 10 not in trial.train


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((GRAPH, [0, 1, 2, 1]), "train must be unique; got 1 more than once"),
        ((GRAPH, [0, 3]), "train must hold nodes of at least two classes; got only class ash"),
        ((GRAPH, []), "train must hold at least one node; got none"),
        ((GRAPH, np.arange(60) % 2), "got a mask of integers. Pass np.asarray"),
        ((GRAPH, [0, 1, 2], [2, 3]), "validation must hold other nodes than train; got node 2"),
        ((GRAPH.replace(labels=None),), "a graph must have labels"),
        ((GRAPH.replace(labels=np.arange(60) % 3 - 1), [0, 1]), "train must hold labelled nodes; got node 0"),
    ],
)
def test_wrong_trials(arguments: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Trial(*arguments)


def test_uncertainty_of_samples() -> None:
    """Two certain samples of different classes: all uncertainty is epistemic."""
    p = np.array([[1.0, 0.0], [0.5, 0.5], [0.25, 0.75]])
    expected = [0.0, np.log(2), -(0.25 * np.log(0.25) + 0.75 * np.log(0.75))]
    np.testing.assert_allclose(entropy(p), expected, atol=1e-12)
    uncertainty = Prediction(np.array([[0.5, 0.5]], np.float32), np.zeros(1, np.float32)).uncertainty()
    np.testing.assert_allclose(uncertainty.epistemic, np.log(2), rtol=1e-6)
    assert uncertainty.aleatoric.tolist() == [0.0]
    rounded = Prediction(np.array([[0.5, 0.5]], np.float32), np.array([0.7], np.float32))
    assert rounded.uncertainty().epistemic.tolist() == [0.0]


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
        (np.ones((1, 2, 2)), r"samples must be probabilities.* got a row \[1. 1.\]"),
        (np.array([[[1.5, -0.5]]]), "samples must be probabilities, at least 0"),
    ],
)
def test_wrong_samples(samples: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Prediction.from_samples(samples)


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


def test_one_class_for_all() -> None:
    p = np.tile([0.1, 0.9], (10, 1)).astype(np.float32)
    with pytest.warns(DataWarning, match="all 10 nodes are predicted to be of class b, one of 2"):
        warn_if_not_learned(Prediction(p, np.zeros(10, np.float32)), ["a", "b"])


def test_one_class_for_all_where_it_has_most_labels() -> None:
    """Probabilities of a rare class may rank its nodes while none is predicted to be of it."""
    trial = Trial(Graph(np.zeros((60, 60)), labels=np.arange(60) % 6 == 0))
    rare = np.where(trial.codes == 1, 0.3, 0.1)
    for scores, is_learned in ((rare, True), (rare[::-1], False), (np.full(60, 0.1), False)):
        p = Prediction(np.column_stack([1 - scores, scores]).astype(np.float32), np.zeros(60, np.float32))
        with nullcontext() if is_learned else pytest.warns(DataWarning, match="predicted to be of class 0"):
            warn_if_not_learned(p, [0, 1], trial)


def test_nearly_uniform_probabilities_that_rank_every_class() -> None:
    trial = Trial(Graph(np.zeros((60, 60)), labels=np.arange(60) % 3))
    order = np.random.default_rng(0).permutation(60)
    ranked = 0.3 + 0.05 * np.eye(3)[trial.codes]
    of_two_classes = ranked - 0.05 * np.eye(3)[np.where(trial.codes == 2, 2, 0)]
    for p, is_learned in ((ranked, True), (ranked[order], False), (of_two_classes, False)):
        prediction = Prediction(
            (p / p.sum(axis=1, keepdims=True)).astype(np.float32), np.zeros(60, np.float32)
        )
        with nullcontext() if is_learned else pytest.warns(DataWarning, match="100% of the nodes is at most"):
            warn_if_not_learned(prediction, ["a", "b", "c"], trial)


def test_advice_names_what_the_classifier_has() -> None:
    """Standardised data and classifiers without epochs got the advice to standardise and train longer."""
    graph = Graph(np.zeros((40, 40)), np.full((40, 3), 1e-6), np.arange(40) % 2)
    for classifier, advice in (
        (Constant(np.full((40, 2), 0.5)), "features differ by class, and that the labels"),
        (MLP(n_epochs=1), "features differ by class, that n_epochs is large enough, and"),
        (MLP(n_epochs=1, features="none"), r"no measurements \(they were scaled by 'none'\), that n_epochs"),
    ):
        with pytest.warns(DataWarning, match=f"Check that .*{advice}"):
            classifier.fit(graph, rng=0)


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


def test_calibration_needs_other_nodes() -> None:
    fitted = LabelPropagation().fit(GRAPH, [0, 1, 2])
    for nodes, message in (([0], "other nodes than train; got node 0"), ([], "not training nodes; got none")):
        with pytest.raises(InputError, match=message):
            fitted.calibrate(nodes)


DAMAGES: dict[str, Callable[[NDArray[Any]], Any]] = {
    "truncated": lambda array: array[:-1],
    "lengthened": lambda array: np.concatenate([array, array]),
    "another dimension": lambda array: array[None],
    "narrow": lambda array: array[..., :-1],
    "not finite": lambda array: np.full(array.shape, np.nan, np.float32),
    "complex": lambda array: np.zeros(array.shape, np.complex64),
}


@pytest.mark.filterwarnings("ignore:the classifier has learned almost nothing")
@pytest.mark.parametrize(
    "classifier", [GCN(n_epochs=2, bias=True), APPNP(n_epochs=2), SGC(), SelfTraining(n_rounds=1)], ids=repr
)
def test_damaged_archives_of_classifiers_are_refused(classifier: Any, tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    graph = Graph(np.ones((6, 6)), np.eye(6), [0, 1, 2, 0, 1, 2])
    fitted = classifier.fit(graph, [0, 1, 2], rng=0)
    fitted.save(path)
    with np.load(path) as archive:
        arrays = dict(archive)
    for name in set(arrays) - {"tree"}:
        for change in DAMAGES.values():
            np.savez(path, **arrays | {name: change(arrays[name])})
            with pytest.raises(InputError, match=r"model\.npz"):
                load(path)
    for key, wrong in {"n_weight_samples": 10**12, "n_steps": 10**12, "n_hidden": 10**9}.items():
        tree = re.sub(rf'("{key}": )\d+', rf"\g<1>{wrong}", str(arrays["tree"]))
        np.savez(path, **arrays | {"tree": np.array(tree)})
        if tree != str(arrays["tree"]) and (key != "n_hidden" or isinstance(classifier, (GCN, APPNP))):
            with pytest.raises(InputError, match=r"model\.npz"):
                load(path)


def test_the_report_counts_each_class() -> None:
    graph = planted_graph()
    fitted = SGC().fit(graph, [0, 1, 2])
    report, labels, predicted = fitted.report(), np.array(graph.labels)[3:], fitted.predict()[3:]
    assert report.confusion.sum() == 57
    for number, name in enumerate(report.classes):
        right = ((labels == name) & (predicted == name)).sum()
        precision, recall = right / (predicted == name).sum(), right / (labels == name).sum()
        assert report.recall[number] == recall
        assert report.precision[number] == precision
        assert report.f1[number] == pytest.approx(2 * precision * recall / (precision + recall))
        assert report.by_class()[name]["nodes"] == (labels == name).sum()
