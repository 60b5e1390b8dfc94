"""The seeds of defences: fixed numbers, none of which a classifier uses."""

from __future__ import annotations

from nodecopy.classify.base import MAX_ROUNDS, ClassifierSeeds
from nodecopy.defend.base import DefenceSeeds


def test_defences_and_classifiers_share_no_seed() -> None:
    assert len(set(DefenceSeeds)) == 2
    assert min(DefenceSeeds) >= max(ClassifierSeeds) + MAX_ROUNDS


def test_the_numbers_of_stored_results_stay() -> None:
    numbers = {seed.name: seed.value for seed in DefenceSeeds}
    assert numbers == {"DONOR_EMBEDDING": 10**7, "DONOR_DRAWS": 10**7 + 1}
