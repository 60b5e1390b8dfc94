"""Trials: the data they are drawn from, their seeds and their splits.

The rule of randomness: trial t of a dataset with L labels per class (0 for interactions) has the seed
sequence with entropy ``seed`` and path (CRC-32 of the dataset's name, L, t). Its child 0 draws the split;
its child 1 goes to the method; what an attack needs is told in :mod:`.attacked`. Neither the method nor
the experiment is part of the path, so every method of a trial sees the same split and the same seed, in
Table 3 as in Table 2, and trial 7 is the same whether it runs alone, last or on another machine.
"""

from __future__ import annotations

import zlib
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

from nodecopy import datasets
from nodecopy._core.random import child, seed_sequence
from nodecopy.datasets import Split
from nodecopy.errors import InputError
from nodecopy.experiments.spec import Cell
from nodecopy.graph import Graph
from nodecopy.interactions import Interactions

NodeSplit: TypeAlias = Split[NDArray[np.int64]]


class Solved(NamedTuple):
    """A trial with its scores, its share of the seconds, and what the method tells of itself."""

    trial: int
    scores: dict[str, float]
    seconds: float
    details: dict[str, Any]


def trial_seed(cell: Cell, trial: int) -> SeedSequence:
    """The seed sequence of a trial; its children 0 and 1 are for the split and for the method."""
    return child(child(dataset_seed(cell), cell.labels), trial)


def dataset_seed(cell: Cell) -> SeedSequence:
    """The seed sequence of all trials of a dataset."""
    return child(seed_sequence(cell.seed), zlib.crc32(cell.dataset.encode()))


def trial_split(cell: Cell, trial: int) -> NodeSplit:
    """The nodes of a trial, the same for every method."""
    return datasets.label_split(
        graph_of(cell).labels,
        cell.labels,
        int(cell.validation),
        int(cell.test),
        rng=child(trial_seed(cell, trial), 0),
    )


def trial_interactions(cell: Cell, trial: int) -> Split[Interactions]:
    """The interactions of a trial, the same for every method."""
    fractions = (1 - cell.validation - cell.test, cell.validation, cell.test)
    return datasets.interaction_split(
        _interactions(cell.dataset), fractions, rng=child(trial_seed(cell, trial), 0)
    )


def graph_of(cell: Cell) -> Graph:
    """The graph of a cell, kept in memory: cells come dataset by dataset."""
    return _graph(cell.dataset, cell.largest_component)


@lru_cache(maxsize=1)
def _graph(dataset: str, largest_component: bool) -> Graph:
    graph = datasets.load(dataset, largest_component=largest_component)
    if not isinstance(graph, Graph):
        raise InputError(f"the dataset of an experiment must be a graph; {dataset} holds interactions.")
    return graph


@lru_cache(maxsize=1)
def _interactions(dataset: str) -> Interactions:
    loaded = datasets.load(dataset)
    if not isinstance(loaded, Interactions):
        raise InputError(f"the dataset of an experiment must hold interactions; {dataset} is a graph.")
    return loaded
