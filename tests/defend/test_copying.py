"""The copying defence: copied predictions, donors and corrections against direct computations."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import SeedSequence
from numpy.typing import NDArray
from scipy.special import softmax

from nodecopy import Graph, datasets
from nodecopy.attacks import AdaptiveCopyingAttack
from nodecopy.classify import APPNP, GCN, MLP, BayesianGCN
from nodecopy.defend import (
    AttackedState,
    CopyingDefence,
    Defence,
    GCNJaccard,
    SuspectCorrection,
    WithoutEdges,
    copying,
)
from nodecopy.defend.base import DefenceSeeds
from nodecopy.defend.copying import DONOR_NAMES, TwoHopCopier, build_donor_search, find_donors, predict_copies
from nodecopy.errors import DataWarning, InputError
from nodecopy.features.embeddings import NodeEmbeddings
from nodecopy.features.scaling import FeatureScaling, WeightScaling
from nodecopy.nn.engine import Ensemble
from nodecopy.nn.networks import TrainingConfig, add_identity_features
from tests.contracts.classifiers import planted_graph
from tests.contracts.defences import QUICK, SOME, TRAIN, DefenceContract
from tests.features.test_embeddings import plain_connections, wide_graph
from tests.strategies import matrices

FEATURES, HIDDEN, CLASSES = 5, 3, 4
MODES = pytest.mark.parametrize("mode", ["swap-features", "copy-row"])
DEFENCES: dict[str, Defence] = {
    "copying": CopyingDefence(GCN(**QUICK), n_donors=4),
    "copy-row": CopyingDefence(GCN(**QUICK), "features", 4, mode="copy-row"),
    "draws": CopyingDefence(GCN(**QUICK), "vgae", 4, n_graphs=3),
    "appnp": CopyingDefence(APPNP(n_steps=3, **QUICK), n_donors=2),
    "jaccard": CopyingDefence(GCNJaccard(0.1, classifier=GCN(**QUICK)), n_donors=3),
}


class TestCopyingDefence(DefenceContract):
    classifiers = DEFENCES


@pytest.fixture(scope="module")
def gcn() -> GCN:
    return GCN(**QUICK).fit(planted_graph(), TRAIN, rng=0)


def networks(*, bias: bool = True, features: str = "none", activation: str = "relu") -> Ensemble:
    draw = np.random.default_rng(1)
    shapes = [(FEATURES, HIDDEN), (HIDDEN, CLASSES), *([(1, HIDDEN), (1, CLASSES)] if bias else [])]
    weights = tuple(draw.normal(size=(2, *shape)).astype(np.float32) for shape in shapes)
    config = TrainingConfig(n_hidden=HIDDEN, bias=bias, features=features, activation=activation)
    return Ensemble(config, weights, np.zeros(2, np.int32), 0, FeatureScaling(features), WeightScaling("raw"))


def state_of(trained: Any, graph: Graph) -> AttackedState:
    p = np.full((graph.n_nodes, CLASSES), 1 / CLASSES, np.float32)
    return AttackedState(graph, p, GCN(), trained, SeedSequence(0), graph)


def dense_gcn(trained: Ensemble, adjacency: NDArray[Any], features: NDArray[Any]) -> NDArray[np.float64]:
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
        return np.asarray(dense_gcn(trained, adjacency, features)[donor])
    row = adjacency[donor].copy()
    if not graph.directed:
        row[node] = 0
        adjacency[:, node] = row
    adjacency[node] = row
    return np.asarray(dense_gcn(trained, adjacency, features)[node])


@st.composite
def cases(draw: st.DrawFn) -> tuple[Graph, list[tuple[int, int]]]:
    n = draw(st.integers(2, 9))
    directed = draw(st.booleans())
    features = np.random.default_rng(draw(st.integers(0, 99))).normal(size=(n, FEATURES))
    graph = Graph(draw(matrices((n, n))), features, directed=directed)
    nodes = st.integers(0, n - 1)
    pairs = st.tuples(nodes, nodes).filter(lambda pair: pair[0] != pair[1])
    return graph, draw(st.lists(pairs, min_size=1, max_size=8))


@MODES
@settings(max_examples=60)
@given(case=cases(), bias=st.booleans())
def test_two_hops_are_enough(mode: str, case: tuple[Graph, list[tuple[int, int]]], bias: bool) -> None:
    graph, pairs = case
    trained = networks(bias=bias)
    nodes, donors = np.array(pairs).T
    expected = [copied(graph, trained, *pair, mode) for pair in pairs]
    probabilities = TwoHopCopier(trained, graph, mode).predict_pairs(nodes, donors)
    np.testing.assert_allclose(probabilities, expected, atol=1e-6)
    whole = predict_copies(state_of(trained, graph), mode, nodes, donors)
    np.testing.assert_allclose(whole, expected, atol=1e-5)


@MODES
@pytest.mark.parametrize(
    "options", [{"features": "rows"}, {"features": "binary"}, {"activation": "none"}, {"activation": "leaky"}]
)
def test_networks_are_evaluated_as_trained(mode: str, options: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(0)
    adjacency = np.triu(draw.random((30, 30)) < 0.2, 1)
    graph = Graph(adjacency | adjacency.T, (draw.random((30, FEATURES)) < 0.5) * 2.0)
    trained = networks(**options)
    nodes = np.arange(30)
    donors = (nodes + 1) % 30
    expected = predict_copies(state_of(trained, graph), mode, nodes, donors)
    copier = TwoHopCopier(trained, graph, mode)
    np.testing.assert_allclose(copier.predict_pairs(nodes, donors), expected, atol=1e-5)
    monkeypatch.setattr(copying, "MAX_ENTRIES", 40)  # in parts
    np.testing.assert_allclose(copier.predict_pairs(nodes, donors), expected, atol=1e-5)


def search_donors(donors: Any, graph: Graph, nodes: Any, n_donors: int = 4) -> Any:
    embeddings = NodeEmbeddings(graph)
    search = build_donor_search(donors, embeddings, seed=SeedSequence(0), device="cpu", caller="test")
    return find_donors(search, n_donors, np.array(nodes))


def test_edges_of_a_node_do_not_choose_its_donors_by_features() -> None:
    graph = wide_graph()
    adjacency = graph.adjacency.toarray()
    adjacency[:, 5] = adjacency[5] = 0
    adjacency[5, 60:80] = adjacency[60:80, 5] = 1
    donors, after = (search_donors("features", g, [5]) for g in (graph, graph.replace(adjacency=adjacency)))
    assert np.array_equal(donors, after)


@pytest.mark.parametrize("donors", DONOR_NAMES)
def test_no_node_is_its_own_donor(donors: str) -> None:
    graph, nodes = planted_graph(), np.arange(60)
    own = search_donors(donors, graph, nodes)
    assert (own != nodes[:, None]).all()
    assert all(len(set(row)) == 4 for row in own.tolist())
    assert np.array_equal(own[[9, 2]], search_donors(donors, graph, [9, 2]))


def test_donors_by_an_array_or_a_function() -> None:
    graph, line = planted_graph(), np.arange(60.0)[:, None]
    for donors in (line, lambda graph: line * graph.n_nodes, line.tolist()):
        assert search_donors(donors, graph, [0, 30], 2).tolist() == [[1, 2], [29, 31]]


@pytest.mark.parametrize("features", [None, np.eye(60)], ids=["no features", "identity"])
def test_features_of_single_nodes_find_no_donors(features: Any) -> None:
    graph = planted_graph().replace(features=features)
    for donors in ("features", "expected"):
        with pytest.raises(InputError, match=r"graph must have features .* Donors can be chosen by 'neigh"):
            search_donors(donors, graph, [0])
    exact = plain_connections(graph)
    distances = ((exact[:, None] - exact[None]) ** 2).sum(axis=2)
    np.fill_diagonal(distances, np.inf)
    nearest = search_donors("neighbourhoods", graph, np.arange(60), 1)
    np.testing.assert_allclose(distances[np.arange(60), nearest.ravel()], distances.min(axis=1), atol=1e-9)


@pytest.mark.filterwarnings("ignore:the classifier has learned almost nothing")  # after so few epochs
def test_a_graph_without_features_is_defended() -> None:
    graph = add_identity_features(planted_graph().replace(features=None))
    defence = CopyingDefence(GCN(n_epochs=100), donors="neighbourhoods", n_donors=3).fit(graph, TRAIN, rng=0)
    assert (defence.predict() == np.asarray(graph.labels)).mean() > 0.7
    for wrong in ({"donors": "expected"}, {"donors": "neighbourhoods", "trust_edges": True}):
        with pytest.raises(InputError, match="graph must have features to find similar nodes"):
            CopyingDefence(GCN(n_epochs=1), n_donors=3, **wrong).fit(graph, TRAIN, rng=0)
    with pytest.raises(InputError, match="graph must have features to find similar nodes"):
        defence.score_suspicion()


@MODES
def test_correction_is_the_mean_over_donors(gcn: GCN, mode: str) -> None:
    graph = planted_graph()
    model = BayesianGCN(n_graphs=2, n_weight_samples=2, base=GCN(**QUICK)).fit(graph, TRAIN, rng=0)
    assert isinstance(model.prediction_.networks, Ensemble)
    without_dropout = replace(model.prediction_.networks, n_weight_samples=0)
    for fitted, evaluated in ((gcn, gcn.prediction_.networks), (model, without_dropout)):
        defence = CopyingDefence(n_donors=3, mode=mode).from_classifier(fitted, graph, targets=SOME)
        donors = defence.nearest_donors(SOME)
        state = replace(defence.state_, networks=evaluated)
        expected = predict_copies(state, mode, np.repeat(SOME, 3), donors.ravel()).reshape(4, 3, 3)
        np.testing.assert_allclose(defence.predict_proba()[SOME], expected.mean(axis=1), atol=1e-6)
        assert np.array_equal(defence.undefended_proba(), fitted.predict_proba(graph))
    defences = [CopyingDefence(n_donors=1, n_graphs=n, mode=mode) for n in (None, 10)]
    every, ten = (defence.from_classifier(gcn, graph) for defence in defences)
    np.testing.assert_allclose(every.predict_proba(), ten.predict_proba(), atol=1e-6)


def test_isolated_donors_give_the_prediction_without_edges(gcn: GCN) -> None:
    """The neighbourhood of an isolated donor is empty."""
    adjacency = planted_graph().adjacency.toarray()
    adjacency[50:] = adjacency[:, 50:] = 0
    graph = planted_graph().replace(adjacency=adjacency)
    embedding = np.where(np.arange(60) >= 50, 0.0, 9.0)[:, None]
    embedding[3] = 0.0
    without_edges = WithoutEdges().from_classifier(gcn, graph).predict_proba()[3]
    for mode in ("swap-features", "copy-row"):
        defence = CopyingDefence(donors=embedding, n_donors=5, mode=mode)
        defence.from_classifier(gcn, graph, targets=[3])
        assert (defence.nearest_donors([3]) >= 50).all()
        np.testing.assert_allclose(defence.predict_proba()[3], without_edges, atol=1e-6)


def test_correction_of_an_mlp_is_its_own_prediction() -> None:
    defence = CopyingDefence(MLP(**QUICK), n_donors=2).fit(planted_graph(), TRAIN, rng=0)
    np.testing.assert_allclose(defence.predict_proba(), defence.undefended_proba(), atol=1e-7)


@pytest.mark.skipif(
    not os.environ.get("NODECOPY_DATA"), reason="NODECOPY_DATA does not name the folder of the real files"
)
def test_copying_corrects_nodes_of_cora_with_random_edges() -> None:
    """The edges of forty nodes are replaced by ten random ones each; most are then misclassified."""
    cora = datasets.load("cora")
    split = datasets.label_split(cora.label_codes, 20, rng=1)
    draw = np.random.default_rng(1)
    targets = draw.choice(split.test, 40, replace=False)
    adjacency = cora.adjacency.tolil(copy=True)
    for target in targets:
        adjacency[target] = adjacency[:, [target]] = 0
        others = draw.choice(np.setdiff1d(np.arange(cora.n_nodes), target), 10, replace=False)
        adjacency[target, others] = adjacency[others, target] = 1
    defence = CopyingDefence()
    defence.fit(cora.replace(adjacency=adjacency.tocsr()), split.train, targets=targets, rng=0)
    truth = np.asarray(cora.labels)
    before, after = ((p == truth)[targets].mean() for p in (defence.undefended(), defence.predict()))
    assert before < 0.5
    assert after > before + 0.2


def test_adaptive_attack_flips_edges_at_donors_and_lowers_the_corrected_probability() -> None:
    graph = planted_graph()
    defence = CopyingDefence(donors="features", n_donors=4).fit(graph, TRAIN, targets=SOME, rng=0)
    flips = AdaptiveCopyingAttack("features", n_donors=4).attack(graph, SOME, budget=8, train=TRAIN, rng=0)
    donors = {int(target): defence.nearest_donors([target])[0] for target in SOME}
    for flip, owner in zip(flips.flips, flips.owners, strict=True):
        assert np.isin(flip, donors[int(owner)]).any()
    own = SOME, np.array(graph.label_codes)[SOME]
    before, after = defence.predict_proba()[own], defence.predict_proba(flips.apply(graph))[own]
    assert after.mean() < before.mean() - 0.05


def test_seeds_of_donors_are_children_of_the_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    seeds = []

    def record(*arguments: Any, seed: SeedSequence, **others: Any) -> Any:
        seeds.append(seed.spawn_key)
        return build_donor_search(*arguments, seed=seed, **others)

    monkeypatch.setattr(copying, "build_donor_search", record)
    CopyingDefence(GCN(**QUICK), n_donors=3).fit(planted_graph(), TRAIN, rng=0)
    assert seeds == [(DefenceSeeds.DONOR_EMBEDDING,)]


def test_donors_of_suspects_are_those_of_copying(gcn: GCN) -> None:
    first, second = (
        kind(n_donors=59).from_classifier(gcn, planted_graph(), rng=0).nearest_donors([1, 4])
        for kind in (CopyingDefence, SuspectCorrection)
    )
    assert np.array_equal(first, second)
    assert sorted(first[1].tolist()) == [n for n in range(60) if n != 4]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_donors": 60}, "n_donors of CopyingDefence .* 1 and n_nodes - 1 = 59; got 60"),
        ({"donors": np.ones((3, 2))}, "donors of CopyingDefence must have 60 rows.* got 3"),
        ({"donors": np.full((60, 2), np.nan)}, "embeddings of CopyingDefence must hold finite"),
    ],
)
def test_wrong_parameters(parameters: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        CopyingDefence(**parameters).fit(planted_graph(), [0, 1, 2], rng=0)


def test_a_long_correction_warns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copying, "MAX_SECONDS", 0.0)
    with pytest.warns(DataWarning, match="evaluate 8 graphs, which will take about 0 minutes"):
        CopyingDefence(APPNP(**QUICK), n_donors=2).fit(planted_graph(), TRAIN, targets=SOME, rng=0)
