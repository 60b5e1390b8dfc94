"""The task ``uncertainty``: calibration, accuracy without uncertain nodes, and detection by uncertainty.

Every trial is fitted twice: to all classes, and without the labels of one class, whose test nodes are to be
detected by their uncertainty. Trial t leaves out class t modulo the number of classes.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from nodecopy._core.random import child
from nodecopy.experiments.spec import Cell, Column, TrialSeeds
from nodecopy.experiments.store import Record, Store
from nodecopy.experiments.tasks.classify import NodeTask, make_classifier
from nodecopy.graph import UNLABELLED, Graph
from nodecopy.metrics import TemperatureScaling
from nodecopy.metrics.classification import area_under_roc, scores, selective_accuracy

if TYPE_CHECKING:
    from nodecopy.classify import Prediction, Trial


LEFT_OUT = (0.1, 0.2, 0.5)
"""Shares of the test nodes, the most uncertain ones, that are left out."""
KINDS = ("total", "epistemic")
MAX_ROUNDING = 1e-5
"""Epistemic uncertainty in nats that is rounding: the classifier has one network and samples nothing."""
CALIBRATION = {
    "accuracy": "accuracy",
    "nll": "NLL",
    "scaled nll": "NLL scaled",
    "ece": "ECE",
    "scaled ece": "ECE scaled",
}
SELECTION = {
    f"accuracy without {share} by {kind}": f"without {100 * share:.0f} %, {kind}"
    for share, kind in product(LEFT_OUT, KINDS)
}
DETECTION = {
    f"{positives} auc by {kind}": f"{positives}, {kind}"
    for positives, kind in product(("errors", "left-out class"), KINDS)
}
NOTES = (
    "NLL: negative log-likelihood in hundredths of a nat. ECE: expected calibration error (15 bins). Scaled: "
    "after temperature scaling on the validation nodes. Lower is better. Without validation nodes there is "
    "no scaling, and the other columns count.",
    "Without 10, 20, 50 %: accuracy where so many of the test nodes, the most uncertain ones, are left out.",
    "Errors: area under the ROC curve of the misclassified test nodes among all. Left-out class: that of the "
    "test nodes of a class that is left out of training; trials leave out the classes in turn.",
    "Total uncertainty is the entropy of the prediction, epistemic uncertainty the mutual information of "
    "prediction and sample. A single GCN has no epistemic uncertainty; its entropy is in both columns.",
)


@dataclass(frozen=True, kw_only=True)
class UncertaintyTask(NodeTask):
    """Uncertainty at the test nodes: calibration, selection of nodes, and detection."""

    @property
    def columns(self) -> tuple[Column, ...]:
        """For each number of labels, one table of calibration, one of selection and one of detection."""
        return tuple(
            Column(
                score,
                (("labels", labels),),
                f"{labels} labels, {heading}" if number == 0 else heading,
                lower_is_better=score.endswith(("nll", "ece")),
                part=f"{labels} {part}",
            )
            for labels, (part, headings) in product(
                self.labels, enumerate((CALIBRATION, SELECTION, DETECTION))
            )
            for number, (score, heading) in enumerate(headings.items())
        )

    def solve(self, cell: Cell, trials: Sequence[int], store: Store, device: str) -> Iterator[Record]:
        """Yield the scores of the predictions of test nodes."""
        classifier = make_classifier(cell, device)
        graph, labels = self.load_with_features(cell), self.get_class_codes(cell)
        left_out = [trial % int(labels.max() + 1) for trial in trials]
        start = time.perf_counter()
        complete = classifier.fit_trials(self.make_trials(cell, trials, [graph] * len(trials)))
        partial = classifier.fit_trials(self.make_partial_trials(cell, trials, graph, left_out))
        seconds = (time.perf_counter() - start) / len(trials)
        for trial, prediction, without_class, code in zip(trials, complete, partial, left_out, strict=True):
            split = self.split(cell, trial)
            test, truth = split.test, labels[split.test]
            scaling = TemperatureScaling.fit(prediction.probabilities, labels, split.validation)
            trial_scores = score_uncertainty(prediction, truth, test, scaling)
            for kind, values in get_uncertainties(without_class, test).items():
                trial_scores |= score_detection("left-out class", kind, values, truth == code)
            details = {"temperature": scaling.temperature, "left_out_class": code}
            yield Record(trial, trial_scores, seconds, dict(prediction.details) | details)

    def make_partial_trials(
        self, cell: Cell, trials: Sequence[int], graph: Graph, left_out: Sequence[int]
    ) -> list[Trial]:
        """Return trials in which the nodes of one class have no label."""
        from nodecopy.classify import Trial

        labels = self.get_class_codes(cell)
        graphs = {
            code: graph.replace(labels=np.where(labels == code, UNLABELLED, labels)) for code in set(left_out)
        }
        without_class = []
        for trial, code in zip(trials, left_out, strict=True):
            split, seed = self.split(cell, trial), child(cell.trial_seed(trial), TrialSeeds.METHOD)
            train, validation = (part[labels[part] != code] for part in (split.train, split.validation))
            without_class.append(Trial(graphs[code], train, validation, seed))
        return without_class

    def notes(self, titles: Mapping[str, str]) -> list[str]:
        return [*super().notes(titles), *NOTES]


def score_uncertainty(
    prediction: Prediction, truth: NDArray[np.int64], nodes: NDArray[np.int64], scaling: TemperatureScaling
) -> dict[str, float]:
    """Return the scores of a prediction at nodes whose classes are ``truth``."""
    p = prediction.probabilities[nodes]
    scaled, is_correct = scores(scaling.apply(p), truth), p.argmax(axis=1) == truth
    values = scores(p, truth) | {f"scaled {name}": scaled[name] for name in ("nll", "ece")}
    for kind, uncertainty in get_uncertainties(prediction, nodes).items():
        accuracies = selective_accuracy(is_correct, uncertainty, LEFT_OUT).tolist()
        names = [f"accuracy without {share} by {kind}" for share in LEFT_OUT]
        values |= dict(zip(names, accuracies, strict=True))
        values |= score_detection("errors", kind, uncertainty, ~is_correct)
    return values


def get_uncertainties(prediction: Prediction, nodes: NDArray[np.int64]) -> dict[str, NDArray[np.float32]]:
    """Return the total and the epistemic uncertainty of nodes; the total one twice if nothing is sampled."""
    uncertainty = prediction.uncertainty()
    is_sampled = uncertainty.epistemic.max() > MAX_ROUNDING
    epistemic = uncertainty.epistemic if is_sampled else uncertainty.total
    return dict(zip(KINDS, (uncertainty.total[nodes], epistemic[nodes]), strict=True))


def score_detection(
    positives: str, kind: str, uncertainty: NDArray[np.float32], is_positive: NDArray[np.bool_]
) -> dict[str, float]:
    """Return the area under the ROC curve by name; nothing if all nodes are positive, or none."""
    if is_positive.all() or not is_positive.any():
        return {}
    return {f"{positives} auc by {kind}": area_under_roc(uncertainty, is_positive)}
