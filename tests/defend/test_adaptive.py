"""The attacker who knows the defence."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nodecopy.attacks import Attack
from nodecopy.defend import Adaptive, CopyingDefence
from nodecopy.errors import InputError
from tests.contracts.attacks import AttackContract
from tests.contracts.classifiers import planted_graph

TRAIN, VICTIMS = np.arange(9), np.array([40, 30, 59])
DRAWS = np.random.default_rng(1)
WEIGHTS = DRAWS.normal(size=(12, 4)), DRAWS.normal(size=(4, 3))


@pytest.mark.parametrize("donors", ["features", "expected"])
class TestAdaptive(AttackContract):
    """The donors of a victim follow from the clean graph, so the contract of attacks holds."""

    @pytest.fixture(autouse=True)
    def choose(self, donors: str) -> None:
        self.donors = donors

    def build(self, targets: list[int], **settings: Any) -> Attack:
        return Adaptive(self.donors, n_donors=3, surrogate=WEIGHTS, **settings)


def test_the_donors_of_the_defence_are_attacked_and_it_suffers() -> None:
    graph = planted_graph()
    defence = CopyingDefence(donors="features", n_donors=4).fit(graph, TRAIN, rng=0)
    found = Adaptive("features", 8, n_donors=4).attack(graph, VICTIMS, train=TRAIN, rng=0)
    donors = {int(victim): defence.nearest_donors([victim])[0] for victim in VICTIMS}
    for flip, owner in zip(found.flips, found.owners, strict=True):
        assert np.isin(flip, donors[int(owner)]).any()
    labels = np.array(graph.labels)
    before = defence.correct(VICTIMS)[np.arange(3), labels[VICTIMS]]
    after = defence.correct(VICTIMS, graph=found.apply(graph))[np.arange(3), labels[VICTIMS]]
    assert after.mean() < before.mean() - 0.05
    assert found.attack.startswith("Adaptive(donors='features', budget=8")


def test_mistakes() -> None:
    graph = planted_graph()
    with pytest.raises(InputError, match="n_donors of Adaptive must be an integer between 1 and 59; got 60"):
        Adaptive(n_donors=60).attack(graph, [1], rng=0)
    with pytest.raises(InputError, match="targets of Adaptive must hold node numbers; got None"):
        Adaptive().attack(graph, None, rng=0)
    with pytest.raises(InputError, match="donors of Adaptive must be one of"):
        Adaptive("friends").attack(graph, [1], rng=0)
