from __future__ import annotations

import re
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import pytest

import nodecopy
from nodecopy.cli import demo, doctor
from tests.cli.conftest import Run
from tests.report.examples import sections_of


def test_the_output_says_what_a_bug_report_needs(run: Run) -> None:
    ran = run("doctor").ok()
    assert re.search(rf"^nodecopy +{re.escape(nodecopy.__version__)} in ", ran.out, re.MULTILINE)
    for word in ("Python", "processor", "GPU", "numba", "torch", "NODECOPY_DATA", "karate"):
        assert word in ran.out
    assert ran.out.count("passed") == 2
    assert ran.err == "Paste the lines above into a bug report.\n"


def test_json(run: Run) -> None:
    about = run("doctor", "--json").json()
    assert about["system"]["numpy"] == version("numpy")
    assert about["extras"]["torch"]["present"] is True
    assert {"karate", "digits", "library"} <= set(about["data"]["present"])
    assert all(check["error"] is None for check in about["checks"].values())


def test_a_failed_check_ends_with_an_error(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "EXPECTED_EDGES", -1)
    ran = run("doctor")
    assert ran.code == 1
    assert "failed" in ran.out
    assert "must have -1 edges; it has 54" in ran.out


def test_list_as_json(run: Run) -> None:
    entries = {entry["name"]: entry for entry in run("datasets", "list", "--json").json()}
    assert entries["karate"]["present"] is True
    assert (entries["karate"]["nodes"], entries["karate"]["edges"]) == (34, 78)


def test_a_damaged_file_is_named(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "npz").mkdir()
    (tmp_path / "npz/polblogs.npz").write_bytes(b"not what it was")
    monkeypatch.setenv("NODECOPY_DATA", str(tmp_path))
    ran = run("datasets", "verify", "polblogs")
    assert ran.code == 2
    assert "polblogs.npz" in ran.err
    assert "Traceback" not in ran.err


@pytest.fixture
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two splits, one graph and one round, and networks that are hardly trained."""
    classifiers = pytest.importorskip("nodecopy.classify.networks")
    monkeypatch.setattr(demo, "N_SPLITS", 2)
    monkeypatch.setattr(demo, "N_GRAPHS", 1)
    monkeypatch.setitem(classifiers.GCN.presets, "default", replace(classifiers.KIPF, n_epochs=5))


@pytest.mark.usefixtures("brief")
def test_the_demo_compares_classifies_and_writes_a_page(run: Run) -> None:
    ran = run("demo", "--out", "demo").ok()
    assert "edge_homophily" in ran.out
    assert "Bayesian GCN" in ran.out
    assert "self-training" in ran.out
    assert "calibration error" in ran.out
    sections = sections_of(Path("demo/report.html"))
    kinds = ["graphs", "statistics", "links", "graphs", "classification", "attack", "recommendations"]
    assert [section["kind"] for section in sections] == kinds
    assert sections[4]["graph"] == sections[3]["title"]  # the table knows where its nodes are drawn
    assert Path("demo/report.html").stat().st_size < 500_000
