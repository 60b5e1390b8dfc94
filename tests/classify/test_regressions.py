"""SGC and DGI: the contract, scikit-learn and PyTorch Geometric as oracles, and damaged parts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from nodecopy import Graph
from nodecopy.classify import DGI, SGC, Classifier, LabelPropagation, Trial, regressions
from nodecopy.classify.regressions import EmbeddingRegression, Infomax, softmax_regressions, train_infomax
from nodecopy.errors import DataWarning, InputError
from nodecopy.features.embeddings import NodeEmbeddings, leading_directions
from nodecopy.nn.networks import normalise_adjacency
from tests.contracts.classifiers import ClassifierContract, other_edges, planted_graph

CPU = torch.device("cpu")
CLASSIFIERS = {"sgc": SGC(), "dgi": DGI(16, n_epochs=60, learning_rate=0.01)}


class TestRegressions(ClassifierContract):
    is_random = False
    classifiers = CLASSIFIERS


def test_it_is_the_regression_of_scikit_learn_on_propagated_features() -> None:
    graph, train = planted_graph(), np.arange(12)
    restart, n_steps, C = 0.3, 4, 5.0
    adjacency = graph.adjacency.toarray() + np.eye(graph.n_nodes)
    roots = 1 / np.sqrt(adjacency.sum(axis=1))
    matrix = roots[:, None] * adjacency * roots
    own = NodeEmbeddings(graph, 3).features
    rows = own
    for _ in range(n_steps):
        rows = (1 - restart) * matrix @ rows + restart * own
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    rows /= np.sqrt(((rows - rows.mean(axis=0)) ** 2).sum(axis=1).mean())
    assert graph.label_codes is not None
    own_C = C * 3 / len(train)  # of three classes, whose nodes weigh one each
    oracle = LogisticRegression(C=own_C, max_iter=1000, tol=1e-8).fit(rows[train], graph.label_codes[train])
    fitted = SGC(restart, n_steps=n_steps, rank=3, C=C).fit(graph, train)
    np.testing.assert_allclose(fitted.predict_proba(), oracle.predict_proba(rows), atol=2e-3)


def test_trials_on_one_graph_share_their_embeddings(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []

    def train(features: Any, *others: Any) -> Any:
        calls.append(features)
        return train_infomax(features, *others)

    monkeypatch.setattr(regressions, "train_infomax", train)
    graph, other = planted_graph(), planted_graph()
    small = DGI(4, n_epochs=2)
    small.fit_trials([Trial(graph, [0, 1, 2]), Trial(graph, [3, 4, 5]), Trial(other, [0, 1, 2])])
    assert len(calls) == 2
    small.fit(graph, [1, 2, 3])  # in a further round of self-training, say
    assert len(calls) == 2
    small.set_params(n_epochs=3).fit(graph, [1, 2, 3])
    assert len(calls) == 3


def test_the_penalty_is_chosen_by_validation() -> None:
    graph, small = planted_graph(), DGI(8, n_epochs=30, learning_rate=0.01)
    assert small.fit(graph, [0, 1, 2]).prediction_.details["C"] == regressions.DEFAULT_STRENGTH
    scores = {}
    for strength in regressions.STRENGTHS:
        scores[strength] = small.set_params(C=strength).fit(graph, [0, 1, 2, 4]).score(range(30, 60))
    chosen = small.set_params(C=None).fit(graph, [0, 1, 2, 4], validation=range(30, 60))
    assert chosen.prediction_.details["C"] == max(scores, key=lambda strength: scores[strength])
    assert len(set(scores.values())) > 1


def test_without_a_seed_embeddings_are_drawn_from_that_of_fit() -> None:
    graph, small = planted_graph(), DGI(8, n_epochs=3, seed=None)
    first, again, other = (small.fit(graph, [0, 1, 2], rng=rng).predict_proba() for rng in (0, 0, 1))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    trials = [Trial(graph, [0, 1, 2], rng=rng) for rng in (0, 1)]
    for prediction, alone in zip(small.fit_trials(trials), (first, other), strict=True):
        assert np.array_equal(prediction.probabilities, alone)


@pytest.mark.parametrize(
    ("classifier", "message"),
    [
        (SGC(1.5), "restart of SGC must be"),
        (SGC(C=0), "C of SGC must be a number between 1e-09 and"),
        (DGI(seed=-1), "seed of DGI must be an integer of at least 0; got -1"),
    ],
)
def test_wrong_parameters(classifier: Classifier, message: str) -> None:
    with pytest.raises(InputError, match=message):
        classifier.fit(planted_graph(), [0, 1, 2])


def train(classifier: Classifier) -> EmbeddingRegression:
    networks = classifier.fit(planted_graph(), [0, 1, 2]).prediction_.networks
    assert isinstance(networks, EmbeddingRegression)
    return networks


@pytest.mark.parametrize("classifier", [SGC(), SGC(rank=2), DGI(4, n_epochs=2)], ids=repr)
def test_it_predicts_again_what_was_predicted(classifier: Classifier) -> None:
    regression, graph = train(classifier), planted_graph()
    np.testing.assert_allclose(regression.predict(graph, "cpu")[0], classifier.predict_proba(), atol=1e-6)
    rows = regression.embedding.apply(graph)
    assert rows.shape == (60, regression.embedding.shape[1])
    assert not np.allclose(regression.embedding.apply(other_edges(graph)), rows)
    lengths = np.linalg.norm(rows, axis=1)
    np.testing.assert_allclose(lengths, lengths[0], rtol=1e-5)


@pytest.mark.parametrize(
    ("classifier", "changes", "message"),
    [
        (SGC(), {"coefficients": np.zeros((2, 3))}, "coefficients must have the shape"),
        (SGC(), {"rarity": np.zeros((2, 2))}, "rarity must have the shape"),
        (SGC(rank=2), {"directions": np.zeros((1, 2))}, "directions must have the shape"),
        (SGC(), {"restart": 2.0}, "restart must be"),
        (SGC(), {"n_steps": -1}, "n_steps must be"),
        (DGI(4, n_epochs=2), {"bias": np.zeros(3, np.float32)}, "weights must have the shape"),
        (DGI(4, n_epochs=2), {"slope": np.zeros(2, np.float32)}, "slope must have the shape"),
    ],
)
def test_damaged_parts_are_refused(classifier: Classifier, changes: dict[str, Any], message: str) -> None:
    regression = train(classifier)
    part: Any = regression if hasattr(regression, next(iter(changes))) else regression.embedding
    with pytest.raises(InputError, match=message):
        replace(part, **changes)


def test_features_are_propagated_once_whatever_the_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []

    def find(matrix: Any, rank: int) -> Any:
        calls.append(rank)
        return leading_directions(matrix, rank)

    monkeypatch.setattr(regressions, "leading_directions", find)
    graph = planted_graph()
    for other in (graph, graph.replace(labels=np.arange(60) % 2)):
        SGC(rank=5).fit(other, [0, 1, 2])
    SGC(rank=6).fit(graph, [0, 1, 2])
    assert calls == [5, 6]


@pytest.mark.parametrize("n_rows", [6, 40])
def test_agrees_with_scikit_learn(n_rows: int) -> None:
    """With fewer rows than columns, and with more."""
    linear_model = pytest.importorskip("sklearn.linear_model")
    draw = np.random.default_rng(0)
    rows, codes = draw.normal(size=(n_rows, 10)), np.arange(n_rows) % 3
    weights = draw.random(n_rows) + 0.5
    strengths = (0.1, 10.0)
    fits = softmax_regressions(rows, np.eye(3)[codes], strengths, weights)
    for strength, (coefficients, intercepts) in zip(strengths, fits, strict=True):
        theirs = linear_model.LogisticRegression(C=strength, tol=1e-8, max_iter=10_000)
        theirs.fit(rows, codes, sample_weight=weights)
        np.testing.assert_allclose(coefficients.T, theirs.coef_, atol=5e-3)
        # Adding a constant to all intercepts changes nothing.
        ours, others = (values - values.mean() for values in (intercepts, theirs.intercept_))
        np.testing.assert_allclose(ours, others, atol=5e-3)


def test_soft_targets_are_fractions_of_samples() -> None:
    """A sample with target (0.75, 0.25) counts as three of the one class and one of the other."""
    rows = np.array([[0.0, 1.0], [1.0, 0.5]])
    targets = np.array([[0.75, 0.25], [0.0, 1.0]])
    (soft,) = softmax_regressions(rows, targets, [4.0])
    hard_targets = np.eye(2)[[0, 0, 0, 1, 1, 1, 1, 1]]
    (hard,) = softmax_regressions(rows.repeat(4, axis=0), hard_targets, [1.0])
    for ours, expected in zip(soft, hard, strict=True):
        np.testing.assert_allclose(ours, expected, atol=1e-3)


def matrices() -> tuple[sparse.csr_array, sparse.csr_array]:
    graph = planted_graph()
    return sparse.csr_array(np.asarray(graph.features)), normalise_adjacency(graph.adjacency)


def test_the_loss_is_that_of_pytorch_geometric() -> None:
    """Up to the weight of the corrupted outputs, which PyG adds and the authors average."""
    nn = pytest.importorskip("torch_geometric.nn")
    features, matrix = matrices()
    model = Infomax(features, matrix, 8, np.random.default_rng(0), CPU)
    permutation = torch.from_numpy(np.random.default_rng(1).permutation(60))
    theirs = nn.DeepGraphInfomax(
        8,
        encoder=lambda chosen: model.embed(chosen)[1],
        summary=lambda z, *_: z.mean(dim=0).sigmoid(),
        corruption=lambda _: permutation,
    )
    theirs.weight = torch.nn.Parameter(model.parameters[3][0].detach())
    expected = theirs.loss(*theirs(torch.arange(60))).item() / 2
    assert model.loss(permutation).item() == pytest.approx(expected, rel=1e-5)


def train_layer(**changes: Any) -> tuple[Any, int]:
    options: dict[str, Any] = {"n_hidden": 8, "learning_rate": 0.01, "n_epochs": 50, "patience": 50}
    rng = np.random.default_rng(0)
    weights, *_, n_epochs = train_infomax(*matrices(), DGI(**options | changes), rng, CPU)
    return weights, n_epochs


def test_training_lowers_the_loss_stops_and_takes_the_best_weights_back() -> None:
    """Steps that are far too long only raise the loss, so the initial weights are the best."""
    weights, n_epochs = train_layer()
    initial, _ = train_layer(n_epochs=1)
    assert n_epochs == 50
    assert np.abs(weights - initial).max() > 0.01
    assert 5 < train_layer(n_epochs=5000, patience=5)[1] < 5000
    best, n_epochs = train_layer(learning_rate=100.0, patience=4)
    assert n_epochs == 5
    assert np.array_equal(best, initial)


class TestLabelPropagation(ClassifierContract):
    needs_features = predicts_other_graphs = is_random = False
    classifiers = (LabelPropagation(n_steps=20),)


def path_graph() -> Graph:
    """Two components: a path 0 - 1 - 2 - 3 - 4, and node 5 alone."""
    return Graph(np.eye(6, k=1) * (np.arange(6) < 4)[:, None], labels=[0, 0, 0, 1, 1, 1])


def test_the_fixed_point() -> None:
    """Many steps solve (I - alpha S) F = (1 - alpha) Y."""
    graph = path_graph()
    (prediction,) = LabelPropagation(0.8, n_steps=300).fit_trials([Trial(graph, [0, 4])])
    adjacency = graph.adjacency.toarray()[:5, :5]
    scale = 1 / np.sqrt(adjacency.sum(axis=1))
    labels = np.zeros((5, 2))
    labels[0, 0] = labels[4, 1] = 1
    scores = np.linalg.solve(np.eye(5) - 0.8 * scale[:, None] * adjacency * scale, 0.2 * labels)
    expected = scores / scores.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(prediction.probabilities[:5], expected, atol=1e-5)


def test_agrees_with_pytorch_geometric() -> None:
    models = pytest.importorskip("torch_geometric.nn.models")
    import torch

    graph, train = planted_graph(strings=False), np.arange(9)
    ours = LabelPropagation(0.9, n_steps=7).fit(graph, train).predict_proba()
    sources, targets = graph.adjacency.nonzero()
    mask = torch.zeros(graph.n_nodes, dtype=torch.bool)
    mask[train] = True
    edges = torch.from_numpy(np.stack([sources, targets])).long()
    scores = models.LabelPropagation(7, 0.9)(
        torch.from_numpy(np.array(graph.label_codes)), edges, mask
    ).numpy()
    np.testing.assert_allclose(ours, scores / scores.sum(axis=1, keepdims=True), atol=1e-5)


def test_labels_spread_along_both_directions_of_edges(caplog: pytest.LogCaptureFixture) -> None:
    """Node 2 points to the labelled node 0, and the labelled node 1 points to node 3."""
    edges, train = ([2, 1, 2, 2], [0, 3, 3, 1]), [0, 1]
    graph = Graph.from_edges(*edges, directed=True).replace(labels=[0, 1, 0, 1])
    p = LabelPropagation(0.5).fit(graph, train).predict_proba()
    assert "both directions of the directed edges" in caplog.text
    undirected = Graph.from_edges(*edges).replace(labels=[0, 1, 0, 1])
    np.testing.assert_allclose(p, LabelPropagation(0.5).fit(undirected, train).predict_proba(), rtol=1e-6)


def test_nodes_that_no_label_reaches_are_counted() -> None:
    with pytest.warns(DataWarning, match="no label reaches 2 of 6 nodes in 1 steps .* the first, 0"):
        fitted = LabelPropagation(n_steps=1).fit(path_graph(), [0, 4])
    assert fitted.predict_proba()[[2, 5]].tolist() == [[0.5, 0.5]] * 2
    assert fitted.prediction_.details["unreached"] == 2


def test_alpha_is_chosen_by_validation() -> None:
    graph = planted_graph()
    assert LabelPropagation().fit(graph, [0, 1, 2]).prediction_.details == {"alpha": 0.95, "unreached": 0}
    scores = {}
    for alpha in (0.5, 0.8, 0.9, 0.95, 0.99):
        scores[alpha] = LabelPropagation(alpha).fit(graph, [0, 1, 2]).score(range(30, 60))
    chosen = LabelPropagation().fit(graph, [0, 1, 2], validation=range(30, 60))
    assert chosen.prediction_.details["alpha"] == max(scores, key=lambda alpha: scores[alpha])
    assert len(set(scores.values())) > 1
    fixed = LabelPropagation(0.5).fit(graph, [0, 1, 2], validation=range(30, 60))
    assert fixed.prediction_.details["alpha"] == 0.5


def test_pseudo_labels_count_by_their_weights() -> None:
    trial, nodes, codes = Trial(path_graph(), [0, 4], rng=0), np.array([2]), np.array([1])
    light, heavy = (
        trial.with_pseudo_labels(nodes, codes, weights=np.array([1, 1, weight], np.float32))
        for weight in (0.1, 1.0)
    )
    first, second = LabelPropagation(0.5).fit_trials([light, heavy])
    assert first.probabilities[1, 1] < second.probabilities[1, 1]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"alpha": 1}, "alpha of LabelPropagation must be below 1, for labels to count; got 1"),
        ({"weights": "heavy"}, "weights must be one of"),
    ],
)
def test_wrong_parameters_of_label_propagation(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        LabelPropagation(**parameters).fit_trials([Trial(path_graph(), [0, 4])])
