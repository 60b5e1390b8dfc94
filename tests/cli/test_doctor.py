from __future__ import annotations

import json
import re
from importlib.metadata import version

import pytest

import nodecopy
from nodecopy.cli import doctor
from tests.cli.conftest import Run


def test_the_output_says_what_a_bug_report_needs(run: Run) -> None:
    ran = run("doctor")
    assert ran.code == 0
    assert re.search(rf"^nodecopy +{re.escape(nodecopy.__version__)} in ", ran.out, re.MULTILINE)
    for word in ("Python", "processor", "GPU", "numba", "torch", "NODECOPY_DATA", "karate"):
        assert word in ran.out
    assert ran.out.count("passed") == 3
    assert ran.err == "Paste the lines above into a bug report.\n"


def test_json(run: Run) -> None:
    about = json.loads(run("doctor", "--json").out)
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


def test_a_wrong_data_folder_is_named(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NODECOPY_DATA", "/nowhere")
    ran = run("doctor")
    assert ran.code == 0
    assert "NODECOPY_DATA must name a folder that exists; got '/nowhere'." in ran.out
