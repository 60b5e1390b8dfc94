from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nodecopy.cli import demo
from nodecopy.errors import MissingExtraError
from tests.cli.conftest import Run


def missing(module: str, purpose: str) -> Any:
    raise MissingExtraError(f"{purpose} needs {module}")


@pytest.fixture
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two splits and one graph, and networks that are hardly trained."""
    base = pytest.importorskip("nodecopy.classify.networks")
    monkeypatch.setattr(demo, "N_SPLITS", 2)
    monkeypatch.setattr(demo, "N_GRAPHS", 1)
    short = {"kipf": base.recipe_for("gcn", "kipf", {"epochs": 5})}
    monkeypatch.setitem(base.PRESETS, "gcn", short)


@pytest.mark.usefixtures("brief")
def test_the_demo_compares_classifies_and_draws(run: Run) -> None:
    pytest.importorskip("matplotlib")
    pytest.importorskip("sklearn")
    ran = run("demo", "--out", "demo")
    assert ran.code == 0
    assert "edge_homophily" in ran.out
    assert "Bayesian GCN" in ran.out
    assert "calibration error" in ran.out
    for name in ("samples.png", "uncertainty.png", "attack.png"):
        assert Path("demo", name).read_bytes().startswith(b"\x89PNG")


@pytest.mark.usefixtures("brief")
def test_without_matplotlib_the_numbers_still_come(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sklearn")
    monkeypatch.setattr("nodecopy.report.pictures.optional", missing)
    monkeypatch.setattr("nodecopy.report.classification.optional", missing)
    monkeypatch.setattr("nodecopy.report.defence.optional", missing)
    ran = run("demo")
    assert ran.code == 0
    assert "edge_homophily" in ran.out
    assert "Bayesian GCN" in ran.out
    assert ran.out.count("No picture") == 3


def test_without_torch_there_is_no_classification(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nodecopy.cli.demo.optional", missing)
    ran = run("demo")
    assert ran.code == 0
    assert "edge_homophily" in ran.out
    assert "No classification: classification needs torch" in ran.out
