"""The surrogates that attackers train."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest

from nodecopy import Graph
from nodecopy.attacks import FGA, AdaptiveCopyingAttack, Attack, Nettack
from nodecopy.attacks.nettack import SurrogateLabels
from nodecopy.errors import DataWarning, InputError
from tests.contracts.attacks import TARGETS, TRAIN
from tests.contracts.classifiers import planted_graph


@pytest.mark.parametrize(
    "attack",
    [
        Nettack(degree_test=False),
        FGA(),
        FGA(loss="training-set"),
        AdaptiveCopyingAttack([[1, 2]]),
    ],
)
def test_surrogate_is_trained_from_the_seed(attack: Attack) -> None:
    graph = planted_graph()
    flips = [attack.attack(graph, [4], budget=3, train=TRAIN, rng=seed) for seed in (0, 0, 1, 2)]
    assert flips[0] == flips[1]
    assert any(other != flips[0] for other in flips[2:])
    assert flips[0].spent.tolist() == [3]
    with (
        pytest.warns(DataWarning, match=r"no training node has class yew \(20 nodes\)"),
        pytest.raises(InputError, match=f"classes that some training node has.* got .*'{graph.node_ids[5]}'"),
    ):
        attack.attack(graph, [5], train=[0, 1])
    assert graph.labels is not None
    unlabelled = graph.replace(labels=np.where(np.arange(60) == 0, -1, graph.labels))
    with pytest.raises(InputError, match=f"labelled nodes; got the node with id '{graph.node_ids[0]}'"):
        attack.attack(unlabelled, [4], train=TRAIN)


def find_flips(attack: Attack, graph: Graph) -> list[list[int]]:
    flips: list[list[int]] = attack.attack(graph, [4], budget=3, train=TRAIN, rng=0).flips.tolist()
    return flips


@pytest.mark.parametrize("attack", [Nettack, FGA])
def test_surrogates_standardise_measurements(attack: Any, caplog: pytest.LogCaptureFixture) -> None:
    """Flips found on raw measurements hardly changed a classifier that standardises them."""
    graph = planted_graph()
    features: Any = graph.features
    standardised = (features - features.mean(axis=0)) / features.std(axis=0)
    amounts = graph.replace(features=standardised * 1e3 ** np.arange(-1, 2).repeat(4) + 5)
    with caplog.at_level(logging.INFO, "nodecopy"):
        flips = find_flips(attack(), amounts)
    (message,) = caplog.messages
    assert message.startswith("features: each column is standardised for the attacker's surrogate, since")
    assert flips == find_flips(attack(scale="none"), graph.replace(features=standardised))
    assert flips != find_flips(attack(scale="none"), amounts)
    with pytest.raises(InputError, match=f"scale of {attack.__name__} must be one of .*; got 'log'"):
        find_flips(attack(scale="log"), amounts)


@pytest.mark.parametrize(("attack", "scale"), [(Nettack, "none"), (FGA, "rows")])
def test_surrogates_take_word_counts_as_in_their_papers(attack: Any, scale: str) -> None:
    graph = planted_graph().replace(features=np.random.default_rng(0).poisson(0.2, (60, 30)))
    assert find_flips(attack(), graph) == find_flips(attack(scale=scale), graph)


def test_training_nodes_are_all_labelled_nodes_but_the_targets() -> None:
    labels = SurrogateLabels.from_graph(planted_graph(), np.array(TARGETS), None, "a test")
    assert labels.train.tolist() == sorted(set(range(60)) - set(TARGETS))
    assert labels.n_classes == 3


def test_a_class_without_training_nodes_is_left_out() -> None:
    """It was refused before; the surrogate is that of a graph without the labels of the class."""
    graph = planted_graph()
    labels = np.array(graph.named_labels())
    train = [node for node in TRAIN if labels[node] != "yew"]
    unlabelled = graph.replace(labels=np.where(labels == "yew", "", labels))
    for attack in (Nettack(degree_test=False), FGA(), AdaptiveCopyingAttack([[1, 2]])):
        with pytest.warns(DataWarning, match="no training node has class yew"):
            flips = attack.attack(graph, [4], budget=3, train=train, rng=0)
        assert flips == attack.attack(unlabelled, [4], budget=3, train=train, rng=0)
    alone = graph.replace(labels=np.where((labels == "yew") & (np.arange(60) != 5), "", labels))
    with pytest.raises(InputError, match="at least one node of every class; got none of class yew"):
        Nettack().attack(alone, [5], rng=0)  # the only node of its class is no training node by default


@pytest.mark.parametrize(
    "attack", [Nettack(), FGA(), AdaptiveCopyingAttack(np.zeros((len(TARGETS), 2), int))]
)
@pytest.mark.parametrize("features", [None, np.zeros((60, 0))], ids=["none", "no columns"])
def test_surrogates_need_features(attack: Attack, features: Any) -> None:
    graph = planted_graph().replace(features=features)
    name = type(attack).__name__
    with pytest.raises(InputError, match=f"graph must have features for {name}; this one has none"):
        attack.attack(graph, TARGETS, train=TRAIN, rng=0)
