"""Names lead to objects; unknown names lead to the nearest ones."""

from __future__ import annotations

import sys

import pytest

from nodecopy._core.imports import EXTRA_OF, check_name, import_by_name, import_optional
from nodecopy.errors import InputError, MissingExtraError
from nodecopy.graph import Graph

PATHS = {"graph": "nodecopy.graph.Graph", "grape": "nowhere:nothing", "tree": "nowhere:nothing"}


def test_names() -> None:
    assert import_by_name("graph", PATHS, "thing") is Graph
    with pytest.raises(
        InputError, match=r"thing must be one of grape, graph, tree; got 'graf'. Did you mean gra"
    ):
        check_name("graf", PATHS, "thing")
    with pytest.raises(InputError, match=r"got 'zzz'.$"):
        import_by_name("zzz", PATHS, "thing")


def test_missing_extras(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert EXTRA_OF["pandas"] == "tables"
    with pytest.raises(MissingExtraError, match=r"drawing needs pandas.*\[tables\]") as error:
        import_optional("pandas", "drawing")
    assert isinstance(error.value, ImportError)
    assert import_optional("json", "reading").loads("1") == 1


def test_without_allowed_names_the_name_must_be_left_out() -> None:
    with pytest.raises(InputError, match=r"gain_over must be left out: there is nothing to choose from; got"):
        check_name("gcn", [], "gain_over")
