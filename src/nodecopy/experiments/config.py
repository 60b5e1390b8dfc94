"""Experiments as TOML files; the paper's tables come with the package (``configs/``).

A file is checked completely when it is read. A list of datasets may have entries such as ``{ name = "mine",
edges = "edges.csv", directed = true }``: files relative to the folder of the TOML file, and options of the
function that reads them.
"""

from __future__ import annotations

import inspect
import tomllib
from collections.abc import Mapping, Sequence
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import Any

from nodecopy import datasets
from nodecopy._core.checks import check_path, check_real
from nodecopy._core.files import reading, resolve
from nodecopy._core.imports import check_name, import_member
from nodecopy.errors import InputError
from nodecopy.experiments import tasks
from nodecopy.experiments.spec import (
    CODE_KEYS,
    PACKAGE,
    CellKey,
    Experiment,
    Method,
    Published,
    Timing,
    as_reader,
    check_family,
    check_keys,
    check_settings,
    merge_settings,
    read_mapping,
    read_name,
    read_section,
    read_text,
    set_same_bits,
)
from nodecopy.experiments.tasks import FILE_KINDS, FileDataset, Task, fingerprint_files

SECTIONS = ("title", "task", "notes", "methods", "published", "seconds")
MAX_DEPTH = 50
OBJECTS = ("path", "labels", "features", "node_ids", "encoder")  # parameters of readers that are no keys


def names() -> tuple[str, ...]:
    """Return the names of the experiments that come with the package."""
    paths = (Path(file.name) for file in (files("nodecopy.experiments") / "configs").iterdir())
    return tuple(sorted(path.stem for path in paths if path.suffix == ".toml"))


def load(source: str | Path, *, trust: bool = False) -> Experiment:
    """Read an experiment: one of :func:`names`, or the path of a TOML file like theirs.

    Without ``trust``, a file that names code outside this package is an error: it would be run.
    """
    path = Path(check_path(source, "source"))
    if path.suffix != ".toml":
        return parse(_read_packaged(str(source)), str(source))
    with reading(path) as file:
        text = file.read_text(encoding="utf-8")
    return parse(text, path.stem, path.parent, trust=trust)


def parse(text: str, name: str, folder: Path = Path(), *, trust: bool = False) -> Experiment:
    """Make an experiment from the text of its file."""
    set_same_bits()  # before the classes are imported, and torch with them
    read_name(name, "name of an experiment's file")
    file = f"{name}.toml"
    content, own_datasets = _separate_file_datasets(_decode(text, file, trust=trust), folder)
    content = _extend(content)
    if "task" not in content:
        check_keys(content, file, (*SECTIONS, "base", "protocol", "attacks"), ("task",))
    what = f"task of {file}"
    task_class: type[Task] = import_member(tasks.TASKS[check_name(content["task"], tasks.TASKS, what)], what)
    check_keys(content, file, (*SECTIONS, *task_class.sections), ("title", "protocol", "methods"))
    task = task_class.read(content, own_datasets=own_datasets)
    methods = _read_methods(content["methods"], task, file)
    method_names = [method.name for method in methods]
    return Experiment(
        name,
        read_text(content["title"], f"title of {file}"),
        task,
        methods,
        _read_published(content.get("published", {}), task, method_names),
        task.trials,
        as_reader(["text"])(content["notes"], f"notes of {file}") if "notes" in content else (),
        _read_timing(content["seconds"], task, method_names) if "seconds" in content else None,
    )


def _decode(text: str, file: str, *, trust: bool) -> dict[str, Any]:

    def read_float(digits: str) -> float:
        return check_real(float(digits), f"number {digits} of {file}")

    try:
        content = tomllib.loads(text, parse_float=read_float)
    except InputError:
        raise
    except (ValueError, RecursionError) as error:  # integers of 5,000 digits, and deep nesting
        raise InputError(f"{file} must be valid TOML; {error}.") from error
    level: list[Any] = [content]
    for _ in range(MAX_DEPTH):
        for part in level:
            paths = [part.get(key) for key in CODE_KEYS if isinstance(part, dict)]
            for path in paths if trust is not True else ():
                if isinstance(path, str) and not path.startswith(f"{PACKAGE}."):
                    got = f"{file} names {path}. Read that code first"
                    raise InputError("trust", f"must be set to run code outside {PACKAGE}; {got}.")
        children = [child for part in level for child in (part.values() if isinstance(part, dict) else part)]
        level = [child for child in children if isinstance(child, (dict, list))]
        if not level:
            return content
    raise InputError(f"{file} must have at most {MAX_DEPTH} tables and lists in one another; it has more.")


def _separate_file_datasets(
    content: Mapping[str, Any], folder: Path
) -> tuple[dict[str, Any], tuple[FileDataset, ...]]:
    protocol = read_mapping(content.get("protocol", {}), "[protocol]")
    if not isinstance(protocol.get("datasets"), list):
        return dict(content), ()
    own, names = [], []
    for entry in protocol["datasets"]:
        if isinstance(entry, dict):
            own.append(_read_file_dataset(entry, folder))
        names.append(own[-1].name if isinstance(entry, dict) else entry)
    return {**content, "protocol": protocol | {"datasets": names}}, tuple(own)


def _read_file_dataset(section: dict[str, Any], folder: Path) -> FileDataset:
    where = "an entry of datasets of [protocol]"
    kind = next((name for name in FILE_KINDS if FILE_KINDS[name].required[0] in section), "graph")
    required, optional, _, reader = FILE_KINDS[kind]
    keys = [name for name in inspect.signature(reader).parameters if name not in OBJECTS]
    readers = dict.fromkeys(keys, as_reader("option"))
    if "features" in section:
        readers["ignore_columns"] = as_reader(["text"])
    check_keys(section, where, ("name", *required, *optional, *readers), ("name", *required))
    name = read_name(section["name"], f"name of {where}")
    if name in datasets.names():
        raise InputError(f"name of {where} must not be the name of a dataset of the package; got {name!r}.")
    files = []
    for entry in (*required, *optional):
        if entry in section:
            path = resolve(Path(folder, read_text(section[entry], f"{entry} of {name}")))
            if not path.is_file():
                place = "Paths are relative to the folder of the TOML file"
                raise InputError(f"{entry} of {name} must be a file; {path} is none. {place}.")
            files.append((entry, path))
    given = [entry for entry in readers if entry in section]
    options = tuple((entry, readers[entry](section[entry], f"{entry} of {name}")) for entry in given)
    return FileDataset(name, kind, tuple(files), options, fingerprint_files(tuple(files), options))


def expand_budgets(attacks: Any) -> dict[str, Any]:
    """Return the sections of attacks; a list of ``budgets`` becomes a section ``NAME-BUDGET`` for each."""
    expanded: dict[str, Any] = {}
    for name, section in read_mapping(attacks, "[attacks]").items():
        where, sections = f"[attacks.{name}]", {name: section}
        if isinstance(section, dict) and "budgets" in section:
            if "budget" in section:
                raise InputError(f"{where} must have a budget, or a list of budgets; got both.")
            rest = {key: value for key, value in section.items() if key != "budgets"}
            sections = {}
            for budget in as_reader(["budget"])(section["budgets"], f"each of budgets of {where}"):
                title = {"title": f"{rest['title']}, {budget}"} if "title" in rest else {}
                sections[f"{name}-{budget}"] = rest | title | {"budget": budget}
        for twice in expanded.keys() & sections.keys():
            raise InputError(f"names of attacks must be unique; got {twice} more than once, also by budgets.")
        expanded |= sections
    return expanded


def _extend(content: dict[str, Any]) -> dict[str, Any]:
    """Return the content of a file together with what it inherits from its ``base``.

    Single keys of [protocol] are inherited, other sections as a whole, and so is a [methods.x] or [attacks.x]
    without other keys than ``datasets`` and ``conditions``.
    """
    if "attacks" in content:
        content = content | {"attacks": expand_budgets(content["attacks"])}
    if "base" not in content:
        return content
    base = _extend(tomllib.loads(_read_packaged(read_text(content["base"], "base of a file"))))
    if content.get("task", base["task"]) != base["task"]:
        wanted = f"{base['task']!r}, as in the base {content['base']}"
        raise InputError(f"task must be {wanted}; got {content['task']!r}.")
    protocol = content.get("protocol", {})
    base = _restrict(base, protocol.get("datasets", base["protocol"]["datasets"]))
    whole = {**base, **content, "protocol": base["protocol"] | protocol}
    del whole["base"]
    for part in base.keys() - {"task", "protocol"}:
        entries = read_mapping(content.get(part, {name: {} for name in base[part]}), f"[{part}]")
        whole[part] = dict(entries)
        for name, own in entries.items():
            if isinstance(own, dict) and own.keys() <= {"datasets", "conditions"}:
                section = base[part][check_name(name, base[part], f"an empty section of [{part}]")] | own
                # An inherited method is compared only with methods that the file has.
                if others := [other for other in section.pop("gain_over", ()) if other in entries]:
                    section["gain_over"] = others
                whole[part][name] = section
    return whole


def _restrict(base: Mapping[str, Any], datasets: Any) -> dict[str, Any]:
    datasets = datasets if isinstance(datasets, list) else []
    protocol, methods = dict(base["protocol"]), {}
    if "largest_component" in protocol:
        protocol["largest_component"] = [name for name in protocol["largest_component"] if name in datasets]
    for name, method in base["methods"].items():
        only = [dataset for dataset in method.get("datasets", datasets) if dataset in datasets]
        if only:
            on = {key: settings for key, settings in method.get("on", {}).items() if key in datasets}
            methods[name] = method | {"on": on} | ({"datasets": only} if "datasets" in method else {})
    never = ("title", "notes", "published", "seconds")
    inherited = {key: value for key, value in base.items() if key not in never}
    return inherited | {"protocol": protocol, "methods": methods}


def _read_packaged(source: str) -> str:
    name = check_name(source, names(), "an experiment that is not a .toml file")
    return (files("nodecopy.experiments") / "configs" / f"{name}.toml").read_text(encoding="utf-8")


def _read_methods(section: Any, task: Task, file: str) -> tuple[Method, ...]:
    methods = []
    for name, content in read_mapping(section, "[methods]").items():
        where = f"[methods.{read_name(name, 'name of a method')}]"
        for key in task.unused_keys:
            if key in read_mapping(content, where):
                raise InputError(f"{key} of {where} must be left out: this task has no use for it.")
        method = read_section(Method, content, where, name=name)
        for key in ("datasets", "on"):
            for dataset in getattr(method, key):
                check_name(dataset, task.datasets, f"{key} of {where}")
        for condition, values in method.conditions.items():
            check_name(condition, task.conditions[0], f"a key of conditions of {where}")
            allowed = sorted({entry[condition] for entry in task.conditions})
            if not isinstance(values, list) or not values or any(value not in allowed for value in values):
                place = f"{condition} of conditions of {where}"
                raise InputError(f"{place} must be some of {', '.join(map(str, allowed))}; got {values}.")
        for dataset, settings in method.on.items():
            read_mapping(settings, f"on.{dataset} of {where}")
        if method.path:
            check_family(method.path, task.family_methods, task.family, where)
            for dataset, choice in product(["", *method.on], method.search or ({},)):
                settings = merge_settings(method.settings_on(dataset), choice)
                check_settings(method.path, settings, where, task.allowed_uses)
        methods.append(method)
    if not methods:
        raise InputError(f"[methods] of {file} must have a method; it is empty.")
    runnable = [method.name for method in methods if method.path]
    for method in methods:
        for other in method.gain_over:
            others = [name for name in runnable if name != method.name]
            check_name(other, others, f"gain_over of [methods.{method.name}]")
    for key in ("reference", "verdict_of"):
        if name := getattr(task, key):
            check_name(name, runnable, f"{key} of [protocol]")
    return tuple(methods)


def _read_published(section: Any, task: Task, methods: Sequence[str]) -> dict[CellKey, Published]:
    published = {}
    for dataset, rows in read_mapping(section, "[published]").items():
        check_name(dataset, task.datasets, "dataset of [published]")
        for method, entries in read_mapping(rows, f"[published.{dataset}]").items():
            where = f"{method} of [published.{dataset}]"
            check_name(method, methods, f"method of [published.{dataset}]")
            if not isinstance(entries, list) or len(entries) != len(task.columns):
                allowed = f"one entry per column, {len(task.columns)} in all"
                raise InputError(f"{where} must hold {allowed}; got {entries!r}.")
            for column, entry in zip(task.columns, entries, strict=True):
                if entry != "-":  # nothing was printed
                    published[dataset, column, method] = task.read_published(entry, where)
    return published


def _read_timing(section: Any, task: Task, methods: Sequence[str]) -> Timing:
    timing = read_section(Timing, section, "[seconds]", column=task.columns[-1])
    check_name(timing.over, methods, "over of [seconds]")
    for name, number in timing.published.items():
        check_name(name, methods, "published of [seconds]")
        check_real(number, f"{name} of [seconds]", low=0.0)
    return timing
