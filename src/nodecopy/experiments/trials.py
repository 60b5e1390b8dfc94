"""Seeds and data of trials.

Trial t of a dataset has the seed sequence with entropy ``seed`` and path (CRC-32 of the dataset's name,
labels per class or 0, t); :class:`TrialSeeds` names its children. Neither the method nor the experiment is
part of the path, so every method of a trial sees the same split and the same seed, in Table 3 as in Table
2, and trial 7 is the same whether it runs alone, last or on another machine.
"""

from __future__ import annotations

import hashlib
import zlib
from enum import IntEnum
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.random import SeedSequence
from scipy import sparse

from nodecopy import datasets
from nodecopy._core.random import child, seed_sequence
from nodecopy.experiments.file_datasets import FileDataset
from nodecopy.inference.sample_store import digest_graph

SEED_SCHEME = 1
"""Version of the rule above. Raise it with every change of draws: fingerprints of cells digest it."""


class TrialSeeds(IntEnum):
    """Children of a trial's seed sequence, one for each purpose."""

    SPLIT = 0
    METHOD = 1
    TARGETS = 2
    ATTACK = 3
    VISIBLE_VALIDATION = 4
    VALIDATION = 5


def trial_seed(seed: int, dataset: str, trial: int, *, labels: int = 0) -> SeedSequence:
    """Return the seed sequence of a trial; ``labels`` is 0 for tasks that have no labels per class."""
    return child(child(dataset_seed(seed, dataset), labels), trial)


def dataset_seed(seed: int, dataset: str) -> SeedSequence:
    """Return the seed sequence of all trials of a dataset."""
    return child(seed_sequence(seed), zlib.crc32(dataset.encode()))


@lru_cache(maxsize=1)
def load_data(dataset: str | FileDataset, largest_component: bool = False) -> Any:
    """Load a dataset, kept in memory until another is loaded: cells come dataset by dataset."""
    if isinstance(dataset, FileDataset):
        return dataset.load(largest_component)
    return datasets.load(dataset, largest_component=largest_component)


@lru_cache
def digest_dataset(dataset: str, largest_component: bool = False) -> str:
    """Return a digest of the nodes, edges, labels and features of a graph.

    Public forms of a dataset differ in it, if only by the order of the nodes.
    """
    graph = load_data(dataset, largest_component)
    digest = hashlib.sha256(digest_graph(graph).encode())
    if graph.features is not None:
        features = sparse.csr_array(graph.features)
        for part in (features.indptr, features.indices, features.data):
            digest.update(np.ascontiguousarray(part, np.float64).tobytes())
    return digest.hexdigest()[:12]
