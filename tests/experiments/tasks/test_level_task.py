"""Tests through the runner, on networks of null models."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodecopy.errors import InputError
from nodecopy.experiments import config as toml
from nodecopy.experiments import rendering
from nodecopy.experiments.runner import run
from nodecopy.experiments.spec import Experiment
from nodecopy.experiments.store import Store
from nodecopy.experiments.summary import summarise

TOML = """
title = "Level"
task = "level"
[protocol]
datasets = ["configuration", "planted-communities"]
nodes = 60
degree = 20
samples = 39
networks = 10
trials = 4
scores = ["transitivity", "modularity"]
[methods.configuration]
title = "Configuration"
class = "nodecopy.generators.ConfigurationModel"
"""


def load(text: str, folder: Path) -> Experiment:
    path = folder / "own.toml"
    path.write_text(text)
    return toml.load(str(path))


def test_shares_of_rejections(tmp_path: Path) -> None:
    experiment, store = load(TOML, tmp_path), Store(tmp_path / "store")
    run(experiment, store, seed=0, workers=1)
    results = summarise(experiment, store, seed=0)
    shares = {(dataset, column.score): cell.mean for (dataset, column, _), cell in results.cells.items()}
    # 40 networks under a true null: at most 7 rejections with probability 0.998.
    assert (
        max(shares["configuration", f"{score} rejected"] or 0 for score in ("transitivity", "modularity"))
        <= 17.5
    )
    assert "Level" in rendering.render_markdown(results)


def test_unknown_networks_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"datasets of \[protocol\] must be one of .*; got 'karate'"):
        load(TOML.replace('"configuration", "pl', '"karate", "pl'), tmp_path)
