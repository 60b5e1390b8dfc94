"""The contract of attacks: budgets, seeds, progress, and an attack written with public methods only."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from numpy.random import Generator, SeedSequence

from nodecopy._core.random import child
from nodecopy.attacks import Edits, RandomFlips, TargetedAttack
from nodecopy.attacks.base import AttackSeeds, ceil_of_share, check_budget
from nodecopy.errors import InputError
from tests.contracts.attacks import TARGETS
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
