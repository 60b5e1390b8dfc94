"""Every attack keeps the contract."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nodecopy import Graph
from nodecopy.attacks import DICE, FGA, Attack, Nettack, RandomFlips, ThroughCopying
from nodecopy.attacks.surrogate import Knowledge
from nodecopy.errors import InputError
from tests.contracts.attacks import TARGETS, TRAIN, AttackContract, with_isolated
from tests.contracts.classifiers import planted_graph

DRAWS = np.random.default_rng(1)
WEIGHTS = DRAWS.normal(size=(12, 4)), DRAWS.normal(size=(4, 3))
LINEAR = DRAWS.normal(size=(12, 3))
"""Of any GCN and any linear network: training one each time would take long."""


class TestRandomFlips(AttackContract):
    needs_labels = needs_features = False

    def build(self, targets: list[int], **settings: Any) -> Attack:
        return RandomFlips(**settings)

    def test_a_budget_beyond_what_a_node_can_bear(self, graph: Graph) -> None:
        found = self.run(graph, [4], budget=1000)
        assert found.spent.tolist() == [59]  # every other node once: the complement of the row
        assert found.apply(graph).degrees[4] == 59 - graph.degrees[4]


class TestDICE(AttackContract):
    needs_features = has_budget = False

    def build(self, targets: list[int], **settings: Any) -> Attack:
        return DICE(**settings)


class TestNettack(AttackContract):
    def build(self, targets: list[int], **settings: Any) -> Attack:
        return Nettack(degree_test=False, surrogate=LINEAR, **settings)


class TestIndirectNettack(AttackContract):
    def build(self, targets: list[int], **settings: Any) -> Attack:
        return Nettack(degree_test=False, surrogate=LINEAR, direct=False, **settings)

    def test_the_victim_itself_stays_untouched(self, graph: Graph) -> None:
        for target in TARGETS:
            assert target not in self.run(graph, together=False).of(target).flips


class TestNettackWithFeatures(AttackContract):
    def build(self, targets: list[int], **settings: Any) -> Attack:
        return Nettack(degree_test=False, surrogate=LINEAR, features=True, **settings)

    def test_an_isolated_target(self, graph: Graph) -> None:
        """A given budget is spent, on features or on edges; its degree is none."""
        lonely = with_isolated(graph, 4)
        found = self.run(lonely, [4], budget=2)
        assert found.apply(lonely) != lonely
        assert self.run(lonely, [4], budget="degree").apply(lonely) == lonely


class TestFGA(AttackContract):
    def build(self, targets: list[int], **settings: Any) -> Attack:
        n_flips = settings.pop("budget", 3)
        return FGA(n_flips, surrogate=WEIGHTS, **settings)


class TestMistargetedFGA(AttackContract):
    def build(self, targets: list[int], **settings: Any) -> Attack:
        n_flips = settings.pop("budget", 3)
        return FGA(n_flips, loss="training-set", surrogate=WEIGHTS, **settings)

    def test_every_flip_is_at_the_first_node(self, graph: Graph) -> None:
        found = self.run(graph)
        assert (found.flips == 0).any(axis=1).all()

    def test_an_isolated_target(self, graph: Graph) -> None:
        """The victim is not looked at: nothing happens to it."""
        lonely = with_isolated(graph, 4)
        assert self.run(lonely, [4]).apply(lonely).degrees[4] == 0


class TestThroughCopying(AttackContract):
    def build(self, targets: list[int], **settings: Any) -> Attack:
        donors = np.array([[(target + 3) % 60, (target + 6) % 60] for target in targets], int)
        return ThroughCopying(donors.reshape(-1, 2), surrogate=WEIGHTS, **settings)

    def test_flips_are_at_donors(self, graph: Graph) -> None:
        found = self.run(graph, budget=4)
        for target, spent in zip(TARGETS, found.spent, strict=True):
            assert spent > 0
            flips = found.of(target).flips
            assert np.isin(flips, [(target + 3) % 60, (target + 6) % 60]).any(axis=1).all()

    @pytest.mark.parametrize("donors", [[[1, 2]], [1, 2, 3], np.zeros((3, 0), int)])
    def test_wrong_donors_are_named(self, graph: Graph, donors: Any) -> None:
        with pytest.raises(InputError, match="donors of ThroughCopying must have 3 rows"):
            ThroughCopying(donors).attack(graph, TARGETS, train=TRAIN)
        with pytest.raises(InputError, match="donors of ThroughCopying must lie between 0 and 59; got 60"):
            ThroughCopying([[1], [60], [2]]).attack(graph, TARGETS, train=TRAIN)


@pytest.mark.parametrize(
    "attack",
    [Nettack(3, degree_test=False), FGA(3), FGA(3, loss="training-set"), ThroughCopying([[1, 2]], 3)],
)
def test_the_surrogate_is_trained_from_the_seed(attack: Attack) -> None:
    graph = planted_graph()
    found = [attack.attack(graph, [4], train=TRAIN, rng=seed) for seed in (0, 0, 1, 2)]
    assert found[0] == found[1]
    assert any(other != found[0] for other in found[2:])
    assert found[0].spent.tolist() == [3]
    with pytest.raises(InputError, match="at least one node of every class; got none of class yew"):
        attack.attack(graph, [4], train=[0, 1])
    assert graph.labels is not None
    unknown = graph.replace(labels=np.where(np.arange(60) == 0, -1, graph.labels))
    with pytest.raises(InputError, match=f"labelled nodes; got the node with id '{graph.node_ids[0]}'"):
        attack.attack(unknown, [4], train=TRAIN)


def test_surrogates_learn_from_all_labels_but_those_of_targets() -> None:
    known = Knowledge.of(planted_graph(), np.array(TARGETS), None, "a test")
    assert known.train.tolist() == sorted(set(range(60)) - set(TARGETS))


def test_wrong_settings_are_named() -> None:
    graph = planted_graph()
    for attack, message in (
        (RandomFlips(-1), "budget of RandomFlips must be an integer of at least 0; got -1"),
        (DICE(1.5), "share of DICE must be a number between 0 and 1; got 1.5"),
        (DICE(delete="all"), "delete of DICE must be one of 'same-class', 'any'; got 'all'"),
        (Nettack(-2), "budget of Nettack must be an integer"),
        (Nettack(structure=False), "structure or features of Nettack must be True"),
        (Nettack(direct=False, n_influencers=0), "n_influencers of Nettack"),
        (
            Nettack(surrogate=np.zeros((2, 3))),
            r"surrogate of Nettack must have the shape \(12, 3\); got \(2, 3\)",
        ),
        (FGA(-3), "n_flips of FGA must be an integer of at least 0; got -3"),
        (FGA(flips_per_step=0), "flips_per_step of FGA"),
        (FGA(loss="victim"), "loss of FGA must be one of 'target', 'training-set'; got 'victim'"),
        (FGA(device="tpu"), "device must be"),
        (FGA(surrogate=(np.zeros((12, 4)), np.zeros((5, 3)))), "surrogate of FGA must be two matrices"),
        (FGA(surrogate=(3, 4)), "surrogate of FGA must be two matrices"),
    ):
        with pytest.raises(InputError, match=message):
            attack.attack(graph, TARGETS, train=TRAIN, rng=0)
    with pytest.raises(InputError, match="features of the graph must be binary"):
        Nettack(features=True).attack(graph.replace(features=0.5 * np.eye(60)), TARGETS, train=TRAIN, rng=0)


@pytest.mark.parametrize("attack", [Nettack(), FGA(2), ThroughCopying(np.zeros((len(TARGETS), 2), int))])
@pytest.mark.parametrize("features", [None, np.zeros((60, 0))], ids=["none", "no columns"])
def test_surrogates_need_features(attack: Attack, features: Any) -> None:
    graph = planted_graph().replace(features=features)
    name = type(attack).__name__
    with pytest.raises(InputError, match=f"graph must have features for {name}; this one has none"):
        attack.attack(graph, TARGETS, train=TRAIN, rng=0)
