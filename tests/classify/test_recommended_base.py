"""The default base of self-training: its networks and its donor rule follow the data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from nodecopy import Graph, KeepByDegree, NearestNeighbours, NodeCopying, SameLabel
from nodecopy.classify import APPNP, DGI, GCN, SGC, BayesianGCN, SoftVoting, Trial
from nodecopy.classify import self_training as defaults

RING = Graph.from_edges(np.arange(40), (np.arange(40) + 1) % 40)


def build(
    graph: Graph,
    *,
    network: str = "auto",
    prior: float | None = None,
    scarcity: float = 1.0,
    voters: Sequence[str] | None = ("networks",),
) -> Any:
    trial = Trial(graph.replace(labels=np.arange(40) % 2), np.array([0, 1]), None, 0)
    return defaults.build_base(
        trial, None, network=network, prior=prior, voters=voters, scarcity=scarcity, device="cpu"
    )


def words(share: float) -> NDArray[np.float64]:
    """Return word counts with a share of zeros."""
    return (np.random.default_rng(0).random((40, 30)) >= share).astype(float)


def test_sparse_word_counts_get_appnp_and_nearest_donors() -> None:
    base = build(RING.replace(features=words(0.95)))
    assert isinstance(base.base, APPNP)
    assert base.base.n_hidden == defaults.N_HIDDEN
    assert isinstance(base.graph_model.donors.donors, NearestNeighbours)


@pytest.mark.parametrize(
    "features",
    [None, words(0.6), -words(0.95), np.random.default_rng(1).random((40, 5))],
    ids=["none", "dense words", "negative", "real"],
)
def test_other_features_get_a_gcn_and_donors_of_the_same_class(features: Any) -> None:
    base = build(RING if features is None else RING.replace(features=features))
    assert isinstance(base.base, GCN)
    assert isinstance(base.graph_model.donors.donors, SameLabel)


def test_a_named_network_overrules_the_choice() -> None:
    assert isinstance(build(RING, network="appnp").base, APPNP)
    assert isinstance(build(RING.replace(features=words(0.95)), network="gcn").base, GCN)


def test_large_graphs_draw_donors_from_the_whole_class(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(defaults, "MAX_NODES_FOR_NEAREST", 39)
    assert isinstance(build(RING, network="appnp").graph_model.donors.donors, SameLabel)


def test_fewer_labels_copy_more() -> None:
    rules = [build(RING, scarcity=n_labels**-0.5).graph_model.donors for n_labels in (1, 4, 5, 20)]
    assert all(isinstance(rule, KeepByDegree) for rule in rules)
    assert [rule.prior for rule in rules] == pytest.approx([4, 2, 4 / 5**0.5, 4 / 20**0.5 / 4])


def test_a_prior_of_zero_copies_nothing_not_even_for_nodes_without_neighbours() -> None:
    lonely = Graph(np.zeros((40, 40)))
    model = build(lonely, prior=0.0).graph_model
    assert isinstance(model, NodeCopying)
    assert model.keep == 1.0


def test_the_choice_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", logger="nodecopy"):
        build(RING.replace(features=words(0.95)))
    assert "networks: APPNP, since features are word counts" in caplog.text
    assert "network='gcn'" in caplog.text


def test_networks_sgc_and_dgi_vote_with_equal_weights() -> None:
    base = build(RING, voters=None)
    assert isinstance(base, SoftVoting)
    assert [type(voter) for voter in base.classifiers] == [BayesianGCN, SGC, DGI]
    assert base.weights is None
    assert isinstance(build(RING, voters=["sgc"]), SGC)


def test_dgi_does_not_vote_in_large_graphs_unless_it_is_named(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(defaults, "MAX_NODES_FOR_INFOMAX", 39)
    with caplog.at_level("INFO", logger="nodecopy"):
        base = build(RING, voters=None)
    assert [type(voter) for voter in base.classifiers] == [BayesianGCN, SGC]
    assert "voters: networks and SGC, without DGI" in caplog.text
    assert isinstance(build(RING, voters=["dgi"]), DGI)
