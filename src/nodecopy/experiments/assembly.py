"""Instantiate the class of a method with its settings, among which there may be objects.

A section ``{ class = "module.Class", ... }`` among settings stands for an object of that class with the other
keys as its settings. A key ``use`` in it asks the task for something made from such an object, for example
its embeddings.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, TypeAlias

from nodecopy._core.lookup import check_name, import_class, public_name
from nodecopy._core.optional_imports import EXTRA_OF, import_optional
from nodecopy.errors import InputError

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
        raise InputError(f"settings of {where} must be keywords of {path}; got {parts} ({error}).") from error
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
                raise InputError(f"{inner} must have a class; got {dict(value)}.")
            if "use" in value and not uses:
                raise InputError(f"{inner} must have no use; got {value['use']!r}.")
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
        raise InputError(f"class of {where} must be {family}; got {path}, which has no {missing[0]}().")


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
