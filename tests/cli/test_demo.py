from __future__ import annotations

from pathlib import Path

import pytest

from nodecopy.errors import MissingExtraError
from tests.cli.conftest import Run


def test_the_demo_prints_a_comparison_and_draws(run: Run) -> None:
    pytest.importorskip("matplotlib")
    ran = run("demo", "--out", "demo")
    assert ran.code == 0
    assert "edge_homophily" in ran.out
    assert Path("demo/samples.png").read_bytes().startswith(b"\x89PNG")


def test_without_the_extra_the_numbers_still_come(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(module: str, purpose: str) -> None:
        raise MissingExtraError(f"{purpose} needs {module}")

    monkeypatch.setattr("nodecopy.report.pictures.optional", missing)
    ran = run("demo")
    assert ran.code == 0
    assert "edge_homophily" in ran.out
    assert "No picture" in ran.out
