from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nodecopy.cli import demo
from nodecopy.errors import MissingExtraError
from tests.cli.conftest import Run
from tests.report.examples import sections_of


def missing(module: str, purpose: str) -> Any:
    raise MissingExtraError(f"{purpose} needs {module}")


@pytest.fixture
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two splits, one graph and one round, and networks that are hardly trained."""
    classifiers = pytest.importorskip("nodecopy.classify.networks")
    monkeypatch.setattr(demo, "N_SPLITS", 2)
    monkeypatch.setattr(demo, "N_GRAPHS", 1)
    monkeypatch.setattr(demo, "N_ROUNDS", 1)
    monkeypatch.setitem(classifiers.GCN.presets, "default", replace(classifiers.KIPF, n_epochs=5))


@pytest.mark.usefixtures("brief")
def test_the_demo_compares_classifies_and_draws(run: Run) -> None:
    pytest.importorskip("matplotlib")
    pytest.importorskip("sklearn")
    ran = run("demo", "--out", "demo")
    assert ran.code == 0
    assert "edge_homophily" in ran.out
    assert "Bayesian GCN" in ran.out
    assert "self-training" in ran.out
    assert "calibration error" in ran.out
    for name in ("samples.png", "uncertainty.png", "attack.png"):
        assert Path("demo", name).read_bytes().startswith(b"\x89PNG")
    sections = sections_of(Path("demo/report.html"))
    kinds = ["graphs", "statistics", "graphs", "classification", "attack", "recommendations"]
    assert [section["kind"] for section in sections] == kinds
    assert sections[3]["graph"] == sections[2]["title"]  # the table knows where its nodes are drawn
    assert Path("demo/report.html").stat().st_size < 500_000


@pytest.mark.usefixtures("brief")
def test_without_matplotlib_the_numbers_still_come(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sklearn")
    monkeypatch.setattr("nodecopy.report.plots.import_optional", missing)
    ran = run("demo")
    assert ran.code == 0
    assert "edge_homophily" in ran.out
    assert "Bayesian GCN" in ran.out
    assert ran.out.count("No figure: ") == 3
