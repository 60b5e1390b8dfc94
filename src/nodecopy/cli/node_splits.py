"""Which nodes commands learn from, and which they answer for."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator, SeedSequence
from numpy.typing import NDArray

from nodecopy._core.random import child, generator, seed_sequence
from nodecopy._core.validation import check_integer, check_real
from nodecopy.cli.sources import is_dataset
from nodecopy.datasets import Split, label_split
from nodecopy.errors import InputError
from nodecopy.graph import UNLABELLED, Graph

PER_CLASS, VALIDATION, TEST = 20, 500, 1000
"""Nodes of a trial of the experiments."""
HIDDEN = 0.2
"""Share of a file's labelled nodes that a report judges by."""


def split_as_in_experiments(
    dataset: str, per_class: int, seed: int, largest_component: bool
) -> tuple[Split[NDArray[np.int64]], SeedSequence]:
    """The nodes and the seed of trial 0, as ``nodecopy reproduce`` has them."""
    from nodecopy.experiments.trials import TrialSeeds, load_graph, trial_seed

    check_integer(per_class, "labels-per-class", low=1)
    root = trial_seed(seed, dataset, 0, labels=per_class)
    labels = load_graph(dataset, largest_component).labels
    return label_split(labels, per_class, VALIDATION, TEST, rng=child(root, TrialSeeds.SPLIT)), root


def split_for_attack(
    graph: Graph, source: str, seed: int, largest_component: bool
) -> tuple[Split[NDArray[np.int64]], SeedSequence]:
    """Who is learnt from, and who may be attacked or defended (``test``).

    Of a dataset, those of trial 0 with 20 labels per class; of a file, or a dataset too small for that,
    every labelled node may be both.
    """
    if graph.labels is None:
        raise InputError("a graph must have labels to be attacked or defended; give --labels FILE.")
    known = np.flatnonzero(graph.labels != UNLABELLED)
    needed = PER_CLASS * len(np.unique(graph.labels[known])) + VALIDATION + TEST
    if is_dataset(source) and len(known) >= needed:
        return split_as_in_experiments(source, PER_CLASS, seed, largest_component)
    return Split(known, np.zeros(0, np.int64), known), seed_sequence(seed)


def split_file(graph: Graph, share: float, seed: SeedSequence) -> Split[NDArray[np.int64]]:
    """Labelled nodes, of each class a share of them held out but one at least left; and the others."""
    check_real(share, "validation", low=0, high=0.9)
    if graph.labels is None:
        raise InputError("a graph must have labels to be classified; give --labels FILE.")
    unknown = np.flatnonzero(graph.labels == UNLABELLED)
    if not len(unknown):
        raise InputError("some nodes must have no label, to be predicted; every node has one.")
    validation = _hold_out(graph.labels, share, generator(seed))
    known = np.flatnonzero(graph.labels != UNLABELLED)
    return Split(np.setdiff1d(known, validation), validation, unknown)


def split_for_report(
    graph: Graph, source: str, seed: int, largest_component: bool
) -> tuple[Split[NDArray[np.int64]], SeedSequence]:
    """Who is learnt from, and whose labels are hidden to judge predictions by (``test``).

    Of a dataset, those of trial 0 with 20 labels per class; of a file, or a dataset too small for that,
    one of five labelled nodes of each class is hidden.
    """
    split, root = split_for_attack(graph, source, seed, largest_component)
    if len(split.validation):
        return split, root
    assert graph.labels is not None
    hidden = _hold_out(graph.labels, HIDDEN, generator(child(root, 0)))
    return Split(np.setdiff1d(split.train, hidden), split.validation, hidden), root


def _hold_out(labels: NDArray[np.int64], share: float, draws: Generator) -> NDArray[np.int64]:
    """Of each class a share of its nodes, but one at least left."""
    held = [np.zeros(0, np.int64)]
    for code in np.unique(labels[labels != UNLABELLED]):
        nodes = draws.permutation(np.flatnonzero(labels == code))
        held.append(nodes[: min(round(share * len(nodes)), len(nodes) - 1)])
    return np.sort(np.concatenate(held))
