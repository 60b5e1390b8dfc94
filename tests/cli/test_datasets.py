from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run


def test_list_as_json(run: Run) -> None:
    entries = {entry["name"]: entry for entry in json.loads(run("datasets", "list", "--json").out)}
    assert entries["karate"]["present"] is True
    assert (entries["karate"]["nodes"], entries["karate"]["edges"]) == (34, 78)


def test_embedded_ones_need_no_files(run: Run) -> None:
    for command in ("fetch", "verify"):
        assert run("datasets", command, "karate").out == "karate: embedded, no files needed\n"


def test_a_damaged_file_is_named(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "npz").mkdir()
    (tmp_path / "npz/polblogs.npz").write_bytes(b"not what it was")
    monkeypatch.setenv("NODECOPY_DATA", str(tmp_path))
    ran = run("datasets", "verify", "polblogs")
    assert ran.code == 2
    assert "polblogs.npz" in ran.err
    assert "Traceback" not in ran.err


def test_fetching_an_unknown_dataset_is_one_error_line(run: Run) -> None:
    ran = run("datasets", "fetch", "karate", "korate")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("error: name of a dataset must be one of ")
    assert ran.err.endswith("got 'korate'. Did you mean karate or cora?\n")
