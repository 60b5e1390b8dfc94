from __future__ import annotations

import subprocess
import sys

import pytest

import nodecopy
from nodecopy._core.lazy_exports import lazy_exports


def test_names_are_imported_from_their_modules() -> None:
    get, names = lazy_exports("nodecopy", {"Graph": "graph", "errors": "errors"})
    assert get("Graph") is nodecopy.Graph
    assert get("errors").__name__ == "nodecopy.errors"
    assert names() == ["Graph", "errors"]
    with pytest.raises(AttributeError, match="module 'nodecopy' has no attribute 'Missing'"):
        get("Missing")


def test_a_module_is_imported_on_first_use() -> None:
    code = """
import sys, nodecopy
assert "nodecopy.copying" not in sys.modules
nodecopy.NodeCopying
assert "nodecopy.copying" in sys.modules
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
