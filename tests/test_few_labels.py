"""Run the blocks of the page "Few labels" in order, in an empty folder."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("sklearn")

from tests.page_blocks import run_blocks


def test_all_blocks_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = run_blocks("few_labels.md", monkeypatch)
    truth = names["digits"].labels
    with Path("predictions.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 130
    assert sum(int(row["predicted"]) == truth[int(row["id"])] for row in rows) > 60
    printed = capsys.readouterr()
    assert "the last one, since there are no validation nodes" in printed.err
    assert '"chosen_by": "validation nodes"' in printed.out
