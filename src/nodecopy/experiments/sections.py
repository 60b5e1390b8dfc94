"""Read the sections of a TOML file: a section becomes a dataclass whose fields say how their keys are read.

A schema library would not be shorter here: the messages name the key, its section and the nearest allowed
word.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import MISSING, field, fields
from functools import partial
from typing import Any, TypeAlias, TypeVar

from nodecopy._core.checks import check_integer
from nodecopy._core.imports import check_name
from nodecopy.errors import InputError

NAME = re.compile(r"[a-z0-9]+([-_.][a-z0-9]+)*")
CLASS_PATH = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+")
SectionClass = TypeVar("SectionClass")
Reader: TypeAlias = Callable[[Any, str], Any]
"""Return the value of a key, checked; the second argument says where it stands."""


def make_reader(allowed: str, is_allowed: Callable[[Any], Any]) -> Reader:
    """Return a reader of values; errors say what is allowed."""

    def read(value: Any, where: str) -> Any:
        if not is_allowed(value):
            raise InputError(f"{where} must be {allowed}; got {value!r}.")
        return value

    return read


read_text = make_reader("a text", lambda value: isinstance(value, str) and value.strip())
read_flag = make_reader("true or false", lambda value: isinstance(value, bool))
read_count = partial(check_integer, low=1)
read_budget = make_reader(
    'an integer of at least 0, a share such as 0.5 or "degree"',
    lambda value: (
        value == "degree" or (type(value) is int and value >= 0) or (type(value) is float and 0 <= value <= 1)
    ),
)
read_share = make_reader(
    "a number from 0 to 1", lambda value: type(value) in (int, float) and 0 <= value <= 1
)
read_mapping = make_reader("a section of keys and values", lambda value: isinstance(value, dict))
read_class = make_reader(
    "a path such as module.Class", lambda value: isinstance(value, str) and CLASS_PATH.fullmatch(value)
)
read_name = make_reader(
    "of lower-case letters, digits and single -, _ or .", NAME.fullmatch
)  # names a folder
read_list = make_reader(
    "a list of different entries, at least one",
    lambda value: isinstance(value, list) and value and len(set(map(str, value))) == len(value),
)


def make_list_reader(read: Reader, *, may_be_empty: bool = False) -> Reader:
    """Return a reader of lists whose entries are read by ``read``."""

    def read_entries(value: Any, where: str) -> tuple[Any, ...]:
        entries = [] if may_be_empty and value == [] else read_list(value, where)
        return tuple(read(entry, where) for entry in entries)

    return read_entries


def make_choice_reader(names: Iterable[str]) -> Reader:
    """Return a reader of names out of ``names``."""
    return lambda value, where: check_name(value, names, where)


def expand_budgets(attacks: Any) -> dict[str, Any]:
    """Return sections of attacks: one with a list of ``budgets`` becomes one ``NAME-BUDGET`` for each.

    >>> expand_budgets({"fga": {"title": "FGA", "budgets": [1, "degree"]}})
    {'fga-1': {'title': 'FGA, 1', 'budget': 1}, 'fga-degree': {'title': 'FGA, degree', 'budget': 'degree'}}
    """
    expanded: dict[str, Any] = {}
    for name, section in read_mapping(attacks, "[attacks]").items():
        where, sections = f"[attacks.{name}]", {name: section}
        if isinstance(section, dict) and "budgets" in section:
            if "budget" in section:
                raise InputError(f"{where} must have a budget, or a list of budgets; got both.")
            rest = {key: value for key, value in section.items() if key != "budgets"}
            sections = {}
            for entry in read_list(section["budgets"], f"budgets of {where}"):
                budget = read_budget(entry, f"each of budgets of {where}")
                title = {"title": f"{rest['title']}, {budget}"} if "title" in rest else {}
                sections[f"{name}-{budget}"] = rest | title | {"budget": budget}
        for twice in expanded.keys() & sections.keys():
            raise InputError(f"names of attacks must be unique; got {twice} more than once, also by budgets.")
        expanded |= sections
    return expanded


def key(read: Reader, name: str = "", **options: Any) -> Any:
    """Return a dataclass field that is a key of a section, under its own name or another.

    ``options``, such as ``default``, go to :func:`dataclasses.field`.
    """
    return field(metadata={"read": read, "key": name}, **options)


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


def check_keys(
    section: dict[str, Any], where: str, allowed: Iterable[str], required: Iterable[str] = ()
) -> None:
    """Check that a section has the keys that it must have, and no others than it may have."""
    for name in section:
        check_name(name, allowed, f"key of {where}")
    for name in required:
        if name not in section:
            raise InputError(f"{where} must have {name}; it has {', '.join(section) or 'nothing'}.")
