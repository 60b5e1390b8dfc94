"""What an experiment is: methods, cells, columns and published numbers, read from sections of a TOML file."""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import re
import sys
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, dataclass, field, fields, replace
from enum import IntEnum
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from numpy.random import SeedSequence

from nodecopy._core.checks import check_integer
from nodecopy._core.imports import check_name, import_class, import_member, import_optional, public_name
from nodecopy._core.messages import warn_about_data
from nodecopy._core.random import child, seed_sequence
from nodecopy.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from nodecopy.experiments.tasks import Task

PACKAGE = __name__.partition(".")[0]
CODE_KEYS = ("class", "factory")  # keys whose values are paths of code
SectionClass = TypeVar("SectionClass")
Reader = Callable[[Any, str], Any]


def set_same_bits() -> None:
    """Make matrix products by MKL independent of their place in memory."""
    if "torch" not in sys.modules:  # afterwards the variable has no effect
        os.environ.setdefault("MKL_CBWR", "AVX2,STRICT")


def key(kind: Any, name: str = "", **options: Any) -> Any:
    """Return a dataclass field that is a key of a section."""
    return field(metadata={"read": as_reader(kind), "key": name}, **options)


def as_reader(kind: Any) -> Reader:
    """Return a reader from itself, its name, the allowed names, or a list with one of these for lists."""
    if callable(kind):
        return cast("Reader", kind)
    if isinstance(kind, str):
        return READERS[kind]
    if not isinstance(kind, list):
        return lambda value, where: check_name(value, kind, where)
    read = as_reader(kind[0])
    return lambda value, where: tuple(read(entry, where) for entry in read_list(value, where))


def read_section(cls: type[SectionClass], section: Any, where: str, **others: Any) -> SectionClass:
    """Make a ``cls`` from a section; ``others`` are the fields that are no keys."""
    content = read_mapping(section, where)
    entries = [entry for entry in fields(cls) if entry.metadata]  # type: ignore[arg-type]
    keys = {entry.metadata["key"] or entry.name: entry for entry in entries}
    required = [name for name, entry in keys.items() if entry.default is entry.default_factory is MISSING]
    check_keys(content, where, keys, required)
    for name in content:
        others[keys[name].name] = keys[name].metadata["read"](content[name], f"{name} of {where}")
    return cls(**others)


def check_keys(section: dict[str, Any], where: str, allowed: Iterable[str], required: Iterable[str]) -> None:
    """Check that a section has the required keys and only allowed ones."""
    for name in section:
        check_name(name, allowed, f"key of {where}")
    for name in required:
        if name not in section:
            raise InputError(f"{where} must have {name}; it has {', '.join(section) or 'nothing'}.")


def _make_reader(allowed: str, is_allowed: Callable[[Any], Any]) -> Reader:

    def read(value: Any, where: str) -> Any:
        if not is_allowed(value):
            raise InputError(f"{where} must be {allowed}; got {value!r}.")
        return value

    return read


NAME = re.compile(r"[a-z0-9]+([-_.][a-z0-9]+)*")
CLASS_PATH = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+")
read_count = partial(check_integer, low=1)
read_text = _make_reader("a text", lambda value: isinstance(value, str) and value.strip())
read_mapping = _make_reader("a section of keys and values", lambda value: isinstance(value, dict))
read_name = _make_reader(  # it names a folder
    "of lower-case letters, digits and single -, _ or .",
    lambda value: isinstance(value, str) and NAME.fullmatch(value),
)
read_list = _make_reader(
    "a list of different entries, at least one",
    lambda value: isinstance(value, list) and value and len(set(map(str, value))) == len(value),
)
READERS: dict[str, Reader] = {
    "text": read_text,
    "section": read_mapping,
    "count": read_count,
    "flag": _make_reader("true or false", lambda value: isinstance(value, bool)),
    "number": partial(check_integer, low=0),
    "share": _make_reader("a number from 0 to 1", lambda x: type(x) in (int, float) and 0 <= x <= 1),
    "class": _make_reader(
        "a path such as module.name", lambda value: isinstance(value, str) and CLASS_PATH.fullmatch(value)
    ),
    "budget": _make_reader(
        'an integer of at least 0, a share such as 0.5 or "degree"',
        lambda x: x == "degree" or (type(x) is int and x >= 0) or (type(x) is float and 0 <= x <= 1),
    ),
    "option": _make_reader("a text, a number, true or false", lambda x: isinstance(x, str | int | float)),
}


def instantiate(path: str, settings: Mapping[str, Any], where: str, device: str, use: Any = None) -> Any:
    """Make an object of the class at ``path`` and of the classes among its settings."""

    def resolve(name: str, value: Any) -> Any:
        if not isinstance(value, Mapping):
            return _import_factory(value, f"factory of {where}") if name == "factory" else value
        others = {name: entry for name, entry in value.items() if name not in ("class", "use")}
        if "use" in value and use is not None:
            return use(value["class"], others)
        return instantiate(value["class"], others, where, device, use)

    parts = {name: resolve(name, value) for name, value in settings.items()}
    try:
        instance = import_class(path, where)(**parts)
    except TypeError as error:
        message = f"must be keywords of {path}; got {parts} ({error})."
        raise InputError(f"settings of {where}", message) from error
    if hasattr(instance, "device") and "device" not in settings:
        instance.device = device
    return instance


def check_settings(path: str, settings: Mapping[str, Any], where: str, uses: tuple[str, ...] = ()) -> None:
    """Check that settings are parameters of the class at ``path``, also for the objects among them."""
    names = _parameter_names(path, where)
    for name, value in settings.items():
        if names is not None:
            check_name(name, names, f"a setting of {where} ({path})")
        if isinstance(value, Mapping):
            inner = f"{name} in {where}"
            if not isinstance(value.get("class"), str):
                raise InputError(inner, f"must have a class; got {dict(value)}.")
            if "use" in value:
                check_name(value["use"], uses, f"use of {inner}")
            others = {key: entry for key, entry in value.items() if key not in ("class", "use")}
            check_settings(value["class"], others, inner, uses)
        elif name == "factory":
            with suppress(MissingExtraError):
                _import_factory(value, f"factory of {where}")


def _import_factory(path: Any, where: str) -> Any:
    factory = import_member(READERS["class"](path, where), where)
    import_optional("torch", where)
    from nodecopy.classify.own_networks import check_factory

    check_factory(factory, where)
    try:
        inspect.signature(factory).bind(1, 1)
    except (TypeError, ValueError) as error:
        allowed = "a function of the numbers of features and classes"
        raise InputError(where, f"must be {allowed}; got {path} ({error}).") from error
    return factory


def check_family(path: str, methods: tuple[str, ...], family: str, where: str) -> None:
    """Check that the class at ``path`` has the methods of its family."""
    missing = []
    with suppress(MissingExtraError):
        cls = import_class(path, where)
        missing = [name for name in methods if not callable(getattr(cls, name, None))]
    if missing:
        raise InputError(f"class of {where}", f"must be {family}; got {path}, which has no {missing[0]}().")


def _parameter_names(path: str, where: str) -> list[str] | None:
    """Return the parameters of a class; ``None`` if it takes any keyword or needs a missing package."""
    try:
        cls = import_class(path, where)
        if hasattr(cls, "parameter_names"):
            return list(cls.parameter_names())
        parameters = inspect.signature(cls).parameters.values()
    except InputError:
        raise
    except (MissingExtraError, TypeError, ValueError):  # a missing or a built-in class
        return None
    has_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)
    return None if has_any else [parameter.name for parameter in parameters]


def _identify(path: str) -> str:
    """Return the public name of the code at ``path``, with a digest of code outside this package."""
    try:
        code = import_member(path, path)
    except (InputError, MissingExtraError):
        return path
    name = public_name(code) if isinstance(code, type) else path
    is_own = name.startswith(f"{PACKAGE}.")
    return name if is_own else f"{name} {digest(_digest_sources(path.rpartition('.')[0]))}"


_imports: dict[str, tuple[Any, str]] = {}  # by module: its spec, which a reload replaces, and a digest


def _digest_sources(start: str) -> dict[str, str]:
    """Return digests of the source of a module and of what it imports from its folder or package, by name."""
    digests: dict[str, str] = {}
    waiting, folder = [start], None
    for name in waiting:
        module, package = sys.modules.get(name), name.partition(".")[0]
        source = Path(str(getattr(module, "__file__", None)))
        folder = folder or source.parent
        is_near = source.is_relative_to(folder) and "site-packages" not in source.parts and package != PACKAGE
        if name in digests or not source.is_file() or not (is_near or package == start.partition(".")[0]):
            continue
        spec, current = getattr(module, "__spec__", None), hashlib.sha256(source.read_bytes()).hexdigest()
        if _imports.setdefault(name, (spec, current))[0] is not spec:
            _imports[name] = spec, current
        digests[name] = _imports[name][1]
        if digests[name] != current:
            warn_about_data(f"{source} changed after its import. The imported code runs: restart Python.")
        for value in vars(module).values():
            origin = getattr(value, "__name__" if inspect.ismodule(value) else "__module__", None)
            waiting += [origin] if isinstance(origin, str) else []
    return digests


def use_public_names(value: Any) -> Any:
    """Return settings in which every path of code identifies it, see :func:`_identify`."""
    if isinstance(value, Mapping):
        return {
            name: (_identify if name in CODE_KEYS and isinstance(entry, str) else use_public_names)(entry)
            for name, entry in value.items()
        }
    return list(map(use_public_names, value)) if isinstance(value, list | tuple) else value


def merge_settings(settings: Mapping[str, Any], others: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings with others on top; sections are merged, not replaced."""
    both = dict(settings)
    for name, value in others.items():
        old = both.get(name)
        is_section = isinstance(old, Mapping) and isinstance(value, Mapping)
        both[name] = merge_settings(old, value) if is_section else value  # type: ignore[arg-type]
    return both


SEED_SCHEME = 1  # raise it with every change of draws: fingerprints of cells digest it


class TrialSeeds(IntEnum):
    """Children of a trial's seed sequence, one for each purpose."""

    SPLIT = 0
    METHOD = 1
    TARGETS = 2
    ATTACK = 3
    VISIBLE_VALIDATION = 4
    VALIDATION = 5


def trial_seed(seed: int, dataset: str, trial: int, *, labels: int = 0) -> SeedSequence:
    """Return the seed sequence of a trial."""
    return child(dataset_seed(seed, dataset), labels, trial)


def dataset_seed(seed: int, dataset: str) -> SeedSequence:
    """Return the seed sequence of all trials of a dataset."""
    return child(seed_sequence(seed), zlib.crc32(dataset.encode()))


@dataclass(frozen=True)
class Column:
    """A column of a dataset's table: a score under some conditions, such as ``("labels", 5)``."""

    score: str
    conditions: tuple[tuple[str, Any], ...] = ()
    heading: str = field(default="", compare=False)
    scale: float = field(default=100.0, compare=False)  # the printed over the stored number
    is_compared: bool = field(default=True, compare=False)  # whether the best mean is marked
    lower_is_better: bool = field(default=False, compare=False)
    part: str = field(default="", compare=False)  # each part is a table of its own


CellKey = tuple[str, Column, str]  # dataset, column and method


@dataclass(frozen=True)
class Published:
    """A number as the paper prints it."""

    mean: float
    std: float | None
    rounding: float | None = None


@dataclass(frozen=True)
class Timing:
    """A section ``[seconds]``: run times of the last column, compared with the method ``over``."""

    column: Column
    over: str = key("text")
    trials: int = key("count")
    published: Mapping[str, float] = key("section")  # the paper's by method


@dataclass(frozen=True)
class Method:
    """A row of the table: a class with settings, or only published numbers if ``path`` is empty."""

    name: str
    title: str = key("text")
    path: str = key("class", "class", default="")
    settings: Mapping[str, Any] = key("section", default_factory=dict)
    on: Mapping[str, Mapping[str, Any]] = key("section", default_factory=dict)  # settings by dataset
    gain_over: tuple[str, ...] = key(["text"], default=())  # methods to compare with, trial by trial
    search: tuple[Mapping[str, Any], ...] = key(["section"], default=())  # chosen by validation in each trial
    datasets: tuple[str, ...] = key(["text"], default=())  # by default all, as for conditions
    conditions: Mapping[str, Any] = key("section", default_factory=dict)

    def runs_on(self, dataset: str, conditions: Mapping[str, Any]) -> bool:
        is_allowed = all(conditions.get(name) in [None, *self.conditions[name]] for name in self.conditions)
        return bool(self.path) and (not self.datasets or dataset in self.datasets) and is_allowed

    def settings_on(self, dataset: str) -> dict[str, Any]:
        return merge_settings(self.settings, self.on.get(dataset, {}))


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One entry of a table, with everything that its trials depend on."""

    experiment: str
    task: Task = field(compare=False)
    dataset: str
    conditions: Mapping[str, Any]
    method: str
    seed: int
    path: str
    settings: Mapping[str, Any]
    search: tuple[Mapping[str, Any], ...] = ()

    @property
    def folders(self) -> tuple[str, ...]:
        return (self.dataset, *map(str, self.conditions.values()), self.method)

    @cached_property
    def fingerprint(self) -> str:
        """A digest of the method's class (its public name, or code of the user), settings and protocol."""
        parts = use_public_names({"class": self.path, "settings": self.settings, "search": self.search})
        extras = self.task.fingerprint_extras()
        return digest({"seeds": SEED_SCHEME, **parts, "protocol": self.task.protocol(self), **extras})

    @property
    def section(self) -> str:
        return f"[methods.{self.method}]"

    def trial_seed(self, trial: int, *numbers: int) -> SeedSequence:
        start = trial_seed(self.seed, self.dataset, trial, labels=self.conditions.get("labels", 0))
        return child(start, *numbers)

    def __str__(self) -> str:
        parts = [self.dataset]
        for name, value in self.conditions.items():
            parts.append(f"{value} {name.replace('_', ' ')}" if isinstance(value, int) else value)
        return ", ".join([*parts, self.method])


@dataclass(frozen=True)
class Experiment:
    """A table to reproduce."""

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
        changes: dict[str, Any] = {}
        for name, wanted in filters.items():
            if name not in self.task.filters or not getattr(self.task, name):
                got = ", ".join(map(str, wanted))
                raise InputError(name, f"must be left out: {self.name} has none; got {got}.")
            changes[name] = _select_by_name(getattr(self.task, name), wanted, f"{name} of {self.name}")
        if trials is not None:
            changes["trials"] = check_integer(trials, "trials", low=1)
        task, rows = replace(self.task, **changes), self.methods
        if methods is not None:
            runnable = [method.name for method in rows if method.path]
            names = _select_by_name(runnable, methods, f"a method that {self.name} runs")
            rows = tuple(method for method in rows if method.name in (*names, task.reference))
            narrowed = replace(self, task=task, methods=rows)
            if not any(cell.method in names for cell in narrowed.cells(0)):
                allowed = "; ".join(map(self._describe_runs, names))
                raise InputError("methods", f"must run with what else was chosen: {allowed}.")
        return replace(self, task=task, methods=rows)

    def _describe_runs(self, method: str) -> str:
        runs = [
            {"dataset": cell.dataset, **cell.conditions} for cell in self.cells(0) if cell.method == method
        ]
        allowed = {name: dict.fromkeys(str(run[name]) for run in runs) for name in (runs[0] if runs else ())}
        parts = " and ".join(f"{name} {' or '.join(values)}" for name, values in allowed.items())
        return f"{method} runs with {parts or 'none of the datasets'}"

    def cells(self, seed: int) -> list[Cell]:
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
            )
            for dataset in self.task.datasets
            for conditions in self.task.conditions
            for method in self.methods
            if method.runs_on(dataset, conditions)
        ]


def _select_by_name(items: Sequence[Any], names: Sequence[Any], what: str) -> tuple[Any, ...]:
    allowed = [str(getattr(item, "name", item)) for item in items]
    if not names:
        raise InputError(f"{what} must be given; got none. Allowed: {', '.join(allowed)}.")
    for value in map(str, names):
        if value not in allowed and all(map(str.isdecimal, allowed)):  # numbers keep their order
            raise InputError(f"{what} must be one of {', '.join(allowed)}; got {value}.")
        check_name(value, allowed, what)
    return tuple(item for item, name in zip(items, allowed, strict=True) if name in map(str, names))


def rounding_error(digits: int) -> float:
    """Return the largest rounding error of a number with some decimals."""
    return 0.5 * 10.0**-digits


def digest(parts: Any) -> str:
    """Return twelve hexadecimal digits."""
    text = json.dumps(parts, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:12]
