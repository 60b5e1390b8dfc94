"""Read the sections of a TOML file: a section becomes a dataclass whose fields say how their keys are read.

A schema library would not be shorter here: the messages name the key, its section and the nearest allowed
word.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, field, fields
from typing import Any, TypeAlias, TypeVar

from nodecopy._core.lookup import check_name
from nodecopy._core.validation import check_integer, check_real
from nodecopy.errors import InputError

NAME = re.compile(r"[a-z0-9]+([-_.][a-z0-9]+)*")
CLASS_PATH = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+")
Kind = TypeVar("Kind")
Reader: TypeAlias = Callable[[Any, str], Any]
"""Return the value of a key, checked; the second argument says where it stands."""


def key(read: Reader, name: str = "", **options: Any) -> Any:
    """Return a dataclass field that is a key of a section, under its own name or another.

    ``options``, such as ``default``, go to :func:`dataclasses.field`.
    """
    return field(metadata={"read": read, "key": name}, **options)


def read_section(kind: type[Kind], section: Any, where: str, **others: Any) -> Kind:
    """Make a ``kind`` from a section; ``others`` are the fields that are no keys."""
    content = read_table(section, where)
    entries = [entry for entry in fields(kind) if entry.metadata]  # type: ignore[arg-type]
    keys = {entry.metadata["key"] or entry.name: entry for entry in entries}
    check_keys(content, where, keys)
    for name, entry in keys.items():
        if name in content:
            others[entry.name] = entry.metadata["read"](content[name], f"{name} of {where}")
        elif entry.default is MISSING and entry.default_factory is MISSING:
            raise InputError(f"{where} must have {name}; it has {', '.join(content) or 'nothing'}.")
    return kind(**others)


def check_keys(section: Mapping[str, Any], where: str, allowed: Mapping[str, Any] | tuple[str, ...]) -> None:
    """Check that a section has no other keys than those allowed."""
    for name in section:
        check_name(name, allowed, f"key of {where}")


def read_table(value: Any, where: str) -> dict[str, Any]:
    """Return a table of keys and values."""
    if not isinstance(value, dict):
        raise InputError(f"{where} must be a table of keys and values; got {value!r}.")
    return value


def read_list(value: Any, where: str) -> list[Any]:
    """Return a list of different entries, at least one."""
    if not isinstance(value, list) or not value or len({str(entry) for entry in value}) < len(value):
        raise InputError(f"{where} must be a list of different entries, at least one; got {value!r}.")
    return value


def read_text(value: Any, where: str) -> str:
    """Return a text that is not empty."""
    if not isinstance(value, str) or not value.strip():
        raise InputError(f"{where} must be a text; got {value!r}.")
    return value


def read_name(value: str, where: str) -> str:
    """Return a name that can be a folder of the store."""
    if not NAME.fullmatch(value):
        allowed = "of lower-case letters, digits and single -, _ or ."
        raise InputError(f"{where} must be {allowed}; got {value!r}.")
    return value


def read_flag(value: Any, where: str) -> bool:
    """Return true or false."""
    if not isinstance(value, bool):
        raise InputError(f"{where} must be true or false; got {value!r}.")
    return value


def read_class(value: Any, where: str) -> str:
    """Return the dotted path of a class."""
    if not isinstance(value, str) or not CLASS_PATH.fullmatch(value):
        raise InputError(f"{where} must read module.Class; got {value!r}.")
    return value


def read_count(value: Any, where: str) -> int:
    """Return an integer of at least 1."""
    return check_integer(value, where, low=1)


def read_share(value: Any, where: str) -> float:
    """Return a number between 0 and 1."""
    return check_real(value, where, low=0.0, high=1.0)


def list_of(read: Reader, *, may_be_empty: bool = False) -> Reader:
    """Return a reader of lists whose entries are read by ``read``."""

    def read_entries(value: Any, where: str) -> tuple[Any, ...]:
        entries = [] if may_be_empty and value == [] else read_list(value, where)
        return tuple(read(entry, where) for entry in entries)

    return read_entries


def one_of(names: Mapping[str, Any]) -> Reader:
    """Return a reader of names out of ``names``."""
    return lambda value, where: check_name(value, names, where)
