"""What an experiment is: a protocol, methods with their settings, and the numbers the paper printed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, TypeAlias

from nodecopy._core.lookup import check_name
from nodecopy._core.validation import check_integer
from nodecopy.errors import InputError
from nodecopy.experiments.measures import MEASURES


@dataclass(frozen=True)
class Column:
    """What the methods of a column have in common: labels per class, an attack or none, and a score.

    Recommenders and graph models have no labels: 0.
    """

    labels: int = 0
    attack: str = ""
    score: str = "accuracy"


Place: TypeAlias = tuple[str, Column, str]  # dataset, column, method


@dataclass(frozen=True)
class Published:
    """A number as the paper prints it, in percent.

    The paper calls its deviations standard errors; they are standard deviations over trials, since with
    50 trials a standard error of 3.7 points would mean accuracies that scatter by 26. Table 1 has none;
    there ``rounding`` is half a unit of the last digit that is printed.
    """

    mean: float
    std: float | None
    rounding: float | None = None


@dataclass(frozen=True)
class Timing:
    """Run times to be compared with those of the method ``over``, and the paper's seconds by method.

    All are those of trials with ``labels`` labels per class; ours the shortest of the first
    ``trials``, which have the machine for themselves where the others need not: a process that uses a GPU
    for the first time takes seconds longer.
    """

    over: str
    labels: int
    trials: int
    published: Mapping[str, float]


@dataclass(frozen=True)
class Attacker:
    """Who attacks the graph before anything is trained; nobody where ``path`` (``module.Class``) is empty.

    ``budget`` is that of the call of ``attack``; ``None`` is the attack's default.
    """

    name: str
    title: str
    path: str
    settings: Mapping[str, Any]
    budget: int | float | str | None = None


@dataclass(frozen=True)
class Protocol:
    """How trials are drawn: ``labels`` training nodes per class, validation and test nodes over all.

    Where the datasets hold interactions there are no labels, and ``validation`` and ``test`` are shares of
    the interactions; the others are learnt from.

    Where there are ``attackers``, ``victims`` of the test nodes are attacked and judged. Methods are
    ``told`` who they are, or must answer for all test nodes without knowing.

    Graph models have neither labels nor test nodes: each trial is a training, after which ``samples``
    graphs are drawn, and ``scores`` are statistics that shall be near those of the row ``reference``.
    """

    datasets: tuple[str, ...]
    labels: tuple[int, ...]
    trials: int
    validation: float
    test: float
    largest_component: tuple[str, ...] = ()
    without_test_edges: bool = False
    attackers: tuple[Attacker, ...] = ()
    victims: int = 0
    told: bool = True
    scores: tuple[str, ...] = ("accuracy",)
    samples: int = 0
    reference: str = ""

    @property
    def kind(self) -> str:
        """What methods are: ``"classifiers"``, ``"recommenders"`` or ``"graph models"``."""
        return kind_of(self.labels, self.samples)

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns of a dataset's table."""
        attacks = [attacker.name for attacker in self.attackers] or [""]
        return tuple(Column(*parts) for parts in product(self.labels or [0], attacks, self.scores))

    @property
    def digits(self) -> int | None:
        """Digits behind the point in the paper's table, and in ours; ``None``: three that count."""
        return {"classifiers": 1, "recommenders": 2}.get(self.kind)

    def heading(self, column: Column) -> str:
        """What stands above a column."""
        head = MEASURES[column.score].head
        if not self.labels:
            return head
        titles = {attacker.name: attacker.title for attacker in self.attackers}
        parts = [titles[column.attack]] if titles else []
        parts += [f"{column.labels} labels"] if not titles or len(self.labels) > 1 else []
        parts += [head] if len(self.scores) > 1 and head else []
        return ", ".join(parts)


@dataclass(frozen=True)
class Method:
    """A row of the table.

    ``path`` is ``module.Class`` of a classifier, recommender or graph model, empty where the row is only
    printed as published. ``on`` holds settings that differ on some datasets; ``gain_over`` names the methods
    to compare with, trial by trial; ``search`` holds settings of a recommender to choose from in every trial;
    ``datasets`` are those it runs on, all where it names none.
    """

    name: str
    title: str
    path: str
    settings: Mapping[str, Any]
    on: Mapping[str, Mapping[str, Any]]
    gain_over: tuple[str, ...]
    search: tuple[Mapping[str, Any], ...] = ()
    datasets: tuple[str, ...] = ()

    def runs_on(self, dataset: str) -> bool:
        return not self.datasets or dataset in self.datasets


@dataclass(frozen=True)
class Cell:
    """One entry of a table, with all that its trials depend on."""

    experiment: str
    dataset: str
    labels: int
    method: str
    seed: int
    path: str
    settings: Mapping[str, Any]
    validation: float
    test: float
    largest_component: bool
    without_test_edges: bool
    attacker: Attacker | None = None
    victims: int = 0
    told: bool = True
    search: tuple[Mapping[str, Any], ...] = ()
    samples: int = 0
    statistics: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        """What the method is; see :class:`Protocol`."""
        return kind_of(self.labels, self.samples)

    @property
    def attack(self) -> str:
        return self.attacker.name if self.attacker else ""

    @property
    def folders(self) -> tuple[str, ...]:
        """Where it stands in its experiment."""
        labels = [str(self.labels)] if self.labels else []
        return (self.dataset, *labels, *filter(None, [self.attack]), self.method)

    @property
    def main_score(self) -> str:
        """What every finished trial has."""
        scores = {"classifiers": "accuracy", "recommenders": "recall@20"}
        return scores[self.kind] if self.kind in scores else self.statistics[0]

    @property
    def fingerprint(self) -> str:
        """Twelve hexadecimal digits that change with the method's settings or the protocol.

        The device and the other methods are no part of it, nor is the number of trials: trial 7 is
        the same trial however many there are.
        """
        parts = [self.path, dict(self.settings), *self._drawing]
        parts += [] if self.told else ["untold"]
        parts += [list(map(dict, self.search))] if self.search else []
        parts += [self.samples, *sorted(self.statistics)] if self.samples else []
        return _digest(parts)

    @property
    def attack_fingerprint(self) -> str:
        """The same of the attack, which all methods share."""
        return _digest(self._drawing)

    @property
    def _drawing(self) -> list[Any]:
        parts: list[Any] = [self.validation, self.test, self.largest_component, self.without_test_edges]
        if self.attacker:
            parts += [self.attacker.path, dict(self.attacker.settings), self.attacker.budget, self.victims]
        return parts

    def __str__(self) -> str:
        labels = f"{self.labels} labels" if self.labels else ""
        return ", ".join(filter(None, [self.dataset, labels, self.attack, self.method]))


@dataclass(frozen=True)
class Experiment:
    """A table to reproduce.

    ``published_trials`` is how many trials are behind a published number; ``notes`` are printed with the
    table, ``timing`` says whose run times are compared.
    """

    name: str
    title: str
    protocol: Protocol
    methods: tuple[Method, ...]
    published: Mapping[Place, Published]
    published_trials: int
    notes: tuple[str, ...] = ()
    timing: Timing | None = None

    @property
    def runnable(self) -> tuple[Method, ...]:
        """The methods that can be run; the others are printed as published."""
        return tuple(method for method in self.methods if method.path)

    def narrowed(
        self,
        *,
        datasets: Sequence[str] | None = None,
        labels: Sequence[int] | None = None,
        attacks: Sequence[str] | None = None,
        methods: Sequence[str] | None = None,
        trials: int | None = None,
    ) -> Experiment:
        """The same experiment with some of its datasets, labels, attacks and methods, in its order."""
        attackers = self.protocol.attackers
        if attacks is not None and not attackers:
            raise InputError(f"attacks must be left out: {self.name} has none; got {', '.join(attacks)}.")
        if labels is not None and not self.protocol.labels:
            raise InputError(
                f"labels must be left out: {self.name} has none; got {', '.join(map(str, labels))}."
            )
        named = _chosen([attacker.name for attacker in attackers], attacks, f"attack of {self.name}")
        protocol = replace(
            self.protocol,
            datasets=_chosen(self.protocol.datasets, datasets, f"dataset of {self.name}"),
            labels=_chosen(self.protocol.labels, labels, f"labels of {self.name}"),
            attackers=tuple(attacker for attacker in attackers if attacker.name in named),
            trials=self.protocol.trials if trials is None else check_integer(trials, "trials", low=1),
        )
        rows = self.methods
        if methods is not None:
            names = _chosen(
                [method.name for method in self.runnable], methods, f"method that {self.name} runs"
            )
            rows = tuple(method for method in rows if method.name in (*names, protocol.reference))
            if not any(method.runs_on(dataset) for method in rows for dataset in protocol.datasets):
                where = f"{' or '.join(names)} must run on one of {', '.join(protocol.datasets)}"
                raise InputError(f"{where}; {self.name} runs it on others only.")
        return replace(self, protocol=protocol, methods=rows)

    def cells(self, seed: int) -> list[Cell]:
        """All that there is to compute: dataset by dataset, then by labels, attack and method."""
        protocol = self.protocol
        return [
            Cell(
                self.name,
                dataset,
                labels,
                method.name,
                seed,
                method.path,
                merged(method.settings, method.on.get(dataset, {})),
                protocol.validation,
                protocol.test,
                dataset in protocol.largest_component,
                protocol.without_test_edges,
                attacker,
                protocol.victims,
                protocol.told,
                method.search,
                protocol.samples,
                protocol.scores if protocol.samples else (),
            )
            for dataset in protocol.datasets
            for labels in protocol.labels or [0]
            for attacker in protocol.attackers or [None]
            for method in self.runnable
            if method.runs_on(dataset)
        ]


def kind_of(labels: object, samples: int) -> str:
    """What the methods are of an experiment with such numbers of labels and of samples."""
    return "graph models" if samples else "classifiers" if labels else "recommenders"


def merged(settings: Mapping[str, Any], others: Mapping[str, Any]) -> dict[str, Any]:
    """Settings with others on top; tables are merged, not replaced."""
    both = dict(settings)
    for name, value in others.items():
        old = both.get(name)
        if isinstance(old, Mapping) and isinstance(value, Mapping):
            value = merged(old, value)
        both[name] = value
    return both


def _chosen(allowed: Sequence[Any], wanted: Sequence[Any] | None, what: str) -> tuple[Any, ...]:
    """Those of ``allowed`` that are wanted, in its order."""
    if wanted is None:
        return tuple(allowed)
    if not wanted:
        raise InputError(f"{what} must name at least one; got none.")
    for one in wanted:
        if isinstance(one, str):
            check_name(one, allowed, what)
        elif one not in allowed:
            raise InputError(f"{what} must be one of {', '.join(map(str, allowed))}; got {one}.")
    return tuple(one for one in allowed if one in wanted)


def _digest(parts: list[Any]) -> str:
    text = json.dumps(parts, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:12]
