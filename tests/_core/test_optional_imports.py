from __future__ import annotations

import sys
from typing import Any

import pytest

from nodecopy._core.optional_imports import EXTRA_OF, OptionalModule, import_optional
from nodecopy.errors import MissingExtraError


def test_an_installed_module_is_returned() -> None:
    assert import_optional("sklearn.base", "cloning") is sys.modules["sklearn.base"]


@pytest.mark.parametrize("package", sorted(EXTRA_OF))
def test_the_error_names_purpose_package_and_extra(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)  # as if it were not installed
    message = (
        rf"reading needs {package}, which is not installed: pip install 'nodecopy\[{EXTRA_OF[package]}\]'"
    )
    with pytest.raises(MissingExtraError, match=message):
        import_optional(package, "reading")


def test_an_optional_module_is_imported_where_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    module: Any = OptionalModule("pandas", "reading")
    assert module.DataFrame is import_optional("pandas", "reading").DataFrame
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtraError, match="reading needs pandas"):
        module.DataFrame  # noqa: B018
