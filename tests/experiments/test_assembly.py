from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from nodecopy.errors import InputError
from nodecopy.experiments import toml
from nodecopy.experiments.assembly import assembled
from nodecopy.experiments.tasks.node_classification import classifier_of
from tests.experiments.fakes import TOML

HERE = "tests.experiments.test_assembly"


@dataclass
class Box:
    content: Any = None
    device: str = "none"


@dataclass(frozen=True)
class Stone:
    weight: float = 1.0


def test_tables_become_objects_and_learn_the_device() -> None:
    inner = {"class": f"{HERE}.Box", "content": {"class": f"{HERE}.Stone", "weight": 2.0}}
    settings = {"content": inner}
    box = assembled("boxes", f"{HERE}.Box", settings, "cuda")
    assert box == Box(Box(Stone(2.0), "cuda"), "cuda")
    assert settings["content"] is inner
    assert "content" in inner


def test_makers_get_path_and_settings() -> None:
    told: list[Any] = []

    def painted(path: str, settings: Any) -> str:
        told.append((path, settings))
        return "paint"

    settings = {"content": {"class": f"{HERE}.Box", "content": {"painted": "red", "twice": True}}}
    assert assembled("boxes", f"{HERE}.Box", settings, "cpu", painted=painted).content.content == "paint"
    assert told == [("red", {"twice": True})]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"content": {"weight": 2}}, r"\[methods.boxes\] must have class or painted; got {'weight': 2}"),
        ({"content": {"class": f"{HERE}.Bag"}}, r"class of \[methods.boxes\] must be importable"),
        ({"size": 2}, r"settings of \[methods.boxes\] must be keywords of"),
    ],
)
def test_what_cannot_be_made_is_named(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        assembled("boxes", f"{HERE}.Box", settings, "cpu", painted=lambda path, others: None)


def test_a_classifier_takes_a_graph_model() -> None:
    pytest.importorskip("torch")
    text = (
        TOML.format(pause=0, log="")
        + """
[methods.inner]
title = "Bayesian GCN"
class = "nodecopy.classify.bayesian.BayesianGCN"
[methods.inner.settings.graph_model]
class = "nodecopy.NodeCopying"
law = { class = "nodecopy.NearestNeighbours", n_neighbours = 3 }
"""
    )
    cell = next(one for one in toml.parse(text, "fake").cells(0) if one.method == "inner")
    classifier = classifier_of(cell, "cpu")
    assert classifier.graph_model.law.n_neighbours == 3
    assert classifier.device == "cpu"
