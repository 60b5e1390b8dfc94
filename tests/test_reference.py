"""Every object in the reference exists and has an example; every public name is in the reference."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

import pytest

import nodecopy

REFERENCE = (Path(__file__).parents[1] / "docs" / "api.md").read_text(encoding="utf-8")
NAMES = re.findall(r"^   (nodecopy\.[\w.]+)$", REFERENCE, re.MULTILINE)
PACKAGES = ("attacks", "classify", "datasets", "defend", "generators", "metrics", "recommend")
pytest.importorskip("torch")


def found(name: str) -> Any:
    module, _, attribute = name.rpartition(".")
    return getattr(importlib.import_module(module), attribute)


@pytest.mark.parametrize("name", NAMES)
def test_an_example_for_each(name: str) -> None:
    assert ">>>" in (found(name).__doc__ or ""), f"{name} has no example"


def test_nothing_public_is_left_out() -> None:
    public = {f"nodecopy.{name}" for name in nodecopy.__all__ if name != "datasets"}
    for package in PACKAGES:
        module = importlib.import_module(f"nodecopy.{package}")
        names = getattr(module, "__all__", None) or [
            name
            for name, value in vars(module).items()
            if getattr(value, "__module__", "").startswith("nodecopy")
        ]
        public |= {f"{module.__name__}.{name}" for name in names}
    assert public - set(NAMES) == set()
