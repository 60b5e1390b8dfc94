"""Classification for ``nodecopy report``: the recommended classifier beside a plain GCN."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

from nodecopy._core.notices import log_decision
from nodecopy._core.random import child, generator
from nodecopy.cli.classifier_options import RECOMMENDED, create_classifier
from nodecopy.cli.node_splits import NodeSplit, cross_validation_folds
from nodecopy.graph import UNLABELLED, Graph, class_codes
from nodecopy.report.evaluations import MIN_CURVE_NODES, Evaluation, join_trials

if TYPE_CHECKING:
    from nodecopy.classify import Prediction

N_FOLDS = 5


class Classification(NamedTuple):
    """Predictions for all nodes, and their evaluation on nodes whose labels were held out."""

    classes: NDArray[Any]
    codes: NDArray[np.int64]
    """The class number of every node, -1 where it is unknown."""
    prediction: Prediction
    """Of nodes with held-out labels: by a classifier that did not read them."""
    train: NDArray[np.int64]
    tested: NDArray[np.int64]
    nodes: NDArray[np.int64]
    """Nodes with held-out labels and without labels."""
    evaluations: dict[str, Evaluation] | None
    n_folds: int
    n_pseudo_labels: int


def classify_for_report(
    graph: Graph, split: NodeSplit, rng: SeedSequence, scalings: tuple[str, str], n_graphs: int
) -> Classification:
    """Train the recommended classifier and a plain GCN, and evaluate both on held-out labels.

    With fewer than 30 held-out nodes, the classifier learns from all labelled nodes, and both are evaluated
    by cross-validation.

    Parameters
    ----------
    graph, split
        A graph with labels and features, and its training, validation and test nodes.
    rng
        Seed sequence of training.
    scalings
        How features and weights are scaled.
    n_graphs
        Number of sampled graphs of the classifier.
    """
    from nodecopy.classify import Prediction, Trial

    assert graph.labels is not None
    codes = class_codes(graph.labels)[1]
    tests, train = [split.test], split.train
    if len(split.test) < MIN_CURVE_NODES:
        tests = cross_validation_folds(codes, N_FOLDS, generator(child(rng, 0)))
        train = np.flatnonzero(codes != UNLABELLED)
        log_decision(
            f"cross-validation with {len(tests)} folds, since only {len(split.test)} of {len(train)} labels "
            "would be held out."
        )
    main = create_classifier(RECOMMENDED, *scalings, "cpu", n_graphs=n_graphs)
    main.fit(graph, train, validation=split.validation, rng=rng)
    gcn = create_classifier("gcn", *scalings, "cpu")
    trials = [Trial(graph, np.setdiff1d(train, test), split.validation, rng) for test in tests]
    others = [] if not tests else main.fit_trials(trials) if len(tests) > 1 else [main.prediction_]
    p, entropy = main.prediction_.probabilities.copy(), main.prediction_.mean_entropy.copy()
    for test, prediction in zip(tests, others, strict=True):
        p[test], entropy[test] = prediction.probabilities[test], prediction.mean_entropy[test]
    tested = np.concatenate([np.zeros(0, np.int64), *tests])
    evaluations = None
    if len(tested):
        evaluations = {
            "GCN": join_trials(gcn.fit_trials(trials), tests, codes),
            "self-training": join_trials(others, tests, codes),
        }
    return Classification(
        main.classes_,
        codes,
        Prediction(p, entropy),
        train,
        tested,
        np.union1d(tested, np.flatnonzero(codes == UNLABELLED)),
        evaluations,
        len(tests),
        sum(main.prediction_.details["pseudo_labels"]),
    )
