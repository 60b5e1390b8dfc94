"""What an experiment is: a protocol, methods with their settings, and the numbers the paper printed.

Experiments are TOML files; those of the paper's tables come with the package (``configs/``). Everything
is checked when a file is read, so that a misspelt setting costs no hours.
"""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeAlias

from nodecopy import checks, datasets, registry
from nodecopy.errors import InputError

NAME = re.compile(r"[a-z0-9]+([-_.][a-z0-9]+)*")
CLASS_PATH = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")
PRINTED = re.compile(r"(\d+(?:\.\d+)?)\s*±\s*(\d+(?:\.\d+)?)")

Place: TypeAlias = tuple[str, int, str]  # dataset, labels per class, method


@dataclass(frozen=True)
class Published:
    """A number as the paper prints it, in percent.

    The paper calls its deviations standard errors; they are standard deviations over trials, since with
    50 trials a standard error of 3.7 points would mean accuracies that scatter by 26.
    """

    mean: float
    std: float


@dataclass(frozen=True)
class Protocol:
    """How trials are drawn: ``labels`` training nodes per class, validation and test nodes over all."""

    datasets: tuple[str, ...]
    labels: tuple[int, ...]
    trials: int
    validation: int
    test: int
    largest_component: tuple[str, ...] = ()
    without_test_edges: bool = False


@dataclass(frozen=True)
class Method:
    """A row of the table.

    ``path`` is ``module:Class`` of a classifier, empty where the row is only printed as published.
    ``on`` holds settings that differ on some datasets; ``gain_over`` names the methods to compare with,
    trial by trial.
    """

    name: str
    title: str
    path: str
    settings: Mapping[str, Any]
    on: Mapping[str, Mapping[str, Any]]
    gain_over: tuple[str, ...]


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
    validation: int
    test: int
    largest_component: bool
    without_test_edges: bool

    @property
    def place(self) -> Place:
        return self.dataset, self.labels, self.method

    @property
    def fingerprint(self) -> str:
        """Twelve hexadecimal digits that change with the method's settings or the protocol.

        The device and the other methods are no part of it, nor is the number of trials: trial 7 is
        the same trial however many there are.
        """
        parts = [self.path, dict(self.settings), self.validation, self.test]
        parts += [self.largest_component, self.without_test_edges]
        text = json.dumps(parts, sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def __str__(self) -> str:
        return f"{self.dataset}, {self.labels} labels, {self.method}"


@dataclass(frozen=True)
class Experiment:
    """A table to reproduce; ``published_trials`` is how many trials are behind a published number."""

    name: str
    title: str
    protocol: Protocol
    methods: tuple[Method, ...]
    published: Mapping[Place, Published]
    published_trials: int

    @property
    def runnable(self) -> tuple[Method, ...]:
        """The methods that can be run; the others are printed as published."""
        return tuple(method for method in self.methods if method.path)

    def narrowed(
        self,
        *,
        datasets: Sequence[str] | None = None,
        labels: Sequence[int] | None = None,
        methods: Sequence[str] | None = None,
        trials: int | None = None,
    ) -> Experiment:
        """The same experiment with some of its datasets, labels and methods, in its order."""
        protocol = replace(
            self.protocol,
            datasets=_chosen(self.protocol.datasets, datasets, f"dataset of {self.name}"),
            labels=_chosen(self.protocol.labels, labels, f"labels of {self.name}"),
            trials=self.protocol.trials if trials is None else checks.integer(trials, "trials", low=1),
        )
        rows = self.methods
        if methods is not None:
            names = _chosen(
                [method.name for method in self.runnable], methods, f"method that {self.name} runs"
            )
            rows = tuple(method for method in rows if method.name in names)
        return replace(self, protocol=protocol, methods=rows)

    def cells(self, seed: int) -> list[Cell]:
        """All that there is to compute: dataset by dataset, then by labels, then by method."""
        protocol = self.protocol
        return [
            Cell(
                self.name,
                dataset,
                labels,
                method.name,
                seed,
                method.path,
                {**method.settings, **method.on.get(dataset, {})},
                protocol.validation,
                protocol.test,
                dataset in protocol.largest_component,
                protocol.without_test_edges,
            )
            for dataset in protocol.datasets
            for labels in protocol.labels
            for method in self.runnable
        ]


def names() -> tuple[str, ...]:
    """The experiments that come with the package."""
    folder = files("nodecopy.experiments") / "configs"
    found = (Path(file.name) for file in folder.iterdir())
    return tuple(sorted(path.stem for path in found if path.suffix == ".toml"))


def load(source: str | Path) -> Experiment:
    """Read an experiment: one of :func:`names`, or the path of a TOML file like theirs.

    >>> load("table2").protocol.labels
    (5, 10, 20)
    """
    path = Path(source)
    if path.suffix != ".toml":
        name = registry.known(str(source), names(), "an experiment that is not a .toml file")
        text = (files("nodecopy.experiments") / "configs" / f"{name}.toml").read_text(encoding="utf-8")
        return parse(text, name)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} must be a TOML file that can be read; {error}.") from error
    return parse(text, path.stem)


def parse(text: str, name: str) -> Experiment:
    """Check the text of a TOML file and make an experiment of it; errors say where in the file."""
    _named(name, "name of an experiment's file")
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{name}.toml must be valid TOML; {error}.") from error
    _keys(table, f"{name}.toml", ("title", "protocol", "methods"), ("published",))
    protocol = _protocol(_table(table["protocol"], "[protocol]"))
    entries = _table(table["methods"], "[methods]").items()
    methods = tuple(_method(key, _table(entry, f"[methods.{key}]"), protocol) for key, entry in entries)
    for method in methods:
        runnable = [other.name for other in methods if other.path and other is not method]
        for other in method.gain_over:
            registry.known(other, runnable, f"gain_over of [methods.{method.name}]")
    published = _published(_table(table.get("published", {}), "[published]"), protocol, methods)
    return Experiment(name, _text(table, "title", name), protocol, methods, published, protocol.trials)


def _protocol(table: Mapping[str, Any]) -> Protocol:
    where = "[protocol]"
    required = ("datasets", "labels", "trials", "validation", "test")
    _keys(table, where, required, ("largest_component", "without_test_edges"))
    graphs = [name for name in datasets.names() if datasets.describe(name).kind == "graph"]
    chosen = _list(table["datasets"], f"datasets of {where}")
    largest = table.get("largest_component", [])
    scarce = table.get("without_test_edges", False)
    if not isinstance(largest, list):
        raise InputError(f"largest_component of {where} must be a list of datasets; got {largest!r}.")
    if not isinstance(scarce, bool):
        raise InputError(f"without_test_edges of {where} must be true or false; got {scarce!r}.")
    labels = _list(table["labels"], f"labels of {where}")
    trials, validation, test = (
        checks.integer(table[key], f"{key} of {where}", low=1) for key in required[2:]
    )
    return Protocol(
        tuple(registry.known(name, graphs, f"datasets of {where}") for name in chosen),
        tuple(checks.integer(number, f"labels of {where}", low=1) for number in labels),
        trials,
        validation,
        test,
        tuple(registry.known(name, chosen, f"largest_component of {where}") for name in largest),
        scarce,
    )


def _method(name: str, table: Mapping[str, Any], protocol: Protocol) -> Method:
    where = f"[methods.{name}]"
    _named(name, "name of a method")
    _keys(table, where, ("title",), ("class", "settings", "on", "gain_over"))
    path = table.get("class", "")
    if "class" in table and not (isinstance(path, str) and CLASS_PATH.fullmatch(path)):
        raise InputError(f"class of {where} must read module:Class; got {path!r}.")
    on = _table(table.get("on", {}), f"on of {where}")
    for dataset, settings in on.items():
        registry.known(dataset, protocol.datasets, f"on of {where}")
        _table(settings, f"on.{dataset} of {where}")
    settings = _table(table.get("settings", {}), f"settings of {where}")
    others = tuple(_list(table["gain_over"], f"gain_over of {where}")) if "gain_over" in table else ()
    return Method(name, _text(table, "title", where), path, settings, on, others)


def _published(
    table: Mapping[str, Any], protocol: Protocol, methods: Iterable[Method]
) -> dict[Place, Published]:
    found = {}
    for dataset, rows in table.items():
        registry.known(dataset, protocol.datasets, "dataset of [published]")
        for method, entries in _table(rows, f"[published.{dataset}]").items():
            where = f"{method} of [published.{dataset}]"
            registry.known(method, [one.name for one in methods], f"method of [published.{dataset}]")
            if not isinstance(entries, list) or len(entries) != len(protocol.labels):
                raise InputError(
                    f"{where} must hold one entry per number of labels, {len(protocol.labels)} in all; "
                    f"got {entries!r}."
                )
            for labels, entry in zip(protocol.labels, entries, strict=True):
                printed = PRINTED.fullmatch(entry) if isinstance(entry, str) else None
                if printed is None:
                    raise InputError(f"{where} must hold entries such as '70.0±3.7'; got {entry!r}.")
                found[dataset, labels, method] = Published(*map(float, printed.groups()))
    return found


def _chosen(allowed: Sequence[Any], wanted: Sequence[Any] | None, what: str) -> tuple[Any, ...]:
    """Those of ``allowed`` that are wanted, in its order."""
    if wanted is None:
        return tuple(allowed)
    if not wanted:
        raise InputError(f"{what} must name at least one; got none.")
    for one in wanted:
        if isinstance(one, str):
            registry.known(one, allowed, what)
        elif one not in allowed:
            raise InputError(f"{what} must be one of {', '.join(map(str, allowed))}; got {one}.")
    return tuple(one for one in allowed if one in wanted)


def _keys(
    table: Mapping[str, Any], where: str, required: tuple[str, ...], optional: tuple[str, ...] = ()
) -> None:
    for key in table:
        registry.known(key, required + optional, f"key of {where}")
    for key in required:
        if key not in table:
            raise InputError(f"{where} must have {key}; it has {', '.join(table) or 'nothing'}.")


def _table(value: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise InputError(f"{where} must be a table of keys and values; got {value!r}.")
    return value


def _list(value: Any, where: str) -> list[Any]:
    if not isinstance(value, list) or not value or len({str(one) for one in value}) < len(value):
        raise InputError(f"{where} must be a list of different entries, at least one; got {value!r}.")
    return value


def _text(table: Mapping[str, Any], key: str, where: str) -> str:
    if not isinstance(table[key], str) or not table[key].strip():
        raise InputError(f"{key} of {where} must be a text; got {table[key]!r}.")
    return str(table[key])


def _named(name: str, what: str) -> None:
    """Names become folders of the store, so they must be plain."""
    if not NAME.fullmatch(name):
        raise InputError(f"{what} must be of lower-case letters, digits and single -, _ or .; got {name!r}.")
