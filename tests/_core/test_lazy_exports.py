from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import nodecopy
from nodecopy._core.imports import lazy_exports


def test_names_of_the_stub_are_imported_from_their_modules(tmp_path: Path) -> None:
    stub = "from nodecopy import errors as errors\nfrom nodecopy.graph import Graph as Graph\n\nsize: int\n"
    (tmp_path / "__init__.pyi").write_text(stub)
    get, names, public = lazy_exports("nodecopy", str(tmp_path / "__init__.py"))
    assert get("Graph") is nodecopy.Graph
    assert get("errors").__name__ == "nodecopy.errors"
    assert names() == public == ["Graph", "errors"]
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
