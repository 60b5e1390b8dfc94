"""Names lead to objects; unknown names lead to the nearest ones."""

from __future__ import annotations

import sys

import pytest

from nodecopy.errors import InputError, MissingExtraError
from nodecopy.extras import EXTRA_OF, optional
from nodecopy.graph import Graph
from nodecopy.registry import known, resolve

PATHS = {"graph": "nodecopy.graph:Graph", "grape": "nowhere:nothing", "tree": "nowhere:nothing"}


def test_names() -> None:
    assert resolve("graph", PATHS, "thing") is Graph
    with pytest.raises(
        InputError, match=r"thing must be one of grape, graph, tree; got 'graf'. Did you mean gra"
    ):
        known("graf", PATHS, "thing")
    with pytest.raises(InputError, match=r"got 'zzz'.$"):
        resolve("zzz", PATHS, "thing")


def test_missing_extras(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert EXTRA_OF["pandas"] == "tables"
    with pytest.raises(MissingExtraError, match=r"drawing needs pandas.*nodecopy\[tables\]") as error:
        optional("pandas", "drawing")
    assert isinstance(error.value, ImportError)
    assert optional("json", "reading").loads("1") == 1
