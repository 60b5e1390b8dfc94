from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import nodecopy
from nodecopy._core.imports import EXTRA_OF, check_name, import_member, import_optional, lazy_exports
from nodecopy.errors import InputError, MissingExtraError
from nodecopy.graph import Graph


@pytest.mark.parametrize("package", sorted(EXTRA_OF))
def test_the_error_names_purpose_package_and_extra(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)  # as if it were not installed
    message = rf"reading needs {package}, which is not installed: pip install .*\[{EXTRA_OF[package]}\]'\."
    with pytest.raises(MissingExtraError, match=message):
        import_optional(package, "reading")


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


def test_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match=r"got 'graf'. Did you mean gra"):
        check_name("graf", ["graph", "grape", "tree"], "thing")
    with pytest.raises(InputError, match=r"got 'zzz'.$"):
        check_name("zzz", ["graph"], "thing")
    (tmp_path / "broken_module.py").write_text("1 / 0")
    monkeypatch.syspath_prepend(tmp_path)
    assert import_member("nodecopy.graph.Graph", "thing") is Graph
    for path, reason in {
        "nodecopy.graph.Grap": "Did you mean Graph",
        "nodecopy.grap.Graph": "No module named",
        "Graph": "Empty module name",
        ".Graph": "Empty module name",
        "broken_module.Graph": "division by zero",
    }.items():
        with pytest.raises(InputError, match=f"thing must be importable; got {path} .*{reason}"):
            import_member(path, "thing")
