from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import nodecopy
from nodecopy._core import imports as optional_imports
from nodecopy._core.imports import (
    EXTRA_OF,
    OptionalModule,
    check_name,
    import_by_name,
    import_optional,
    install_command,
    lazy_exports,
)
from nodecopy.errors import InputError, MissingExtraError
from nodecopy.graph import Graph


@pytest.mark.parametrize("package", sorted(EXTRA_OF))
def test_the_error_names_purpose_package_and_extra(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)  # as if it were not installed
    message = rf"reading needs {package}, which is not installed: pip install .*\[{EXTRA_OF[package]}\]'\."
    with pytest.raises(MissingExtraError, match=message):
        import_optional(package, "reading")


@pytest.mark.parametrize(
    ("origin", "command"),
    [
        (None, "pip install 'nodecopy[torch]'"),
        ({"url": "https://example.org/nodecopy.git"}, "pip install 'nodecopy[torch]'"),
        ({"url": "file:///nowhere/nodecopy.whl"}, "pip install 'nodecopy[torch]'"),
        ({"dir_info": {}}, "pip install '{folder}[torch]'"),
        ({"dir_info": {"editable": True}}, "pip install -e '{folder}[torch]'"),
    ],
)
def test_the_command_installs_from_the_checkout_if_there_is_one(
    origin: dict[str, Any] | None, command: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "pyproject.toml").touch()
    text = None if origin is None else json.dumps({"url": tmp_path.as_uri()} | origin)
    monkeypatch.setattr(optional_imports, "distribution", lambda _: SimpleNamespace(read_text=lambda _: text))
    assert install_command("torch") == command.format(folder=tmp_path)
    monkeypatch.chdir(tmp_path)
    assert install_command("torch") == command.format(folder=".")


def test_an_optional_module_is_imported_where_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    module: Any = OptionalModule("pandas", "reading")
    assert module.DataFrame is import_optional("pandas", "reading").DataFrame
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtraError, match="reading needs pandas"):
        module.DataFrame  # noqa: B018


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


PATHS = {"graph": "nodecopy.graph.Graph", "grape": "nowhere:nothing", "tree": "nowhere:nothing"}


def test_names() -> None:
    assert import_by_name("graph", PATHS, "thing") is Graph
    with pytest.raises(
        InputError, match=r"thing must be one of grape, graph, tree; got 'graf'. Did you mean gra"
    ):
        check_name("graf", PATHS, "thing")
    with pytest.raises(InputError, match=r"got 'zzz'.$"):
        import_by_name("zzz", PATHS, "thing")
