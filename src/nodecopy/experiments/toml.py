"""Experiments as TOML files; those of the paper's tables come with the package (``configs/``).

Everything is checked when a file is read, so that a misspelt setting costs no hours.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterable, Mapping
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from nodecopy import datasets
from nodecopy._core.lookup import check_name
from nodecopy._core.validation import check_integer, check_real
from nodecopy.errors import InputError
from nodecopy.experiments.measures import RANKING_SCORES, SCORES, STATISTICS, TABLE_1
from nodecopy.experiments.spec import Attacker, Experiment, Method, Place, Protocol, Published, Timing

NAME = re.compile(r"[a-z0-9]+([-_.][a-z0-9]+)*")
CLASS_PATH = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+")
PRINTED = re.compile(r"(\d+(?:\.\d+)?)\s*±\s*(\d+(?:\.\d+)?)")
STATISTIC = re.compile(r"\d+(?:\.(\d+))?(?:e(\d+))?")


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
        return parse(_packaged(str(source)), str(source))
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
    table = _extended(table)
    _keys(
        table, f"{name}.toml", ("title", "protocol", "methods"), ("attacks", "published", "notes", "seconds")
    )
    attacks = _table(table.get("attacks", {}), "[attacks]").items()
    attackers = tuple(_attacker(key, _table(entry, f"[attacks.{key}]")) for key, entry in attacks)
    protocol = _protocol(_table(table["protocol"], "[protocol]"), attackers)
    entries = _table(table["methods"], "[methods]").items()
    if not entries:
        raise InputError(f"[methods] of {name}.toml must have a method; it is empty.")
    methods = tuple(_method(key, _table(entry, f"[methods.{key}]"), protocol) for key, entry in entries)
    for method in methods:
        runnable = [other.name for other in methods if other.path and other is not method]
        for other in method.gain_over:
            check_name(other, runnable, f"gain_over of [methods.{method.name}]")
    if protocol.reference:
        check_name(protocol.reference, [one.name for one in methods if one.path], "reference of [protocol]")
    published = _published(_table(table.get("published", {}), "[published]"), protocol, methods)
    notes = _list(table["notes"], f"notes of {name}.toml") if "notes" in table else []
    return Experiment(
        name,
        _text(table, "title", name),
        protocol,
        methods,
        published,
        protocol.trials,
        tuple(_said(note, f"notes of {name}.toml") for note in notes),
        _timing(_table(table["seconds"], "[seconds]"), protocol, methods) if "seconds" in table else None,
    )


def _extended(table: dict[str, Any]) -> dict[str, Any]:
    """A file with a ``base`` takes from that experiment what it does not say itself.

    Single keys of [protocol] are taken, other tables as a whole, and an empty [methods.x] or [attacks.x]
    is that of the base. Published numbers and seconds are never taken, nor what is said of datasets that
    the file does not have.
    """
    if "base" not in table:
        return table
    base = _extended(tomllib.loads(_packaged(_text(table, "base", "a file"))))
    protocol = _table(table.get("protocol", {}), "[protocol]")
    base = _about(base, protocol.get("datasets", base["protocol"]["datasets"]))
    whole = {**base, **table, "protocol": base["protocol"] | protocol}
    for part in ("methods", "attacks"):
        entries, theirs = _table(whole.get(part, {}), f"[{part}]"), base.get(part, {})
        whole[part] = {
            name: _beside(entries, theirs[check_name(name, theirs, f"an empty table of [{part}]")])
            if entry == {}
            else entry
            for name, entry in entries.items()
        }
    return {key: value for key, value in whole.items() if key != "base"}


def _about(base: Mapping[str, Any], chosen: Any) -> dict[str, Any]:
    """What an experiment says of some datasets, without its published numbers."""
    chosen = chosen if isinstance(chosen, list) else []
    protocol, methods = dict(base["protocol"]), {}
    if "largest_component" in protocol:
        protocol["largest_component"] = [one for one in protocol["largest_component"] if one in chosen]
    for name, method in base["methods"].items():
        only = [one for one in method.get("datasets", chosen) if one in chosen]
        if only:
            on = {one: settings for one, settings in method.get("on", {}).items() if one in chosen}
            methods[name] = method | {"on": on} | ({"datasets": only} if "datasets" in method else {})
    methods = {name: _beside(methods, method) for name, method in methods.items()}
    said = {key: value for key, value in base.items() if key not in ("published", "seconds")}
    return said | {"protocol": protocol, "methods": methods}


def _beside(methods: Mapping[str, Any], method: dict[str, Any]) -> dict[str, Any]:
    """A method, compared only with methods that are there."""
    over = [other for other in method.get("gain_over", []) if other in methods]
    rest = {key: value for key, value in method.items() if key != "gain_over"}
    return rest | ({"gain_over": over} if over else {})


def _packaged(source: str) -> str:
    """The text of an experiment that comes with the package."""
    name = check_name(source, names(), "an experiment that is not a .toml file")
    return (files("nodecopy.experiments") / "configs" / f"{name}.toml").read_text(encoding="utf-8")


def _protocol(table: Mapping[str, Any], attackers: tuple[Attacker, ...]) -> Protocol:
    """Nodes of graphs or interactions, as the first dataset tells, or samples of graphs, if there are any."""
    where = "[protocol]"
    if "samples" in table:
        return _sampling(table, attackers)
    first = table.get("datasets")
    if isinstance(first, list) and first and first[0] in _datasets("interactions"):
        return _dealing(table, attackers)
    required = ("datasets", "labels", "trials", "validation", "test", *(["victims"] if attackers else []))
    _keys(table, where, required, ("largest_component", "without_test_edges", "told", "scores"))
    chosen = _list(table["datasets"], f"datasets of {where}")
    scarce, told = _flag(table, "without_test_edges", where, False), _flag(table, "told", where, True)
    labels = _list(table["labels"], f"labels of {where}")
    trials, validation, test, *victims = (
        check_integer(table[key], f"{key} of {where}", low=1) for key in required[2:]
    )
    scores = _list(table.get("scores", ["accuracy"]), f"scores of {where}")
    return Protocol(
        tuple(check_name(name, _datasets("graph"), f"datasets of {where}") for name in chosen),
        tuple(check_integer(number, f"labels of {where}", low=1) for number in labels),
        trials,
        validation,
        test,
        _largest(table, chosen),
        scarce,
        attackers,
        sum(victims),
        told=told,
        scores=tuple(check_name(score, SCORES, f"scores of {where}") for score in scores),
    )


def _sampling(table: Mapping[str, Any], attackers: tuple[Attacker, ...]) -> Protocol:
    """The protocol of graph models."""
    where = "[protocol]"
    if attackers:
        raise InputError("[attacks] must be left out where graphs are sampled.")
    _keys(table, where, ("datasets", "trials", "samples", "reference"), ("largest_component", "scores"))
    chosen = _list(table["datasets"], f"datasets of {where}")
    scores = _list(table.get("scores", list(TABLE_1)), f"scores of {where}")
    return Protocol(
        tuple(check_name(name, _datasets("graph"), f"datasets of {where}") for name in chosen),
        (),
        check_integer(table["trials"], f"trials of {where}", low=1),
        0,
        0,
        _largest(table, chosen),
        scores=tuple(check_name(score, STATISTICS, f"scores of {where}") for score in scores),
        samples=check_integer(table["samples"], f"samples of {where}", low=1),
        reference=_text(table, "reference", where),
    )


def _largest(table: Mapping[str, Any], chosen: list[str]) -> tuple[str, ...]:
    """The datasets of which only the largest component counts."""
    largest = table.get("largest_component", [])
    if not isinstance(largest, list):
        raise InputError(f"largest_component of [protocol] must be a list of datasets; got {largest!r}.")
    return tuple(check_name(name, chosen, "largest_component of [protocol]") for name in largest)


def _dealing(table: Mapping[str, Any], attackers: tuple[Attacker, ...]) -> Protocol:
    """The protocol of recommenders."""
    where = "[protocol]"
    if attackers:
        raise InputError("[attacks] must be left out where the datasets hold interactions.")
    _keys(table, where, ("datasets", "trials", "validation", "test"), ("scores",))
    chosen = _list(table["datasets"], f"datasets of {where}")
    validation, test = (
        check_real(table[key], f"{key} of {where}", low=0.0, high=1.0) for key in ("validation", "test")
    )
    if 0 in (validation, test) or validation + test >= 1:
        got = f"{validation:g} and {test:g}"
        raise InputError(f"validation and test of {where} must be above 0 and below 1 together; got {got}.")
    scores = _list(table.get("scores", list(RANKING_SCORES)), f"scores of {where}")
    known = _datasets("interactions")
    return Protocol(
        tuple(check_name(name, known, f"datasets of {where}") for name in chosen),
        (),
        check_integer(table["trials"], f"trials of {where}", low=1),
        validation,
        test,
        scores=tuple(check_name(score, RANKING_SCORES, f"scores of {where}") for score in scores),
    )


def _datasets(kind: str) -> list[str]:
    return [name for name in datasets.names() if datasets.describe(name).kind == kind]


def _attacker(name: str, table: Mapping[str, Any]) -> Attacker:
    where = f"[attacks.{name}]"
    _named(name, "name of an attack")
    _keys(table, where, ("title",), ("class", "settings", "budget"))
    settings = _table(table.get("settings", {}), f"settings of {where}")
    title, path = _text(table, "title", where), _class_path(table, where)
    return Attacker(name, title, path, settings, table.get("budget"))


def _method(name: str, table: Mapping[str, Any], protocol: Protocol) -> Method:
    where = f"[methods.{name}]"
    _named(name, "name of a method")
    _keys(table, where, ("title",), ("class", "settings", "on", "gain_over", "search", "datasets"))
    on = _table(table.get("on", {}), f"on of {where}")
    for dataset, settings in on.items():
        check_name(dataset, protocol.datasets, f"on of {where}")
        _table(settings, f"on.{dataset} of {where}")
    settings = _table(table.get("settings", {}), f"settings of {where}")
    others = tuple(_list(table["gain_over"], f"gain_over of {where}")) if "gain_over" in table else ()
    search = _list(table["search"], f"search of {where}") if "search" in table else []
    if search and protocol.labels:
        raise InputError(f"search of {where} must be left out: classifiers have their settings.")
    if protocol.samples and (others or search):
        raise InputError(
            f"{where} must have no gain_over and no search: no statistic is the better for that."
        )
    choices = tuple(_table(one, f"search of {where}") for one in search)
    only = _list(table["datasets"], f"datasets of {where}") if "datasets" in table else []
    return Method(
        name,
        _text(table, "title", where),
        _class_path(table, where),
        settings,
        on,
        others,
        choices,
        tuple(check_name(dataset, protocol.datasets, f"datasets of {where}") for dataset in only),
    )


def _published(
    table: Mapping[str, Any], protocol: Protocol, methods: Iterable[Method]
) -> dict[Place, Published]:
    found = {}
    for dataset, rows in table.items():
        check_name(dataset, protocol.datasets, "dataset of [published]")
        for method, entries in _table(rows, f"[published.{dataset}]").items():
            where = f"{method} of [published.{dataset}]"
            check_name(method, [one.name for one in methods], f"method of [published.{dataset}]")
            columns = protocol.columns
            if not isinstance(entries, list) or len(entries) != len(columns):
                raise InputError(
                    f"{where} must hold one entry per column, {len(columns)} in all; got {entries!r}."
                )
            for column, entry in zip(columns, entries, strict=True):
                if entry == "-":  # nothing was printed
                    continue
                read = _statistic if protocol.samples else _spread
                found[dataset, column, method] = read(entry, where)
    return found


def _spread(entry: Any, where: str) -> Published:
    printed = PRINTED.fullmatch(entry) if isinstance(entry, str) else None
    if printed is None:
        raise InputError(f"{where} must hold entries such as '70.0±3.7' or '-'; got {entry!r}.")
    return Published(*map(float, printed.groups()))


def _statistic(entry: Any, where: str) -> Published:
    printed = STATISTIC.fullmatch(entry) if isinstance(entry, str) else None
    if printed is None:
        raise InputError(f"{where} must hold entries such as '3.89', '1.43e3' or '-'; got {entry!r}.")
    digits, exponent = len(printed[1] or ""), int(printed[2] or 0)
    return Published(float(entry), None, 0.5 * 10.0 ** (exponent - digits))


def _timing(table: Mapping[str, Any], protocol: Protocol, methods: Iterable[Method]) -> Timing:
    where = "[seconds]"
    _keys(table, where, ("over", "labels", "trials", "published"))
    names = [one.name for one in methods]
    seconds = _table(table["published"], "published of [seconds]")
    if table["labels"] not in protocol.labels:
        raise InputError(
            f"labels of {where} must be one of {', '.join(map(str, protocol.labels))}; got {table['labels']}."
        )
    return Timing(
        check_name(_text(table, "over", where), names, f"over of {where}"),
        table["labels"],
        check_integer(table["trials"], f"trials of {where}", low=1),
        {
            check_name(name, names, f"published of {where}"): check_real(one, f"{name} of {where}", low=0.0)
            for name, one in seconds.items()
        },
    )


def _keys(
    table: Mapping[str, Any], where: str, required: tuple[str, ...], optional: tuple[str, ...] = ()
) -> None:
    for key in table:
        check_name(key, required + optional, f"key of {where}")
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


def _flag(table: Mapping[str, Any], key: str, where: str, default: bool) -> bool:
    value = table.get(key, default)
    if not isinstance(value, bool):
        raise InputError(f"{key} of {where} must be true or false; got {value!r}.")
    return value


def _class_path(table: Mapping[str, Any], where: str) -> str:
    path = table.get("class", "")
    if "class" in table and not (isinstance(path, str) and CLASS_PATH.fullmatch(path)):
        raise InputError(f"class of {where} must read module.Class; got {path!r}.")
    package = str(path).partition(".")[0]
    if package and package not in sys.modules and find_spec(package) is None:
        raise InputError(f"class of {where} must be importable; got {path}, and there is no {package}.")
    return str(path)


def _text(table: Mapping[str, Any], key: str, where: str) -> str:
    return _said(table[key], f"{key} of {where}")


def _said(value: Any, where: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise InputError(f"{where} must be a text; got {value!r}.")
    return value


def _named(name: str, what: str) -> None:
    """Names become folders of the store, so they must be plain."""
    if not NAME.fullmatch(name):
        raise InputError(f"{what} must be of lower-case letters, digits and single -, _ or .; got {name!r}.")
