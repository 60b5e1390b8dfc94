"""Random numbers: published vectors, a twin in plain Python, and statistics with a stated error rate.

Seeds are fixed, so the statistical tests either always pass or always fail. Each rejects a correct
generator with probability ALPHA, so a change of seeds breaks one in ten thousand of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import SeedSequence
from scipy import stats

from nodecopy._core import random
from nodecopy.errors import InputError
from tests.copying import oracles

ALPHA = 1e-4
WORD = st.integers(0, 2**32 - 1)


def threefry(key: tuple[int, int], counter: tuple[int, int]) -> tuple[int, int]:
    first, second = random.threefry(key, np.array([counter[0]]), np.array([counter[1]]))
    return int(first[0]), int(second[0])


@pytest.mark.parametrize(
    ("key", "counter", "answer"),
    [
        ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
        ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
        ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
    ],
)
def test_published_vectors(key: Any, counter: Any, answer: Any) -> None:
    """Known answers of the Random123 distribution (kat_vectors, threefry2x32 with 20 rounds)."""
    assert threefry(key, counter) == answer
    assert oracles.threefry(key, *counter) == answer


@settings(max_examples=100)
@given(st.tuples(WORD, WORD), st.tuples(WORD, WORD))
def test_against_the_twin(key: tuple[int, int], counter: tuple[int, int]) -> None:
    assert threefry(key, counter) == oracles.threefry(key, *counter)


def test_uniforms_are_uniform_and_have_53_bits() -> None:
    words = np.array([2**32 - 1, 2**6, 0], np.uint32)
    assert random.unit_interval(words[:1], words[:1])[0] == 1 - 2.0**-53
    assert random.unit_interval(words[2:], words[1:2])[0] == 2.0**-53
    keys = [random.sample_key(SeedSequence(11), sample) for sample in range(20)]
    values = np.concatenate([random.node_uniforms(key, 2000) for key in keys])
    assert stats.kstest(values, "uniform").pvalue > ALPHA


def test_samples_and_neighbouring_nodes_are_independent() -> None:
    table = np.array([random.node_uniforms(random.sample_key(SeedSequence(12), s), 2001) for s in range(20)])
    for first, second in ((table[:, :-1], table[:, 1:]), (table[:-1], table[1:])):
        counts, _, _ = np.histogram2d(first.ravel(), second.ravel(), bins=8, range=[[0, 1], [0, 1]])
        assert stats.chisquare(counts.ravel()).pvalue > ALPHA


def test_coins_are_fair_symmetric_and_independent() -> None:
    first, second = np.triu_indices(300, 1)
    key = random.sample_key(SeedSequence(13), 0)
    coins = random.pair_coins(key, first, second)
    np.testing.assert_array_equal(coins, random.pair_coins(key, second, first))
    assert stats.binomtest(int(coins.sum()), len(coins)).pvalue > ALPHA
    agree = int((coins[1:] == coins[:-1]).sum())
    assert stats.binomtest(agree, len(coins) - 1).pvalue > ALPHA
    other = random.pair_coins(random.sample_key(SeedSequence(13), 1), first, second)
    assert stats.binomtest(int((coins == other).sum()), len(coins)).pvalue > ALPHA


def test_children_do_not_depend_on_what_was_spawned_before() -> None:
    seed = SeedSequence(42, spawn_key=(7,))
    before = random.child(seed, 3).generate_state(4).tolist()
    seed.spawn(10)
    assert random.child(seed, 3).generate_state(4).tolist() == before
    assert SeedSequence(42, spawn_key=(7,)).spawn(4)[3].generate_state(4).tolist() == before
    assert random.child(seed, 4).generate_state(4).tolist() != before
    assert random.child(seed, 3, 1).spawn_key == (7, 3, 1)
    assert random.child(random.child(seed, 3), 1).spawn_key == (7, 3, 1)
    assert random.child(seed).spawn_key == (7,)
    keys = {random.sample_key(SeedSequence(s), n) for s in range(30) for n in range(30)}
    assert len(keys) == 900


def test_every_kind_of_rng() -> None:
    assert random.seed_sequence(5).entropy == 5
    assert random.seed_sequence(np.int64(5)).entropy == 5
    seed = SeedSequence(1)
    assert random.seed_sequence(seed) is seed
    source = np.random.default_rng(0)
    assert random.seed_sequence(source).entropy != random.seed_sequence(source).entropy
    again = np.random.default_rng(0)
    assert random.seed_sequence(again).entropy == random.seed_sequence(np.random.default_rng(0)).entropy
    assert random.seed_sequence(None).entropy != random.seed_sequence(None).entropy
    assert random.generator(source) is source
    assert random.generator(5).random() == random.generator(SeedSequence(5)).random()


@pytest.mark.parametrize("value", [-1, 1.5, True, "seed", [1]])
def test_bad_rng(value: Any) -> None:
    with pytest.raises(InputError, match="rng must be a non-negative integer"):
        random.seed_sequence(value)
