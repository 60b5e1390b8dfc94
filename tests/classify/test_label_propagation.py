from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nodecopy import Graph
from nodecopy.classify import LabelPropagation, Trial
from nodecopy.errors import DataWarning, InputError
from tests.contracts.classifiers import ClassifierContract, planted_graph


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
def test_wrong_parameters(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        LabelPropagation(**parameters).fit_trials([Trial(path_graph(), [0, 4])])
