"""Every object in the reference exists and has an example; every public object is in the reference."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

DOCS = Path(__file__).parents[1] / "docs"
REFERENCE = (DOCS / "api.md").read_text(encoding="utf-8")
NAMES = re.findall(r"^   (nodecopy\.[\w.]+)$", REFERENCE, re.MULTILINE)
PACKAGES = (
    "attacks",
    "classify",
    "datasets",
    "defend",
    "edge_tables",
    "generators",
    "inference",
    "metrics",
    "recommend",
)
pytest.importorskip("torch")


def import_object(name: str) -> Any:
    module, _, attribute = name.rpartition(".")
    return getattr(importlib.import_module(module), attribute)


def public_names(package: str) -> set[str]:
    """Return the dotted names of the public objects of a package, without modules."""
    module = importlib.import_module(package)
    names = getattr(module, "__all__", None) or [
        name
        for name, value in vars(module).items()
        if getattr(value, "__module__", "").startswith("nodecopy")
    ]
    return {f"{package}.{name}" for name in names if not isinstance(getattr(module, name), ModuleType)}


@pytest.mark.parametrize("name", NAMES)
def test_object_has_an_example(name: str) -> None:
    assert ">>>" in (import_object(name).__doc__ or ""), f"{name} has no example"


@pytest.mark.parametrize("name", [name for name in NAMES if hasattr(import_object(name), "parameter_names")])
def test_every_parameter_is_described_with_its_default(name: str) -> None:
    """In the reference, also where the docstring refers to a base class."""
    from docs.reference_pages import complete_parameters, list_parameters

    described = list_parameters(import_object(name))
    assert [parameter for parameter, text in described.items() if not text] == []
    lines = inspect.getdoc(import_object(name)).splitlines()  # type: ignore[union-attr]
    complete_parameters(None, "class", name, import_object(name), None, lines)
    for parameter in described:
        assert any(re.fullmatch(rf"{parameter}( : default .*)?", line) for line in lines), parameter


def test_every_public_object_is_listed() -> None:
    names = public_names("nodecopy").union(*(public_names(f"nodecopy.{package}") for package in PACKAGES))
    listed = {id(import_object(name)) for name in NAMES}
    assert {name for name in names if id(import_object(name)) not in listed} == set()
