"""The adaptive attack on the copying defence."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from nodecopy import Graph
from nodecopy.attacks import AdaptiveCopyingAttack, TargetedAttack
from nodecopy.attacks.perturbation import Edits
from nodecopy.errors import InputError
from tests.attacks.test_fga import SURROGATE, planted
from tests.attacks.test_gradients import WEIGHTS, rewired, use_doubles
from tests.contracts.attacks import TARGETS, TRAIN, AttackContract
from tests.contracts.classifiers import planted_graph

__all__ = ["use_doubles"]


@pytest.mark.parametrize("donors", ["features", "expected", "neighbourhoods"])
class TestAdaptiveCopyingAttack(AttackContract):
    @pytest.fixture(autouse=True)
    def choose(self, donors: str) -> None:
        self.donors = donors

    def build(self, *, together: bool = True) -> TargetedAttack:
        return AdaptiveCopyingAttack(self.donors, n_donors=3, surrogate=SURROGATE, together=together)


def test_given_donors_are_attacked() -> None:
    graph = planted_graph()
    donors = np.array([[(target + 3) % 60, (target + 6) % 60] for target in TARGETS])
    flips = AdaptiveCopyingAttack(donors, surrogate=SURROGATE).attack(graph, TARGETS, budget=4, rng=0)
    for target, own in zip(TARGETS, donors, strict=True):
        assert len(flips.of(target).flips) > 0
        assert np.isin(flips.of(target).flips, own).any(axis=1).all()


def test_donors_by_an_embedding() -> None:
    """On a line of positions the donors of node 4 are 3 and 5."""
    graph = planted_graph()
    attack = AdaptiveCopyingAttack(
        lambda graph: np.arange(graph.n_nodes)[:, None], n_donors=2, surrogate=SURROGATE
    )
    flips = attack.attack(graph, [4], budget=6, rng=0).flips
    assert len(flips) == 6
    assert np.isin(flips, [3, 5]).any(axis=1).all()


def test_attack_lowers_the_defended_probability_of_the_true_class() -> None:
    graph, donors = planted(), [[3, 12, 20]]

    def defended(attacked: Graph) -> float:
        network = rewired(attacked, Edits(attacked), [0])
        logits = network.copied_logits(torch.zeros(1, 30), torch.tensor(donors[0]), 7)
        return float(logits.softmax(1).mean(0)[7 % 3])

    at_donors = AdaptiveCopyingAttack(donors, surrogate=WEIGHTS).attack(graph, [7], budget=6)
    anywhere = AdaptiveCopyingAttack(donors, at_target=True, surrogate=WEIGHTS).attack(graph, [7], budget=6)
    assert at_donors.spent.tolist() == [6]
    assert defended(at_donors.apply(graph)) < defended(graph)
    assert defended(anywhere.apply(graph)) < defended(graph)
    assert np.isin(at_donors.flips, donors[0]).any(axis=1).all()


def test_two_donors_never_flip_the_same_edge() -> None:
    """A complete flip of all pairs of two neighbouring donors, each once."""
    graph = planted()
    flips = AdaptiveCopyingAttack([[3, 12]], flips_per_step=500, surrogate=WEIGHTS).attack(
        graph, [7], budget=500
    )
    ends = np.sort(flips.flips, axis=1)
    assert len(np.unique(ends, axis=0)) == len(ends)
    assert (ends[:, 0] != ends[:, 1]).all()
    flips.apply(graph)


def test_edges_of_the_target_are_flipped_only_with_at_target() -> None:
    graph = planted()
    donor = int(graph.adjacency[[7]].indices[0])
    for at_target in (False, True):
        attack = AdaptiveCopyingAttack([[donor]], at_target=at_target, flips_per_step=500, surrogate=WEIGHTS)
        flips = attack.attack(graph, [7], budget=500).flips
        assert (~(flips == donor).any(axis=1)).any() == at_target
        assert np.isin(flips, [donor, 7]).any(axis=1).all()


@pytest.mark.parametrize("donors", [[[1, 2]], [1, 2, 3], np.zeros((3, 0), int)])
def test_donors_need_a_row_per_target(donors: Any) -> None:
    with pytest.raises(InputError, match="donors of AdaptiveCopyingAttack must have 3 rows"):
        AdaptiveCopyingAttack(donors).attack(planted_graph(), TARGETS, train=TRAIN)


@pytest.mark.parametrize(
    ("attack", "message"),
    [
        (AdaptiveCopyingAttack([[60]]), "donors of AdaptiveCopyingAttack must lie between 0 and 59; got 60"),
        (
            AdaptiveCopyingAttack(n_donors=60),
            "n_donors of AdaptiveCopyingAttack must be an integer between 1 and 59; got 60",
        ),
        (AdaptiveCopyingAttack("friends"), "donors of AdaptiveCopyingAttack must be one of"),
    ],
)
def test_error_names_a_wrong_parameter(attack: AdaptiveCopyingAttack, message: str) -> None:
    with pytest.raises(InputError, match=message):
        attack.attack(planted_graph(), [1], train=TRAIN, rng=0)
