"""The contract of attacks: budgets, seeds, progress, and an attack written with public methods only."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from numpy.random import Generator, SeedSequence

from nodecopy import Graph
from nodecopy._core.random import child
from nodecopy.attacks import DICE, Edits, GlobalDICE, RandomFlips, TargetedAttack
from nodecopy.attacks.base import AttackSeeds, ceil_of_share, check_budget
from nodecopy.errors import InputError
from tests.contracts.attacks import TARGETS, AttackContract, with_isolated
from tests.contracts.classifiers import planted_graph


class CutEdges(TargetedAttack):
    """Remove random edges of the target."""

    def attack_target(self, edits: Edits, target: int, budget: int, rng: Generator) -> None:
        neighbours = edits.neighbours(target)
        for other in rng.choice(neighbours, min(budget, len(neighbours)), replace=False).tolist():
            edits.flip(target, other)


def test_share_is_rounded_up_but_not_by_binary_rounding() -> None:
    assert [ceil_of_share(share, 4) for share in (0.0, 0.25, 0.26, 1.0)] == [0, 1, 2, 4]
    assert ceil_of_share(0.07, 100) == 7


def test_type_of_a_budget_decides_its_meaning() -> None:
    assert isinstance(check_budget(1, "x"), int)
    assert isinstance(check_budget(np.float32(1), "x"), float)


def test_seed_of_a_target_does_not_depend_on_other_targets() -> None:
    """The draws are those of the child of the attack's seed that belongs to the target."""
    graph, target = planted_graph(), TARGETS[1]
    flips = CutEdges().attack(graph, TARGETS, budget=1, rng=5).of(target).flips
    draws = np.random.default_rng(child(child(SeedSequence(5), AttackSeeds.TARGETS), target))
    row = graph.rows.indices[graph.rows.indptr[target] : graph.rows.indptr[target + 1]]
    assert flips.tolist() == [[target, int(draws.choice(row, 1, replace=False)[0])]]


class Excessive(TargetedAttack):
    """Make one flip more than granted."""

    def attack_target(self, edits: Edits, target: int, budget: int, rng: Generator) -> None:
        for other in np.setdiff1d(np.arange(budget + 2), target)[: budget + 1].tolist():
            edits.flip(target, other)


def test_more_flips_than_the_budget_are_an_error() -> None:
    with pytest.raises(InputError, match="attack_target of Excessive must make at most 2 flips for target 5"):
        Excessive().attack(planted_graph(), [5], budget=2)


def test_progress_sees_every_target_before_it_is_attacked() -> None:
    seen: list[int] = []

    def progress(targets: list[int]) -> Iterator[int]:
        for target in targets:
            seen.append(target)
            yield target

    graph = planted_graph()
    shown = RandomFlips().attack(graph, [4, 9, 2], budget=1, rng=0, progress=progress)
    assert seen == [4, 9, 2]
    assert shown == RandomFlips().attack(graph, [4, 9, 2], budget=1, rng=0)


class TestDICE(AttackContract):
    needs_features = connects_isolated = False
    attack = DICE()

    def test_isolated_target_is_only_connected(self, graph: Graph) -> None:
        isolated = with_isolated(graph, 4)
        assert self.run(isolated, [4], budget=0.5).spent.tolist() == [0]
        flips = self.run(isolated, [4], budget=3)
        assert (len(flips.removed), len(flips.added)) == (0, 2)


def hub() -> Graph:
    """Node 0, of class 0, has neighbours 1 to 4 of class 0, 5 and 6 of class 1, 7 without a label."""
    adjacency = np.zeros((16, 16))
    adjacency[0, 1:8] = 1
    labels = np.array([0, 0, 0, 0, 0, 1, 1, -1, 1, 1, 1, 1, 0, 0, -1, 2])
    return Graph(adjacency, labels=labels)


@pytest.mark.parametrize(("share", "n"), [(0.0, 0), (0.25, 1), (0.5, 2), (0.51, 3), (0.75, 3), (1.0, 4)])
def test_share_of_same_class_neighbours_is_removed_and_as_many_added(share: float, n: int) -> None:
    seen = set()
    for seed in range(8):
        flips = DICE().attack(hub(), [0], budget=share, rng=seed)
        assert flips.budgets.tolist() == flips.spent.tolist() == [2 * n]
        assert set(flips.removed[:, 1].tolist()) <= {1, 2, 3, 4}
        assert set(flips.added[:, 1].tolist()) <= {8, 9, 10, 11, 15}
        assert len(flips.removed) == len(flips.added) == n
        seen |= set(flips.added[:, 1].tolist())
    assert len(seen) > 3 or n == 0


@pytest.mark.parametrize(("share", "n"), [(0.5, 4), (0.75, 6), (1.0, 7)])
def test_any_neighbour_can_be_removed(share: float, n: int) -> None:
    flips = DICE(delete="any").attack(hub(), [0], budget=share, rng=1)
    assert set(flips.removed[:, 1].tolist()) <= set(range(1, 8))
    assert len(flips.removed) == n
    assert len(flips.added) == min(n, 5)  # only five other-class nodes are free
    assert flips.budgets.tolist() == [2 * n]


def test_odd_flip_of_a_number_connects() -> None:
    flips = DICE().attack(hub(), [0], budget=5, rng=0)
    assert (len(flips.removed), len(flips.added)) == (2, 3)


def test_global_dice_takes_a_share_of_the_edges() -> None:
    assert len(GlobalDICE().attack(hub(), budget=0.5, rng=0).flips) == 4  # of 7 edges, rounded up
    assert len(GlobalDICE().attack(hub(), rng=0).flips) == 1  # 0.05 by default


def test_global_dice_counts() -> None:
    """Half of the flips delete inside a class, the odd one connects."""
    graph = hub()
    flips = GlobalDICE().attack(graph, budget=5, rng=0)
    assert graph.label_codes is not None
    assert (len(flips.removed), len(flips.added)) == (2, 3)
    assert (graph.label_codes[flips.removed[:, 0]] == graph.label_codes[flips.removed[:, 1]]).all()
    ends = graph.label_codes[flips.added]
    assert (ends[:, 0] != ends[:, 1]).all()
    assert (ends >= 0).all()
    assert flips.apply(graph).n_edges == 8
    assert flips.targets.tolist() == []
    assert set(flips.owners.tolist()) == {-1}
    assert "on the whole graph: 3 edges added, 2 removed" in str(flips)
    assert flips == GlobalDICE().attack(graph, budget=5, rng=0)
    assert flips != GlobalDICE().attack(graph, budget=5, rng=1)


def test_global_dice_flips_all_pairs_where_the_budget_is_larger() -> None:
    """Classes of 7, 6 and 1 nodes: 42 + 7 + 6 pairs between them, of which two are edges already."""
    flips = GlobalDICE().attack(hub(), rng=0, budget=1000)
    assert len(flips.removed) == 4
    assert len(flips.added) == 7 * 6 + 7 + 6 - 2
    assert GlobalDICE().attack(hub(), budget=0).apply(hub()) == hub()


def test_wrong_calls() -> None:
    with pytest.raises(InputError, match="delete of DICE must be one of 'same-class', 'any'; got 'all'"):
        DICE(delete="all").attack(hub(), [0])
    with pytest.raises(InputError, match="targets of GlobalDICE must be None"):
        GlobalDICE().attack(hub(), [1], budget=3)
    for budget in (-1, "degree"):
        with pytest.raises(InputError, match="budget of GlobalDICE must be an integer"):
            GlobalDICE().attack(hub(), budget=budget)
    with pytest.raises(InputError, match="graph must have labels for GlobalDICE"):
        GlobalDICE().attack(hub().replace(labels=None), budget=1)


class TestRandomFlips(AttackContract):
    needs_labels = needs_features = False
    attack = RandomFlips()

    def test_budget_above_the_number_of_possible_flips(self, graph: Graph) -> None:
        flips = self.run(graph, [4], budget=1000)
        assert flips.spent.tolist() == [59]  # every other node once: the complement of the row
        assert flips.apply(graph).degrees[4] == 59 - graph.degrees[4]


def test_random_flips_are_uniform() -> None:
    """Each of 15 others is among 300 single flips with probability 1 - 1e-9."""
    others = {int(RandomFlips().attack(hub(), [0], budget=1, rng=seed).flips[0, 1]) for seed in range(300)}
    assert others == set(range(1, 16))
