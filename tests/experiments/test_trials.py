"""The seeds of trials: results that were committed under this rule must stay repeatable."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import pytest
from numpy.random import SeedSequence
from scipy import sparse

from nodecopy import Graph, datasets
from nodecopy._core.random import child
from nodecopy.experiments.data import digest_dataset, load_data
from nodecopy.experiments.spec import TrialSeeds, dataset_seed, trial_seed
from nodecopy.experiments.tasks.generate import GenerationSeeds
from tests.experiments.fakes import TOML, make_experiment


def test_the_path_of_a_seed_is_dataset_labels_and_trial() -> None:
    path = (zlib.crc32(b"karate"), 3, 7)
    cell = make_experiment().cells(5)[2]
    for seed in (trial_seed(5, "karate", 7, labels=3), cell.trial_seed(7)):
        assert (seed.entropy, seed.spawn_key) == (5, path)
    assert trial_seed(5, "karate", 7).spawn_key == (path[0], 0, 7)
    assert dataset_seed(5, "karate").spawn_key == path[:1]


def test_a_split_is_the_first_child_of_its_trial() -> None:
    cell = make_experiment().cells(5)[2]
    seed = SeedSequence(5, spawn_key=(zlib.crc32(b"karate"), 3, 7, 0))
    expected = datasets.label_split(datasets.load("karate").labels, 3, 4, 16, rng=seed)
    assert all(map(np.array_equal, cell.task.split(cell, 7), expected))
    first = make_experiment().cells(0)[0]
    assert first.task.split(first, 0).train.tolist() == [1, 33]


def test_splits_depend_on_seed_dataset_labels_and_trial_alone() -> None:
    first, *_, last = make_experiment().cells(0)
    text = TOML.replace("test = 16", "test = 16\nwithout_test_edges = true")
    scarce = make_experiment(text=text).cells(0)[0]
    other = make_experiment().cells(1)[0]
    split = first.task.split
    assert all(map(np.array_equal, split(first, 3), scarce.task.split(scarce, 3)))
    assert not np.array_equal(split(first, 3).train, split(first, 4).train)
    assert not np.array_equal(split(first, 3).test, split(other, 3).test)
    assert [len(part) for part in split(last, 0)] == [6, 4, 16]


@pytest.mark.parametrize("seeds", [TrialSeeds, GenerationSeeds])
def test_no_two_purposes_share_a_stream(seeds: type[TrialSeeds]) -> None:
    """Neither in a trial nor between trials, labels and datasets."""
    streams = [
        tuple(child(trial_seed(0, dataset, trial, labels=labels), purpose).generate_state(4))
        for dataset in ("cora", "citeseer")
        for labels in (0, 5, 20)
        for trial in range(3)
        for purpose in seeds.__members__.values()
    ]
    assert len(seeds) == len(seeds.__members__)  # no alias
    assert len(set(streams)) == len(streams) == 18 * len(seeds)


def test_the_numbers_of_seeds_stay() -> None:
    assert {seed.name: int(seed) for seed in TrialSeeds} == {
        "SPLIT": 0,
        "METHOD": 1,
        "TARGETS": 2,
        "ATTACK": 3,
        "VISIBLE_VALIDATION": 4,
        "VALIDATION": 5,
    }
    assert {seed.name: int(seed) for seed in GenerationSeeds} == {"FIT": 1, "SAMPLES": 2}


def test_the_last_dataset_stays_in_memory() -> None:
    assert load_data("karate") is load_data("karate")
    assert load_data("library") == datasets.load("library")


def test_the_digest_of_a_dataset_does_not_depend_on_types_of_indices(monkeypatch: pytest.MonkeyPatch) -> None:
    def digest(features: Any, labels: Any = (0, 1, 1)) -> str:
        graph = Graph([[0, 1, 0], [1, 0, 1], [0, 1, 0]], features=features, labels=labels)
        load_data.cache_clear()
        digest_dataset.cache_clear()
        with monkeypatch.context() as patched:
            patched.setattr("nodecopy.datasets.load", lambda name, **options: graph)
            return digest_dataset("three")

    features = sparse.csr_array(np.eye(3, dtype=np.float32))
    longer = features.copy()
    longer.indices, longer.indptr = longer.indices.astype(np.int64), longer.indptr.astype(np.int64)
    assert digest(features) == digest(longer)
    others = digest(features[[1, 0, 2]]), digest(None), digest(features, (0, 0, 1))
    assert len({digest(features), *others}) == 4
    load_data.cache_clear()
    digest_dataset.cache_clear()
