"""Trials of classifiers on the graph as it is; all trials of a batch are trained at once."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nodecopy import datasets
from nodecopy._core.optional_imports import import_optional
from nodecopy._core.random import child
from nodecopy.errors import InputError
from nodecopy.experiments.assembly import assembled
from nodecopy.experiments.fit_cache import FittedOnce, fitted_once
from nodecopy.experiments.spec import Cell
from nodecopy.experiments.store import Store
from nodecopy.experiments.trials import NodeSplit, Solved, graph_of, trial_seed, trial_split
from nodecopy.graph import Graph, class_codes
from nodecopy.metrics.classification import scores

if TYPE_CHECKING:
    from nodecopy.classify import Prediction, Trial


def classified(cell: Cell, trials: list[int], store: Store, device: str) -> Iterator[Solved]:
    """Predictions of the test nodes."""
    classifier = classifier_of(cell, device)  # says so where there is no torch
    from nodecopy.nn.features import with_features

    graph = with_features(graph_of(cell))
    splits = [trial_split(cell, trial) for trial in trials]
    graphs = [
        datasets.without_test_edges(graph, split.test) if cell.without_test_edges else graph
        for split in splits
    ]
    graph_model = getattr(classifier, "graph_model", None)
    seconds_before = graph_model.fit(graph).seconds if isinstance(graph_model, FittedOnce) else 0.0
    start = time.perf_counter()
    predictions: list[Prediction] = classifier.fit_trials(prepared(cell, trials, splits, graphs))
    seconds = seconds_before + (time.perf_counter() - start) / len(trials)
    labels = codes(graph)
    for trial, prediction, split in zip(trials, predictions, splits, strict=True):
        judged = scores(prediction.probabilities, labels, split.test)
        yield Solved(trial, judged, seconds, dict(prediction.details))


def classifier_of(cell: Cell, device: str) -> Any:
    """The classifier of a cell, not yet fitted."""
    import_optional("torch", "running an experiment")

    def once(path: str, settings: Mapping[str, Any]) -> FittedOnce:
        return fitted_once(cell, path, settings, device)

    return assembled(cell.method, cell.path, {**cell.settings, "device": device}, device, once=once)


def prepared(cell: Cell, trials: list[int], splits: list[NodeSplit], graphs: list[Graph]) -> list[Trial]:
    """Trials as classifiers take them."""
    from nodecopy.classify import Trial

    return [
        Trial(graph, split.train, split.validation, child(trial_seed(cell, trial), 1))
        for trial, split, graph in zip(trials, splits, graphs, strict=True)
    ]


def codes(graph: Graph) -> NDArray[np.int64]:
    """The column of every node's class, -1 where unknown: columns are the distinct labels in order."""
    if graph.labels is None:
        raise InputError("the graph of an experiment must have labels; it has none.")
    _, found = class_codes(graph.labels)
    return found
