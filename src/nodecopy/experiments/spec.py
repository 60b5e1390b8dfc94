"""What an experiment is, whatever its task: methods, cells, columns and the numbers that the paper prints."""

from __future__ import annotations

import hashlib
import inspect
import json
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.random import SeedSequence
from scipy import sparse

from nodecopy import datasets
from nodecopy._core.checks import check_integer
from nodecopy._core.imports import EXTRA_OF, check_name, import_class, import_optional, public_name
from nodecopy._core.random import child, seed_sequence
from nodecopy.errors import InputError
from nodecopy.experiments.data import FileDataset
from nodecopy.experiments.sections import key, make_list_reader, read_class, read_mapping, read_text
from nodecopy.graph import Graph

if TYPE_CHECKING:
    from nodecopy.experiments.tasks.base import Task


# Instantiate the class of a method with its settings, among which there may be objects.


UseResolver: TypeAlias = Callable[[str, str, dict[str, Any]], Any]
"""Return what a section with the key ``use`` stands for, given that key, the class and the settings."""


def instantiate(
    path: str, settings: Mapping[str, Any], where: str, device: str, use: UseResolver | None = None
) -> Any:
    """Make an object of the class at ``path`` and of the classes among its settings.

    Parameters
    ----------
    path
        ``module.Class``.
    settings
        Keywords of the constructor; sections among them become objects.
    where
        The section that errors name, such as ``[methods.gcn]``.
    device
        Set on every object that has a ``device``, unless its settings name one.
    use
        Called for sections with the key ``use``.
    """

    def resolve(value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        others = {name: entry for name, entry in value.items() if name not in ("class", "use")}
        if "use" in value and use is not None:
            return use(value["use"], value["class"], others)
        return instantiate(value["class"], others, where, device, use)

    parts = {name: resolve(value) for name, value in settings.items()}
    try:
        instance = import_class(path, where)(**parts)
    except InputError as error:
        missing = getattr(error.__cause__, "name", None)
        if missing in EXTRA_OF:
            import_optional(missing, where)
        raise
    except TypeError as error:
        raise InputError(
            f"settings of {where}", f"must be keywords of {path}; got {parts} ({error})."
        ) from error
    if hasattr(instance, "device") and "device" not in settings:
        instance.device = device
    return instance


def check_settings(path: str, settings: Mapping[str, Any], where: str, uses: tuple[str, ...] = ()) -> None:
    """Check that settings are parameters of the class at ``path``, and so on for the objects among them.

    Classes that need an optional package that is not installed are skipped.
    """
    names = parameter_names(path, where)
    for name, value in settings.items():
        if names is not None:
            check_name(name, names, f"a setting of {where} ({path})")
        if isinstance(value, Mapping):
            inner = f"{name} in {where}"
            if not isinstance(value.get("class"), str):
                raise InputError(inner, f"must have a class; got {dict(value)}.")
            if "use" in value and not uses:
                raise InputError(inner, f"must have no use; got {value['use']!r}.")
            if "use" in value:
                check_name(value["use"], uses, f"use of {inner}")
            others = {key: entry for key, entry in value.items() if key not in ("class", "use")}
            check_settings(value["class"], others, inner, uses)


def check_family(path: str, methods: tuple[str, ...], family: str, where: str) -> None:
    """Check that the class at ``path`` has the methods of its family.

    A class that needs an optional package that is not installed is skipped.
    """
    cls = _import_available(path, where)
    missing = [name for name in methods if cls and not callable(getattr(cls, name, None))]
    if missing:
        raise InputError(f"class of {where}", f"must be {family}; got {path}, which has no {missing[0]}().")


def _import_available(path: str, where: str) -> Any:
    """Return the class at ``path``; ``None`` if it needs an optional package that is not installed."""
    try:
        return import_class(path, where)
    except InputError as error:
        if getattr(error.__cause__, "name", None) in EXTRA_OF:
            return None
        raise


@lru_cache
def parameter_names(path: str, where: str) -> list[str] | None:
    """Return the parameters of a class; ``None`` if it takes any keyword or needs a missing package."""
    cls = _import_available(path, where)
    if cls is None:
        return None
    if hasattr(cls, "parameter_names"):
        return list(cls.parameter_names())
    try:
        parameters = inspect.signature(cls).parameters.values()
    except ValueError:  # a built-in class
        return None
    has_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)
    return None if has_any else [parameter.name for parameter in parameters]


@lru_cache
def public_path(path: str) -> str:
    """Return the public name of the class at ``path``; the path itself if the class cannot be imported."""
    try:
        return public_name(import_class(path, path))
    except InputError:
        return path


def use_public_names(value: Any) -> Any:
    """Return settings in which every class has its public name."""
    if isinstance(value, Mapping):
        return {
            name: public_path(entry) if name == "class" and entry else use_public_names(entry)
            for name, entry in value.items()
        }
    return list(map(use_public_names, value)) if isinstance(value, list | tuple) else value


def merge_settings(settings: Mapping[str, Any], others: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings with others on top; sections are merged, not replaced."""
    both = dict(settings)
    for name, value in others.items():
        old = both.get(name)
        both[name] = (
            merge_settings(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
        )
    return both


# Seeds and data of trials.


SEED_SCHEME = 1
"""Version of the rule above. Raise it with every change of draws: fingerprints of cells digest it."""


class TrialSeeds(IntEnum):
    """Children of a trial's seed sequence, one for each purpose."""

    SPLIT = 0
    METHOD = 1
    TARGETS = 2
    ATTACK = 3
    VISIBLE_VALIDATION = 4
    VALIDATION = 5


def trial_seed(seed: int, dataset: str, trial: int, *, labels: int = 0) -> SeedSequence:
    """Return the seed sequence of a trial; ``labels`` is 0 for tasks that have no labels per class."""
    return child(child(dataset_seed(seed, dataset), labels), trial)


def dataset_seed(seed: int, dataset: str) -> SeedSequence:
    """Return the seed sequence of all trials of a dataset."""
    return child(seed_sequence(seed), zlib.crc32(dataset.encode()))


@lru_cache(maxsize=1)
def load_data(dataset: str | FileDataset, largest_component: bool = False) -> Any:
    """Load a dataset, kept in memory until another is loaded: cells come dataset by dataset."""
    if isinstance(dataset, FileDataset):
        return dataset.load(largest_component)
    return datasets.load(dataset, largest_component=largest_component)


def digest_graph(graph: Graph) -> str:
    """Return a digest of the edges, weights, labels and ids of a graph."""
    rows = graph.rows
    digest = hashlib.sha256(f"{graph.n_nodes} {graph.directed}".encode())
    for part in (rows.indptr, rows.indices, rows.weights, graph.labels):
        digest.update(b"-" if part is None else np.ascontiguousarray(part, np.float64).tobytes())
    digest.update("\n".join(map(str, graph.node_ids.tolist())).encode())
    return digest.hexdigest()[:16]


@lru_cache
def digest_dataset(dataset: str, largest_component: bool = False) -> str:
    """Return a digest of the nodes, edges, labels and features of a graph.

    Public forms of a dataset differ in it, if only by the order of the nodes.
    """
    graph = load_data(dataset, largest_component)
    digest = hashlib.sha256(digest_graph(graph).encode())
    if graph.features is not None:
        features = sparse.csr_array(graph.features)
        for part in (features.indptr, features.indices, features.data):
            digest.update(np.ascontiguousarray(part, np.float64).tobytes())
    return digest.hexdigest()[:12]


@dataclass(frozen=True)
class Column:
    """A column of a dataset's table: a score under some conditions.

    Columns are equal if ``score`` and ``conditions`` are.

    Attributes
    ----------
    score
        Name of the score in a trial's record.
    conditions
        Pairs of names and values that the cells of the column share, such as ``("labels", 5)``.
    heading
        What stands above the column.
    scale
        Factor between the stored and the printed number.
    is_compared
        Whether the best mean is marked, or the nearest to the reference in tables that have one.
    lower_is_better
        Whether the lowest mean is the best one.
    part
        Columns with different parts stand in different tables.
    """

    score: str
    conditions: tuple[tuple[str, Any], ...] = ()
    heading: str = field(default="", compare=False)
    scale: float = field(default=100.0, compare=False)
    is_compared: bool = field(default=True, compare=False)
    lower_is_better: bool = field(default=False, compare=False)
    part: str = field(default="", compare=False)


CellKey: TypeAlias = tuple[str, Column, str]
"""Dataset, column and method."""


@dataclass(frozen=True)
class Published:
    """A number as the paper prints it.

    The paper calls its deviations standard errors; they are standard deviations over trials, since with
    50 trials a standard error of 3.7 points would mean accuracies that scatter by 26. Table 1 has none;
    there ``rounding`` is half a unit of the last printed digit.
    """

    mean: float
    std: float | None
    rounding: float | None = None


@dataclass(frozen=True)
class Timing:
    """Run times to compare with those of the method ``over``, and the paper's seconds by method.

    Ours are those of the cells of ``column``, the shortest among the first ``trials``: a process that uses
    a GPU for the first time takes seconds longer.
    """

    over: str
    column: Column
    trials: int
    published: Mapping[str, float]


@dataclass(frozen=True)
class Method:
    """A row of the table.

    Attributes
    ----------
    title
        What the table calls it.
    path
        ``module.Class`` (key ``class``); empty if the row only has published numbers.
    settings
        Keywords of the constructor.
    on
        Settings that differ on some datasets.
    gain_over
        Methods to compare with, trial by trial.
    search
        Settings to choose from in every trial, for tasks that have a validation score.
    datasets
        Where it runs; empty means everywhere.
    conditions
        Under which values of the task's conditions it runs; a condition that is left out has no say.
    """

    name: str
    title: str = key(read_text)
    path: str = key(read_class, "class", default="")
    settings: Mapping[str, Any] = key(read_mapping, default_factory=dict)
    on: Mapping[str, Mapping[str, Any]] = key(read_mapping, default_factory=dict)
    gain_over: tuple[str, ...] = key(make_list_reader(read_text), default=())
    search: tuple[Mapping[str, Any], ...] = key(make_list_reader(read_mapping), default=())
    datasets: tuple[str, ...] = key(make_list_reader(read_text), default=())
    conditions: Mapping[str, Any] = key(read_mapping, default_factory=dict)

    def runs_on(self, dataset: str, conditions: Mapping[str, Any] = MappingProxyType({})) -> bool:
        """Return whether the method is run on a dataset, under some conditions."""
        is_allowed = all(conditions.get(name) in [None, *self.conditions[name]] for name in self.conditions)
        return bool(self.path) and (not self.datasets or dataset in self.datasets) and is_allowed

    def settings_on(self, dataset: str) -> dict[str, Any]:
        """Return the settings on a dataset."""
        return merge_settings(self.settings, self.on.get(dataset, {}))


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One entry of a table, with everything that its trials depend on.

    ``conditions`` are names and values that distinguish the cells of a method on a dataset, and
    ``all_conditions`` those of all these cells.
    """

    experiment: str
    task: Task = field(compare=False)
    dataset: str
    conditions: Mapping[str, Any]
    method: str
    seed: int
    path: str
    settings: Mapping[str, Any]
    search: tuple[Mapping[str, Any], ...] = ()
    all_conditions: tuple[Mapping[str, Any], ...] = field(default=(), compare=False)

    @property
    def folders(self) -> tuple[str, ...]:
        """The folders of the cell below that of its experiment."""
        return (self.dataset, *map(str, self.conditions.values()), self.method)

    @cached_property
    def fingerprint(self) -> str:
        """Twelve hexadecimal digits that change with the method's class, its settings or the protocol.

        The device, the other methods and the number of trials are no part of it. Classes count by their
        public names, so that a module can move.
        """
        return digest(self.fingerprint_parts())

    def fingerprint_parts(self) -> dict[str, Any]:
        """Return what the fingerprint digests."""
        parts = {"class": self.path, "settings": self.settings, "search": self.search}
        protocol = {"protocol": self.task.protocol(self), **self.task.fingerprint_extras()}
        return {"seeds": SEED_SCHEME, **use_public_names(parts), **protocol}

    def trial_seed(self, trial: int) -> SeedSequence:
        """Return the seed sequence of a trial, see :mod:`.trials`."""
        return trial_seed(self.seed, self.dataset, trial, labels=self.conditions.get("labels", 0))

    def __str__(self) -> str:
        conditions = [
            f"{value} {name.replace('_', ' ')}" if isinstance(value, int) else value
            for name, value in self.conditions.items()
        ]
        return ", ".join([self.dataset, *conditions, self.method])


@dataclass(frozen=True)
class Experiment:
    """A table to reproduce.

    ``published_trials`` is the number of trials behind a published number; ``notes`` are printed with the
    table; ``timing`` says whose run times are compared.
    """

    name: str
    title: str
    task: Task
    methods: tuple[Method, ...]
    published: Mapping[CellKey, Published]
    published_trials: int
    notes: tuple[str, ...] = ()
    timing: Timing | None = None

    def narrow(
        self, *, methods: Sequence[str] | None = None, trials: int | None = None, **filters: Sequence[Any]
    ) -> Experiment:
        """Return the same experiment with some of its methods, datasets and conditions, in its order.

        Parameters
        ----------
        methods
            Names of methods; the reference stays too.
        trials
            Number of trials.
        filters
            Values of fields of the task, see :attr:`.Task.filters`: ``datasets``, ``labels``,
            ``visible_validation``, ``attacks``.
        """
        changes: dict[str, Any] = {}
        for name, wanted in filters.items():
            if name not in self.task.filters or not getattr(self.task, name):
                given = ", ".join(map(str, wanted))
                raise InputError(name, f"must be left out: {self.name} has none; got {given}.")
            changes[name] = select_by_name(getattr(self.task, name), wanted, f"{name} of {self.name}")
        if trials is not None:
            changes["trials"] = check_integer(trials, "trials", low=1)
        task, rows = replace(self.task, **changes), self.methods
        if methods is not None:
            runnable = [method.name for method in rows if method.path]
            names = select_by_name(runnable, methods, f"a method that {self.name} runs")
            rows = tuple(method for method in rows if method.name in (*names, task.reference))
            narrowed = replace(self, task=task, methods=rows)
            if not any(cell.method in names for cell in narrowed.cells(0)):
                reasons = "; ".join(self._explain_no_cells(name, task) for name in names)
                raise InputError("methods", f"must run with what else was chosen: {reasons}.")
        return replace(self, task=task, methods=rows)

    def _explain_no_cells(self, method: str, task: Task) -> str:
        """Return with which datasets and conditions a method runs, if the task has none of them."""
        runs = _values_by_name(
            (cell.dataset, cell.conditions) for cell in self.cells(0) if cell.method == method
        )
        if not runs:
            return f"{method} does not run on {', '.join(self.task.datasets)}"
        chosen = _values_by_name(
            (dataset, conditions) for dataset in task.datasets for conditions in task.conditions
        )
        conflicts = [
            f"{name} {' or '.join(allowed)}, got {' or '.join(chosen[name])}"
            for name, allowed in runs.items()
            if not set(allowed) & set(chosen[name])
        ]
        return f"{method} runs with {' and '.join(conflicts) or 'none of these combinations'}"

    def cells(self, seed: int) -> list[Cell]:
        """Return everything there is to compute: by dataset, then by conditions, then by method."""
        return [
            Cell(
                experiment=self.name,
                task=self.task,
                dataset=dataset,
                conditions=conditions,
                method=method.name,
                seed=seed,
                path=method.path,
                settings=method.settings_on(dataset),
                search=method.search,
                all_conditions=tuple(c for c in self.task.conditions if method.runs_on(dataset, c)),
            )
            for dataset in self.task.datasets
            for conditions in self.task.conditions
            for method in self.methods
            if method.runs_on(dataset, conditions)
        ]


def _values_by_name(pairs: Iterable[tuple[str, Mapping[str, Any]]]) -> dict[str, list[str]]:
    """Return the datasets and the values of each condition, without repetitions, of pairs of both."""
    values: dict[str, dict[str, None]] = {}
    for dataset, conditions in pairs:
        for name, value in {"dataset": dataset, **conditions}.items():
            values.setdefault(name, {})[str(value)] = None
    return {name: list(of_name) for name, of_name in values.items()}


def select_by_name(items: Sequence[Any], names: Sequence[Any], what: str) -> tuple[Any, ...]:
    """Return the items whose name is in ``names``, in their original order."""
    allowed = [str(getattr(item, "name", item)) for item in items]
    if not names:
        raise InputError(f"{what} must be given; got none. Allowed: {', '.join(allowed)}.")
    for value in map(str, names):
        if value not in allowed and all(map(str.isdecimal, allowed)):
            raise InputError(f"{what} must be one of {', '.join(allowed)}; got {value}.")
        check_name(value, allowed, what)
    return tuple(item for item, name in zip(items, allowed, strict=True) if name in map(str, names))


def rounding_error(digits: int) -> float:
    """Return the largest rounding error of a number printed with ``digits`` decimals."""
    return 0.5 * 10.0**-digits


def digest(parts: Any) -> str:
    """Return twelve hexadecimal digits that change with ``parts``."""
    text = json.dumps(parts, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:12]
