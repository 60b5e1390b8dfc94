"""Parametrisation of the contracts by class attributes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import pytest


def parametrise(metafunc: pytest.Metafunc, **arguments: Collection[Any]) -> None:
    """Parametrise the arguments of a test by objects, once per class; a mapping holds their names."""
    for name, objects in arguments.items():
        if name in metafunc.fixturenames:
            if not isinstance(objects, Mapping):
                objects = {f"{type(value).__name__}-{number}": value for number, value in enumerate(objects)}
            metafunc.parametrize(name, list(objects.values()), ids=list(objects), scope="class")
