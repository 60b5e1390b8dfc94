"""The task ``attack``: accuracy at targets of an attack on the graph, the same targets for every method.

A graph without features gets the identity matrix as features. The flips of attacks are stored.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Self

import numpy as np

from nodecopy._core.arrays import Bools, Floats, Ints
from nodecopy.errors import InputError
from nodecopy.experiments.spec import (
    Cell,
    Column,
    TrialSeeds,
    check_family,
    check_settings,
    digest,
    instantiate,
    key,
    read_name,
    read_section,
    use_public_names,
)
from nodecopy.experiments.store import Record, Store
from nodecopy.experiments.tasks.classify import NodeTask, make_classifier
from nodecopy.graph import Graph
from nodecopy.metrics.classification import accuracy, area_under_roc, scores

LOG = logging.getLogger(__name__)
SCORES = {  # with headings; after "others", scores of methods that detect targets
    "accuracy": "",
    "others": "others",
    "auc": "detection",
    "top precision": "precision at the top",
    "precision": "precision",
    "recall": "recall",
}

TARGETS = ("random", "degree above 10", "highest degrees")  # which test nodes are attacked
MIN_DEGREE = 11  # of targets of a degree above 10


@dataclass(frozen=True)
class AttackSpec:
    """A section ``[attacks.x]``; without a class, nothing is attacked."""

    name: str
    title: str = key("text")
    path: str = key("class", "class", default="")
    settings: Mapping[str, Any] = key("section", default_factory=dict)
    budget: int | float | str | None = key("budget", default=None)
    targets: str = key(TARGETS, default="random")


@dataclass(frozen=True, kw_only=True)
class AttackTask(NodeTask):
    """Classification of ``n_targets`` test nodes after they were attacked."""

    n_targets: int = key("count")
    known_targets: bool = key("flag", default=True)
    scores: tuple[str, ...] = key([SCORES], default=("accuracy",))
    attacks: tuple[AttackSpec, ...] = ()

    sections = ("protocol", "attacks")
    filters = ("datasets", "labels", "attacks")
    result_fields = ("known_targets",)

    @classmethod
    def read(cls, sections: Mapping[str, Any], **others: Any) -> Self:
        attacks = []
        for name, section in sections.get("attacks", {}).items():
            where = f"[attacks.{read_name(name, 'name of an attack')}]"
            attack = read_section(AttackSpec, section, where, name=name)
            if attack.path:
                check_family(attack.path, ("attack",), "an attack", where)
                check_settings(attack.path, attack.settings, where)
            elif attack.budget is not None:
                raise InputError(f"budget of {where} must be left out: there is no class to use it.")
            attacks.append(attack)
        if not attacks:
            raise InputError("[attacks] must have an attack; it is empty.")
        return super().read(sections, attacks=tuple(attacks), **others)

    @property
    def conditions(self) -> tuple[dict[str, Any], ...]:
        pairs = product(self.labels, self.attacks)
        return tuple({"labels": labels, "attack": attack.name} for labels, attack in pairs)

    @property
    def columns(self) -> tuple[Column, ...]:
        columns = []
        for labels, attack, score in product(self.labels, self.attacks, self.scores):
            heading = [attack.title]
            heading += [f"{labels} labels"] if len(self.labels) > 1 else []
            heading += [SCORES[score]] if len(self.scores) > 1 and SCORES[score] else []
            places = (("labels", labels), ("attack", attack.name))
            part = attack.name if len(self.scores) > 1 else attack.targets
            columns.append(Column(score, places, ", ".join(heading), part=part))
        return tuple(columns)

    def find_attack(self, cell: Cell) -> AttackSpec:
        return next(attack for attack in self.attacks if attack.name == cell.conditions["attack"])

    def protocol(self, cell: Cell) -> dict[str, Any]:
        attack = self.find_attack(cell)
        parts = use_public_names({"class": attack.path, "settings": attack.settings})
        own = {"attack": parts, "budget": attack.budget, "n_targets": self.n_targets}
        own |= {} if attack.targets == "random" else {"targets": attack.targets}
        return super().protocol(cell) | own

    def shared_files(self, cell: Cell, trial: int) -> tuple[str, ...]:
        *folders, _ = cell.folders
        home = f"seed-{cell.seed}-{digest(self.protocol(cell))}"
        return ("/".join(["flips", *folders, home, f"{trial:03d}.npz"]),)

    def draw_targets(self, cell: Cell, trial: int) -> Ints:
        which, test = self.find_attack(cell).targets, self.split(cell, trial).test
        degrees, is_above = self.load(cell).degrees[test], which == TARGETS[1]
        candidates = test[degrees >= (MIN_DEGREE if is_above else 1)]
        if len(candidates) < (1 if is_above else self.n_targets):
            allowed = f"at most the test nodes that have neighbours, {len(candidates)}"
            raise InputError(f"n_targets of [protocol] must be {allowed}; got {self.n_targets}.")
        if which == TARGETS[2]:
            return np.sort(test[np.argsort(-degrees, kind="stable")[: self.n_targets]])
        draws = np.random.default_rng(cell.trial_seed(trial, TrialSeeds.TARGETS))
        return np.sort(draws.choice(candidates, min(self.n_targets, len(candidates)), replace=False))

    def attack_graph(self, cell: Cell, trial: int, store: Store, device: str = "cpu") -> Graph:
        from nodecopy.attacks import Perturbation

        graph, attack = self.load_with_features(cell), self.find_attack(cell)
        if not attack.path:
            return graph
        targets, path = self.draw_targets(cell, trial), store.folder / self.shared_files(cell, trial)[0]
        if path.exists():
            try:
                stored = Perturbation.load(path)
                if np.array_equal(stored.targets, targets):
                    return stored.apply(graph)
                reason: Any = "it has other targets"
            except (InputError, OSError) as error:
                reason = error
            LOG.warning("%s is damaged and is drawn again: %s", path, reason)
        attacker = instantiate(attack.path, attack.settings, f"[attacks.{attack.name}]", device)
        seed, train = cell.trial_seed(trial, TrialSeeds.ATTACK), self.split(cell, trial).train
        flips: Perturbation = attacker.attack(graph, targets, budget=attack.budget, train=train, rng=seed)
        flips.save(path)
        return flips.apply(graph)

    def solve(self, cell: Cell, trials: Sequence[int], store: Store, device: str) -> Iterator[Record]:
        classifier = make_classifier(cell, device)
        from nodecopy.defend import Defence

        targets = [self.draw_targets(cell, trial) for trial in trials]
        graphs = [self.attack_graph(cell, trial, store, device) for trial in trials]
        nodes = targets if self.known_targets else [self.split(cell, trial).test for trial in trials]
        options = {"targets": nodes} if isinstance(classifier, Defence) else {}
        predictions, seconds = self.fit_trials(classifier, cell, trials, graphs, **options)
        labels = self.get_class_codes(cell)
        for trial, prediction, scored, attacked in zip(trials, predictions, nodes, targets, strict=True):
            is_target = np.isin(scored, attacked)
            probabilities = prediction.probabilities[scored]
            trial_scores = scores(probabilities, labels[scored], np.flatnonzero(is_target))
            details = dict(prediction.details)
            suspicion, corrected = details.pop("suspicion", None), details.pop("corrected", None)
            if not self.known_targets:
                others = np.flatnonzero(~is_target)
                trial_scores["others"] = accuracy(probabilities, labels[scored], others)
                if suspicion is not None:
                    trial_scores |= score_detection(suspicion[scored], corrected[scored], is_target)
            yield Record(trial, trial_scores, seconds, details)


def score_detection(suspicion: Floats, corrected: Bools, is_target: Bools) -> dict[str, float]:
    """Return how well targets are distinguished from other test nodes."""
    top = np.argsort(-suspicion, kind="stable")[: is_target.sum()]
    trial_scores = {"auc": area_under_roc(suspicion, is_target), "recall": float(corrected[is_target].mean())}
    trial_scores |= {"precision": float(is_target[corrected].mean())} if corrected.any() else {}
    return trial_scores | {"top precision": float(is_target[top].mean())}
