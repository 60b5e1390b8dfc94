"""Run the blocks of the page "Recommendation" in order, in an empty folder."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("pandas")

from tests.page_blocks import run_blocks


def test_all_blocks_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names = run_blocks("recommendation.md", monkeypatch)
    assert names["items"].shape == (1, 2)  # type: ignore[attr-defined]
    assert "Dracula" not in names["items"]  # type: ignore[operator]
    assert Path("users.csv").read_text(encoding="utf-8").startswith("model,user,recall@20")
    assert "EASE was tuned" in capsys.readouterr().err
