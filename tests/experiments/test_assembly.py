from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from nodecopy.errors import InputError, MissingExtraError
from nodecopy.experiments.spec import (
    _parameter_names,
    _public_path,
    check_settings,
    instantiate,
    merge_settings,
    use_public_names,
)

HERE = "tests.experiments.test_assembly"


@dataclass
class Box:
    content: Any = None
    device: str = "none"


@dataclass(frozen=True)
class Stone:
    weight: float = 1.0


class Anything:
    def __init__(self, **settings: Any) -> None:
        self.settings = settings


def test_tables_become_objects_on_the_device() -> None:
    inner = {"class": f"{HERE}.Box", "content": {"class": f"{HERE}.Stone", "weight": 2.0}}
    settings = {"content": inner}
    box = instantiate(f"{HERE}.Box", settings, "[methods.boxes]", "cuda")
    assert box == Box(Box(Stone(2.0), "cuda"), "cuda")
    assert settings["content"] is inner
    assert "content" in inner
    assert instantiate(f"{HERE}.Box", {"device": "cpu"}, "[methods.boxes]", "cuda").device == "cpu"


def test_a_use_gets_its_class_and_settings() -> None:
    calls: list[Any] = []

    def paint(*given: Any) -> str:
        calls.append(given)
        return "paint"

    inner = {"class": "red", "use": "painted", "twice": True}
    settings = {"content": {"class": f"{HERE}.Box", "content": inner}}
    box = instantiate(f"{HERE}.Box", settings, "[methods.boxes]", "cpu", paint)
    assert box.content.content == "paint"
    assert calls == [("red", {"twice": True})]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"content": {"weight": 2}}, r"content in \[methods.boxes\] must have a class; got {'weight': 2}"),
        ({"content": {"class": f"{HERE}.Bag"}}, r"class of content in \[methods.boxes\] must be importable"),
        ({"contents": 2}, r"a setting of \[methods.boxes\] .*got 'contents'. Did you mean content"),
        (
            {"content": {"class": f"{HERE}.Stone", "wait": 2}},
            r"a setting of content in \[methods.boxes\] .*must be one of weight; got 'wait'",
        ),
        (
            {"content": {"class": f"{HERE}.Stone", "use": "heated"}},
            r"use of content in \[methods.boxes\] must be one of painted; got 'heated'",
        ),
    ],
)
def test_settings_are_compared_with_parameters(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        check_settings(f"{HERE}.Box", settings, "[methods.boxes]", ("painted",))


def test_settings_that_are_right_pass() -> None:
    check_settings(
        f"{HERE}.Box", {"content": {"class": f"{HERE}.Stone", "use": "painted"}}, "x", ("painted",)
    )
    check_settings(f"{HERE}.Anything", {"whatever": 1}, "x")
    with pytest.raises(InputError, match="content in x must have no use; got 'painted'"):
        check_settings(f"{HERE}.Box", {"content": {"class": f"{HERE}.Stone", "use": "painted"}}, "x")


def test_a_class_without_its_optional_package_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    error = InputError("class of x must be importable")
    error.__cause__ = ImportError("No module named 'torch'", name="torch")

    def fail(*given: Any) -> None:
        raise error

    monkeypatch.setattr("nodecopy.experiments.spec.import_class", fail)
    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    for cached in (_parameter_names, _public_path):
        cached.cache_clear()
    check_settings("nodecopy.classify.GCN", {"misspelt": 1}, "x")
    assert use_public_names({"class": "nodecopy.classify.GCN"}) == {"class": "nodecopy.classify.GCN"}
    with pytest.raises(MissingExtraError, match=r"x needs torch.*\[torch\]"):
        instantiate("nodecopy.classify.GCN", {}, "x", "cpu")
    for cached in (_parameter_names, _public_path):
        cached.cache_clear()


def test_settings_that_the_constructor_refuses_are_named() -> None:
    with pytest.raises(InputError, match=r"settings of x must be keywords of .*Stone; got {'size': 2}"):
        instantiate(f"{HERE}.Stone", {"size": 2}, "x", "cpu")


def test_tables_are_merged_not_replaced() -> None:
    assert merge_settings({"a": {"b": 1}, "c": {"d": 1}}, {"a": 2, "c": {"e": {}}}) == {
        "a": 2,
        "c": {"d": 1, "e": {}},
    }


def test_public_names() -> None:
    settings = {"donors": {"class": "nodecopy.copying.donors.SameLabel"}, "choices": ({"class": ""}, 3)}
    assert use_public_names(settings) == {
        "donors": {"class": "nodecopy.SameLabel"},
        "choices": [{"class": ""}, 3],
    }
