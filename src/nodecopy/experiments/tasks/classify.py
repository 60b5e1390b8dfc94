"""The tasks ``classify``, accuracy at test nodes, and ``uncertainty``, calibration and detection by it.

Trials of ``uncertainty`` are fitted twice: to all classes, and without the labels of one class (t modulo the
number of classes in trial t), whose test nodes are to be detected by their uncertainty.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from nodecopy import datasets
from nodecopy._core.arrays import Bools, Ints, Singles
from nodecopy._core.estimator import Configurable
from nodecopy._core.imports import import_optional
from nodecopy._core.messages import log_decision
from nodecopy._core.random import generator
from nodecopy.datasets import Split
from nodecopy.errors import InputError, MissingExtraError
from nodecopy.experiments.runner import FIT_CACHE, CachedGraphModel
from nodecopy.experiments.spec import Cell, Column, TrialSeeds, dataset_seed, instantiate, key
from nodecopy.experiments.store import COPIED_FROM, Record, Store, list_forms
from nodecopy.experiments.tasks import BEST_NOTE, Task
from nodecopy.features.scaling import explain_no_counts
from nodecopy.graph import UNLABELLED, Graph, class_codes
from nodecopy.metrics import TemperatureScaling
from nodecopy.metrics.classification import area_under_roc, scores, selective_accuracy
from nodecopy.models import check_graph_model

if TYPE_CHECKING:
    from nodecopy.classify import Prediction, Trial

NodeSplit = Split[Ints]
UNITS = "In percent, mean and standard deviation over trials."
CALLED_ERRORS = (
    "The paper calls its deviations standard errors; by their size they are standard deviations too."
)
LEFT_OUT = (0.1, 0.2, 0.5)  # shares of the most uncertain test nodes that are left out
KINDS = ("total", "epistemic")
MAX_ROUNDING = 1e-5  # largest epistemic uncertainty (nats) of a classifier that samples nothing
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
UNCERTAINTY_NOTES = (
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
class NodeTask(Task):
    """Tasks on nodes, with ``labels`` training nodes per class."""

    labels: tuple[int, ...] = key(["count"])
    validation: int = key("count")
    test: int = key("count")

    main_score = "accuracy"
    protocol_fields: ClassVar[tuple[str, ...]] = ("validation", "test", "largest_component")
    filters: ClassVar[tuple[str, ...]] = ("datasets", "labels")
    family = "a classifier"
    family_methods = ("fit_trials",)
    extra_scores = ("nll", "brier", "ece")
    is_batched = True

    @property
    def conditions(self) -> tuple[dict[str, Any], ...]:
        return tuple({"labels": labels} for labels in self.labels)

    def load(self, cell: Cell) -> Any:
        graph = super().load(cell)
        if graph.label_codes is None:
            raise InputError(f"the dataset {cell.dataset} must have labels, from a file with the key labels.")
        return graph

    def load_with_features(self, cell: Cell) -> Graph:
        from nodecopy.nn.networks import add_identity_features

        return add_identity_features(self.load(cell))

    def log_decisions(self, cell: Cell) -> None:
        """Log if a method scales the user's features as word counts, although they are none."""
        graph = None if self.find_own(cell) is None else self.load(cell)
        if graph is None or graph.features is None:
            return
        try:
            method = make_classifier(cell, "cpu", lambda path, settings: None)
        except MissingExtraError:
            return
        parts = [method, *(method.get_params().values() if isinstance(method, Configurable) else ())]
        configs = [part.build_config() for part in parts if hasattr(part, "build_config")]
        reason = explain_no_counts(graph.features, graph.feature_encoder)
        if reason and any(config.features == "rows" for config in configs):
            log_decision(
                f"features of {cell.dataset}: {cell.method} scales each node's row to a sum of one, as in "
                f'its paper, although they are not word counts ({reason}). The preset "default" in the '
                f"settings of {cell.section} chooses a scaling by the data."
            )

    def get_class_codes(self, cell: Cell) -> Ints:
        return class_codes(self.load(cell).label_codes)[1]

    def split(self, cell: Cell, trial: int) -> NodeSplit:
        labels, seed = cell.conditions["labels"], cell.trial_seed(trial, TrialSeeds.SPLIT)
        all_labels = self.load(cell).label_codes
        try:
            return datasets.label_split(all_labels, labels, self.validation, self.test, rng=seed)
        except InputError as error:
            if error.parameter != "per_class":
                raise
            raise InputError(f"labels of [protocol] on {cell.dataset} {error.args[1]}") from error

    def make_trials(self, cell: Cell, trials: Sequence[int], graphs: Sequence[Graph]) -> list[Trial]:
        from nodecopy.classify import Trial

        made = []
        for trial, graph in zip(trials, graphs, strict=True):
            seed, labels = cell.trial_seed(trial, TrialSeeds.METHOD), np.asarray(graph.label_codes)
            train, validation, _ = (part[labels[part] != UNLABELLED] for part in self.split(cell, trial))
            made.append(Trial(graph, train, validation if len(validation) else None, seed))
        return made

    def fit_trials(
        self, classifier: Any, cell: Cell, trials: Sequence[int], graphs: Sequence[Graph], **options: Any
    ) -> tuple[Sequence[Prediction], float]:
        start = time.perf_counter()
        predictions = classifier.fit_trials(self.make_trials(cell, trials, graphs), **options)
        return predictions, (time.perf_counter() - start) / len(trials)

    def notes(self, titles: Mapping[str, str]) -> list[str]:
        return [UNITS, BEST_NOTE]

    def notes_on_paper(self) -> list[str]:
        return [*super().notes_on_paper(), CALLED_ERRORS]


@dataclass(frozen=True, kw_only=True)
class ClassifyTask(NodeTask):
    """Classification of the test nodes."""

    without_test_edges: bool = key("flag", default=False)  # the edges of test nodes are removed
    visible_validation: tuple[int, ...] = key(["number"], default=())  # validation nodes methods are given

    protocol_fields = (*NodeTask.protocol_fields, "without_test_edges")
    filters = (*NodeTask.filters, "visible_validation")
    allowed_uses = ("fitted-once",)

    def check(self) -> None:
        super().check()
        if max(self.visible_validation, default=0) > self.validation:
            allowed, got = f"at most validation, {self.validation}", max(self.visible_validation)
            raise InputError(f"visible_validation of [protocol] must be {allowed}; got {got}.")

    @property
    def conditions(self) -> tuple[dict[str, Any], ...]:
        by_labels, numbers = super().conditions, self.visible_validation
        if not numbers:
            return by_labels
        return tuple({**labels, "visible_validation": n} for n in numbers for labels in by_labels)

    @property
    def columns(self) -> tuple[Column, ...]:
        columns = []
        for conditions in self.conditions:
            labels, n_visible = conditions["labels"], conditions.get("visible_validation")
            part = "" if n_visible is None else f", {n_visible or 'no'} validation"
            heading = f"{labels} label{'s' if labels > 1 else ''}{part}"
            columns.append(Column("accuracy", tuple(conditions.items()), heading, part=part))
        return tuple(columns)

    def split(self, cell: Cell, trial: int) -> NodeSplit:
        split, n_visible = super().split(cell, trial), cell.conditions.get("visible_validation")
        if n_visible is None:
            return split
        seed = cell.trial_seed(trial, TrialSeeds.VISIBLE_VALIDATION)
        visible = generator(seed).choice(split.validation, n_visible, replace=False)
        return split._replace(validation=np.sort(visible))

    def solve(self, cell: Cell, trials: Sequence[int], store: Store, device: str) -> Iterator[Record]:
        classifier = make_classifier(cell, device, partial(self.fit_once, cell, device))
        if self.visible_validation and not getattr(classifier, "uses_validation", True):
            copies = self.read_copies(cell, trials, store)
            yield from copies.values()
            trials = [trial for trial in trials if trial not in copies]
            if not trials:
                return
        graph = self.load_with_features(cell)
        splits = [self.split(cell, trial) for trial in trials]
        graphs = [graph] * len(trials)
        if self.without_test_edges:
            graphs = [datasets.without_test_edges(graph, split.test) for split in splits]
        predictions, seconds = self.fit_trials(classifier, cell, trials, graphs)
        graph_model = getattr(classifier, "graph_model", None)
        seconds += graph_model.seconds if isinstance(graph_model, CachedGraphModel) else 0.0
        labels = self.get_class_codes(cell)
        for trial, prediction, split in zip(trials, predictions, splits, strict=True):
            trial_scores = scores(prediction.probabilities, labels, split.test)
            yield Record(trial, trial_scores, seconds, dict(prediction.details))

    def read_copies(self, cell: Cell, trials: Sequence[int], store: Store) -> dict[int, Record]:
        """Return trials that are stored with other numbers of validation nodes, by number."""
        copies: dict[int, Record] = {}
        for conditions in self.conditions:
            if {**conditions, "visible_validation": cell.conditions["visible_validation"]} != cell.conditions:
                continue  # it has other labels
            origin = {COPIED_FROM: {"visible_validation": conditions["visible_validation"]}}
            for record in store.read_finished(replace(cell, conditions=conditions), trials):
                if list_forms([record]) <= {self.digest_data(cell)}:
                    copies[record.trial] = replace(record, provenance=record.provenance | origin)
        return copies

    def fit_once(self, cell: Cell, device: str, path: str, settings: dict[str, Any]) -> Any:
        if self.without_test_edges:
            condition = "only if all trials have the same edges"
            raise InputError(f"a graph model of {cell.section} can be fitted once {condition}.")
        model = instantiate(path, settings, cell.section, device)
        check_graph_model(model, f"graph_model of {cell.section}")

        def fit() -> CachedGraphModel:
            start = time.perf_counter()
            graph = self.load(cell).replace(labels=None)
            model.fit(graph, rng=dataset_seed(cell.seed, cell.dataset))
            return CachedGraphModel(model, time.perf_counter() - start)

        return FIT_CACHE.get_or_fit(fit, cell, None, device, {"class": path, **settings})


def make_classifier(cell: Cell, device: str, use: Any = None) -> Any:
    """Return the classifier of a cell, which is not fitted."""
    import_optional("torch", "running an experiment")
    return instantiate(cell.path, cell.settings, cell.section, device, use)


@dataclass(frozen=True, kw_only=True)
class UncertaintyTask(NodeTask):
    """Uncertainty at the test nodes: calibration, selection of nodes, and detection."""

    @property
    def columns(self) -> tuple[Column, ...]:
        columns, tables = [], enumerate((CALIBRATION, SELECTION, DETECTION))
        for labels, (part, headings) in product(self.labels, tables):
            start, place = f"{labels} labels, ", (("labels", labels),)
            for score, heading in headings.items():
                options: Any = {"lower_is_better": score.endswith(("nll", "ece")), "part": f"{labels} {part}"}
                columns.append(Column(score, place, start + heading, **options))
                start = ""
        return tuple(columns)

    def solve(self, cell: Cell, trials: Sequence[int], store: Store, device: str) -> Iterator[Record]:
        classifier = make_classifier(cell, device)
        graph, labels = self.load_with_features(cell), self.get_class_codes(cell)
        left_out = [trial % int(labels.max() + 1) for trial in trials]
        masked = {code: np.where(labels == code, UNLABELLED, labels) for code in set(left_out)}
        partial_graphs = {code: graph.replace(labels=others) for code, others in masked.items()}
        complete, seconds = self.fit_trials(classifier, cell, trials, [graph] * len(trials))
        graphs = [partial_graphs[code] for code in left_out]
        without, more_seconds = self.fit_trials(classifier, cell, trials, graphs)
        for trial, prediction, without_class, code in zip(trials, complete, without, left_out, strict=True):
            split = self.split(cell, trial)
            test, truth = split.test, labels[split.test]
            scaling = TemperatureScaling.fit(prediction.probabilities, labels, split.validation)
            trial_scores = _score_uncertainty(prediction, truth, test, scaling)
            for kind, values in _get_uncertainties(without_class, test).items():
                trial_scores |= _detection_auc("left-out class", kind, values, truth == code)
            details = {"temperature": scaling.temperature, "left_out_class": code}
            yield Record(trial, trial_scores, seconds + more_seconds, dict(prediction.details) | details)

    def notes(self, titles: Mapping[str, str]) -> list[str]:
        return [*super().notes(titles), *UNCERTAINTY_NOTES]


def _score_uncertainty(
    prediction: Prediction, truth: Ints, nodes: Ints, scaling: TemperatureScaling
) -> dict[str, float]:
    p = prediction.probabilities[nodes]
    scaled, is_correct = scores(scaling.apply(p), truth), p.argmax(axis=1) == truth
    values = scores(p, truth) | {f"scaled {name}": scaled[name] for name in ("nll", "ece")}
    for kind, uncertainty in _get_uncertainties(prediction, nodes).items():
        accuracies = selective_accuracy(is_correct, uncertainty, LEFT_OUT).tolist()
        names = [f"accuracy without {share} by {kind}" for share in LEFT_OUT]
        values |= dict(zip(names, accuracies, strict=True))
        values |= _detection_auc("errors", kind, uncertainty, ~is_correct)
    return values


def _get_uncertainties(prediction: Prediction, nodes: Ints) -> dict[str, Singles]:
    """Return total and epistemic uncertainty of nodes; the total one twice if nothing is sampled."""
    uncertainty = prediction.uncertainty()
    is_sampled = uncertainty.epistemic.max() > MAX_ROUNDING
    epistemic = uncertainty.epistemic if is_sampled else uncertainty.total
    return dict(zip(KINDS, (uncertainty.total[nodes], epistemic[nodes]), strict=True))


def _detection_auc(positives: str, kind: str, uncertainty: Singles, is_positive: Bools) -> dict[str, float]:
    if is_positive.all() or not is_positive.any():
        return {}
    return {f"{positives} auc by {kind}": area_under_roc(uncertainty, is_positive)}
