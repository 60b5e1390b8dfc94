"""The training, validation and test nodes of commands."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator, SeedSequence
from numpy.typing import NDArray

from nodecopy._core.notices import log_decision
from nodecopy._core.random import child, generator, seed_sequence
from nodecopy.cli.sources import is_dataset
from nodecopy.datasets import Split, label_split
from nodecopy.errors import InputError
from nodecopy.experiments.trials import TrialSeeds, trial_seed
from nodecopy.graph import UNLABELLED, Graph

LABELS_PER_CLASS, N_VALIDATION, N_TEST = 20, 500, 1000
"""Nodes of a trial of the experiments."""
TEST_SHARE = 0.2
"""Share of a file's labelled nodes that are the test nodes of a report."""

NodeSplit = Split[NDArray[np.int64]]


def split_as_in_experiments(
    graph: Graph, dataset: str, labels_per_class: int, seed: int
) -> tuple[NodeSplit, SeedSequence]:
    """Return the nodes and the seed sequence of trial 0 of ``nodecopy reproduce``."""
    root = trial_seed(seed, dataset, 0, labels=labels_per_class)
    rng = child(root, TrialSeeds.SPLIT)
    n_validation, n_test = _scale_to_dataset(graph, dataset, labels_per_class)
    return label_split(graph.labels, labels_per_class, n_validation, n_test, rng=rng), root


def _scale_to_dataset(graph: Graph, dataset: str, labels_per_class: int) -> tuple[int, int]:
    """Return the numbers of validation and test nodes: those of the experiments, or fewer, one to two."""
    if graph.labels is None:
        return N_VALIDATION, N_TEST
    sizes = np.unique(graph.labels[graph.labels != UNLABELLED], return_counts=True)[1]
    if labels_per_class >= sizes.min():
        raise InputError(
            f"--labels-per-class must be below {sizes.min()}, the labelled nodes of the smallest class of "
            f"{dataset}; got {labels_per_class}."
        )
    n_rest = int(sizes.sum()) - labels_per_class * len(sizes)
    n_validation = min(N_VALIDATION, n_rest // 3)
    n_test = min(N_TEST, n_rest - n_validation)
    if n_validation < N_VALIDATION or n_test < N_TEST:
        log_decision(
            f"{n_validation} validation nodes and {n_test} test nodes, since {dataset} has {n_rest} labelled "
            "nodes outside training."
        )
    return n_validation, n_test


def split_for_attack(graph: Graph, source: str, seed: int) -> tuple[NodeSplit, SeedSequence]:
    """Return the training nodes and the nodes that may be attacked or defended (``test``).

    For a dataset, these are the nodes of trial 0 with 20 labels per class. For a file, or a dataset with too
    few labels for that, every labelled node is both.
    """
    if graph.labels is None:
        raise InputError(
            "the graph must have labels for this command; got none. Give --labels FILE or --label COLUMN."
        )
    labelled = np.flatnonzero(graph.labels != UNLABELLED)
    n_needed = LABELS_PER_CLASS * len(np.unique(graph.labels[labelled])) + N_VALIDATION + N_TEST
    if is_dataset(source) and len(labelled) >= n_needed:
        return split_as_in_experiments(graph, source, LABELS_PER_CLASS, seed)
    return Split(labelled, np.zeros(0, np.int64), labelled), seed_sequence(seed)


def split_file(graph: Graph, validation_share: float, seed: SeedSequence) -> NodeSplit:
    """Split labelled nodes into training and validation nodes; unlabelled nodes are the test nodes."""
    if graph.labels is None:
        raise InputError(
            "the graph must have labels to learn from; got none. Give --labels FILE or --label COLUMN."
        )
    unlabelled = np.flatnonzero(graph.labels == UNLABELLED)
    if not len(unlabelled):
        raise InputError(
            "some nodes must have no label, to be predicted; every node has one. Leave some out of --labels."
        )
    validation = _hold_out(graph.labels, validation_share, generator(seed))
    labelled = np.flatnonzero(graph.labels != UNLABELLED)
    if validation_share and not len(validation):
        most = np.unique(graph.labels[labelled], return_counts=True)[1].max()
        raise InputError(
            f"--validation must be a share that gives validation nodes; {validation_share:g} of the labels "
            f"of a class, which are at most {most}, gives none. Leave it out, or label more nodes."
        )
    return Split(np.setdiff1d(labelled, validation), validation, unlabelled)


def split_for_report(graph: Graph, source: str, seed: int) -> tuple[NodeSplit, SeedSequence]:
    """Return the training nodes and the test nodes, by which predictions are evaluated.

    For a dataset, these are the nodes of trial 0 with 20 labels per class. For a file, or a dataset with too
    few labels for that, one labelled node in five of each class is a test node.
    """
    split, root = split_for_attack(graph, source, seed)
    if len(split.validation):
        return split, root
    assert graph.labels is not None
    test = _hold_out(graph.labels, TEST_SHARE, generator(child(root, TrialSeeds.SPLIT)))
    return Split(np.setdiff1d(split.train, test), split.validation, test), root


def cross_validation_folds(
    labels: NDArray[np.int64], n_folds: int, rng: Generator
) -> list[NDArray[np.int64]]:
    """Return the test nodes of each fold, which leave training nodes of every class.

    The nodes of a class are distributed evenly over the folds. The single node of a class is a training node
    in all of them.
    """
    folds: list[list[int]] = [[] for _ in range(n_folds)]
    n_tested = 0
    for code in np.unique(labels[labels != UNLABELLED]):
        nodes = rng.permutation(np.flatnonzero(labels == code))
        for node in nodes.tolist() if len(nodes) > 1 else []:
            folds[n_tested % n_folds].append(node)
            n_tested += 1
    return [np.sort(np.array(fold, np.int64)) for fold in folds if fold]


def _hold_out(labels: NDArray[np.int64], share: float, rng: Generator) -> NDArray[np.int64]:
    """Draw a share of the nodes of each class, leaving at least one."""
    parts = [np.zeros(0, np.int64)]
    for code in np.unique(labels[labels != UNLABELLED]):
        nodes = rng.permutation(np.flatnonzero(labels == code))
        parts.append(nodes[: min(round(share * len(nodes)), len(nodes) - 1)])
    return np.sort(np.concatenate(parts))
