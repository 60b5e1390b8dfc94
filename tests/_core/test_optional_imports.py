from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from nodecopy._core import imports as optional_imports
from nodecopy._core.imports import EXTRA_OF, OptionalModule, import_optional, install_command
from nodecopy.errors import MissingExtraError


def test_an_installed_module_is_returned() -> None:
    assert import_optional("sklearn.base", "cloning") is sys.modules["sklearn.base"]


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
