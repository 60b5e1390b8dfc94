"""Copied predictions from two hops against the whole graph, written out densely."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.special import softmax

from nodecopy import Graph
from nodecopy.classify.ensemble import Ensemble
from nodecopy.defend import copying as copiers
from nodecopy.defend.copying import TwoHopCopier, WholeGraphCopier
from nodecopy.features.scaling import FeatureScaling, WeightScaling
from nodecopy.nn.networks import TrainingConfig
from tests.strategies import matrices

FEATURES, HIDDEN, CLASSES = 5, 3, 4


def networks(
    n_models: int = 2, *, bias: bool = True, features: str = "none", activation: str = "relu"
) -> Ensemble:
    draw = np.random.default_rng(1)
    shapes = [(FEATURES, HIDDEN), (HIDDEN, CLASSES), *([(1, HIDDEN), (1, CLASSES)] if bias else [])]
    weights = tuple(draw.normal(size=(n_models, *shape)).astype(np.float32) for shape in shapes)
    recipe = TrainingConfig(n_hidden=HIDDEN, bias=bias, features=features, activation=activation)
    scaling = FeatureScaling(features), WeightScaling("raw")
    return Ensemble(recipe, weights, np.zeros(n_models, np.int32), 0, *scaling)


def gcn(trained: Ensemble, adjacency: NDArray[Any], features: NDArray[Any]) -> NDArray[np.float64]:
    """The mean softmax of all nodes, written out densely."""
    looped = adjacency + np.eye(len(adjacency))
    scale = 1 / np.sqrt(looped.sum(axis=1))
    propagation = scale[:, None] * looped * scale
    probabilities = []
    for first, second, *biases in zip(*trained.weights, strict=True):
        b1, b2 = biases or (0, 0)
        hidden = np.maximum(propagation @ features @ first + b1, 0)
        probabilities.append(softmax(propagation @ hidden @ second + b2, axis=1))
    return np.asarray(np.mean(probabilities, axis=0))


def copied(graph: Graph, trained: Ensemble, node: int, donor: int, mode: str) -> NDArray[np.float64]:
    adjacency, features = graph.adjacency.toarray().astype(float), np.array(graph.features, float)
    if mode == "swap-features":
        features[donor] = features[node]
        return np.asarray(gcn(trained, adjacency, features)[donor])
    row = adjacency[donor].copy()
    if not graph.directed:
        row[node] = 0
        adjacency[:, node] = row
    adjacency[node] = row
    return np.asarray(gcn(trained, adjacency, features)[node])


@st.composite
def cases(draw: st.DrawFn) -> tuple[Graph, list[tuple[int, int]]]:
    n = draw(st.integers(2, 9))
    directed = draw(st.booleans())
    features = np.random.default_rng(draw(st.integers(0, 99))).normal(size=(n, FEATURES))
    graph = Graph(draw(matrices((n, n))), features, directed=directed)
    nodes = st.integers(0, n - 1)
    pairs = st.tuples(nodes, nodes).filter(lambda pair: pair[0] != pair[1])
    return graph, draw(st.lists(pairs, min_size=1, max_size=8))


@pytest.mark.parametrize("mode", ["swap-features", "copy-row"])
@settings(max_examples=60, deadline=None)
@given(case=cases(), bias=st.booleans())
def test_two_hops_equal_the_whole_graph(
    mode: str, case: tuple[Graph, list[tuple[int, int]]], bias: bool
) -> None:
    graph, pairs = case
    trained = networks(bias=bias)
    nodes, donors = np.array(pairs).T
    probabilities = TwoHopCopier(trained, graph, mode).predict_pairs(nodes, donors)
    expected = [copied(graph, trained, *pair, mode) for pair in pairs]
    np.testing.assert_allclose(probabilities, expected, atol=1e-6)

    whole = WholeGraphCopier(lambda changed: trained.predict(changed, "cpu").probabilities, graph, mode)
    np.testing.assert_allclose(whole.predict_pairs(nodes, donors), expected, atol=1e-5)


@pytest.mark.parametrize("mode", ["swap-features", "copy-row"])
def test_path_by_hand(mode: str) -> None:
    """Node 3 is isolated; its donor is the middle of the path 0-1-2, with neighbours 0 and 2.

    All degrees with loops are then 2, 3, 2; one feature, weights one, no biases. In the donor's place
    the hidden layer is that of the path with features 1, 8, 3. With the donor's row the path becomes a
    square 0-1-2-3, all degrees 3, and node 3 sees 0 and 2, which see 1, whose feature is 2.
    """
    path = Graph.from_edges([0, 1], [1, 2], node_ids=[0, 1, 2, 3], features=[[1.0], [2.0], [3.0], [8.0]])
    ones = np.ones((1, 1, 1), np.float32)
    both = np.array([[[1.0, 0.0]]], np.float32)
    scaling = FeatureScaling("none"), WeightScaling("raw")
    trained = Ensemble(
        TrainingConfig(n_hidden=1, features="none"), (ones, both), np.zeros(1, np.int32), 0, *scaling
    )
    probabilities = TwoHopCopier(trained, path, mode).predict_pairs(np.array([3]), np.array([1]))
    if mode == "swap-features":
        ends = [1 / 2 + 8 / np.sqrt(6), 3 / 2 + 8 / np.sqrt(6)]
        middle = 8 / 3 + (1 + 3) / np.sqrt(6)
        logit = middle / 3 + sum(ends) / np.sqrt(6)
    else:
        logit = ((1 + 2 + 8) / 3 + (3 + 2 + 8) / 3 + (8 + 1 + 3) / 3) / 3
    np.testing.assert_allclose(probabilities[0, 0], 1 / (1 + np.exp(-logit)), rtol=1e-6)


@pytest.mark.parametrize("features", ["rows", "binary", "none"])
def test_features_are_prepared_as_in_training(features: str) -> None:
    draw = np.random.default_rng(0)
    adjacency = np.triu(draw.random((30, 30)) < 0.2, 1)
    graph = Graph(adjacency | adjacency.T, (draw.random((30, FEATURES)) < 0.5) * 2.0)
    trained = networks(features=features)
    nodes, donors = np.array([3, 4, 5]), np.array([9, 3, 5 + 1])
    probabilities = TwoHopCopier(trained, graph, "copy-row").predict_pairs(nodes, donors)
    whole = WholeGraphCopier(lambda changed: trained.predict(changed, "cpu").probabilities, graph, "copy-row")
    np.testing.assert_allclose(probabilities, whole.predict_pairs(nodes, donors), atol=1e-6)


def test_pairs_are_evaluated_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(0)
    adjacency = np.triu(draw.random((30, 30)) < 0.2, 1)
    graph = Graph(adjacency | adjacency.T, draw.normal(size=(30, FEATURES)))
    nodes = np.arange(30)
    pairs = nodes, (nodes + 1) % 30
    copying = TwoHopCopier(networks(), graph, "copy-row")
    expected = copying.predict_pairs(*pairs)
    monkeypatch.setattr(copiers, "MAX_ENTRIES", 40)
    np.testing.assert_allclose(copying.predict_pairs(*pairs), expected, atol=1e-12)


@pytest.mark.parametrize("mode", ["swap-features", "copy-row"])
def test_linear_networks_stay_linear(mode: str) -> None:
    draw = np.random.default_rng(0)
    graph = Graph(np.triu(draw.random((8, 8)) < 0.4, 1), draw.normal(size=(8, FEATURES)), directed=False)
    trained = networks(activation="none")
    whole = WholeGraphCopier(lambda other: trained.predict(other, "cpu").probabilities, graph, mode)
    nodes, donors = np.array([0, 1, 2]), np.array([5, 6, 7])
    probabilities = TwoHopCopier(trained, graph, mode).predict_pairs(nodes, donors)
    np.testing.assert_allclose(probabilities, whole.predict_pairs(nodes, donors), atol=1e-5)
    assert (
        np.abs(probabilities - TwoHopCopier(networks(), graph, mode).predict_pairs(nodes, donors)).max()
        > 0.01
    )
