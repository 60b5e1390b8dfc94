"""Random flips: uniform over all other nodes."""

from __future__ import annotations

from nodecopy import Graph
from nodecopy.attacks import RandomFlips, TargetedAttack
from tests.attacks.test_dice import hub
from tests.contracts.attacks import AttackContract


class TestRandomFlips(AttackContract):
    needs_labels = needs_features = False

    def build(self, *, together: bool = True) -> TargetedAttack:
        return RandomFlips(together=together)

    def test_budget_above_the_number_of_possible_flips(self, graph: Graph) -> None:
        flips = self.run(graph, [4], budget=1000)
        assert flips.spent.tolist() == [59]  # every other node once: the complement of the row
        assert flips.apply(graph).degrees[4] == 59 - graph.degrees[4]


def test_random_flips_are_uniform() -> None:
    """Each of 15 others is among 300 single flips with probability 1 - 1e-9."""
    others = {int(RandomFlips().attack(hub(), [0], budget=1, rng=seed).flips[0, 1]) for seed in range(300)}
    assert others == set(range(1, 16))
