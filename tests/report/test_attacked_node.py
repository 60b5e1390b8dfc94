from __future__ import annotations

import numpy as np
import pytest

from nodecopy import datasets
from nodecopy.errors import InputError

pytest.importorskip("torch")
pytest.importorskip("sklearn")

from nodecopy.report.attacked_node import MAX_DEGREE, PREFERRED_DEGREE, attack_and_correct


def test_a_digit_is_attack_and_correct() -> None:
    digits = datasets.load("digits")
    split = datasets.label_split(digits.labels, 5, validation=0, test=300, rng=0)
    repair = attack_and_correct(digits, split.train, split.test, rng=0)
    before, attacked, repaired = repair.stages
    own = digits.adjacency[[repair.node]].indices.tolist()
    assert repair.node in split.test
    assert before.neighbours == [(node, "own") for node in own]
    assert PREFERRED_DEGREE <= len(own) == repair.n_flips <= MAX_DEGREE
    assert {node for node, kind in attacked.neighbours if kind == "added"}.isdisjoint(own)
    assert {kind for _, kind in repaired.neighbours} == {"copied"}
    truth = repair.codes[repair.node]
    assert before.probabilities.argmax() == truth
    assert attacked.probabilities[truth] < before.probabilities[truth]
    assert repair.node not in repair.donors
    assert np.array_equal(repair.classes, np.arange(10))


def test_somebody_must_be_fit_to_be_attacked() -> None:
    digits = datasets.load("digits")
    split = datasets.label_split(digits.labels, 5, validation=0, test=300, rng=0)
    with pytest.raises(InputError, match="candidates must hold a node with 1 to 8 neighbours"):
        attack_and_correct(digits, split.train, [], rng=0)
