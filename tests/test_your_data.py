"""Run the blocks of the page "Your data" in order, in an empty folder."""

from __future__ import annotations

import csv
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("pandas")
pytest.importorskip("sklearn")

from tests.page_blocks import run_blocks


@pytest.fixture
def quiet_logger() -> Iterator[None]:
    logger, root = logging.getLogger("nodecopy"), logging.getLogger()
    level, handlers = logger.level, root.handlers.copy()
    yield
    logger.setLevel(level)
    root.handlers[:] = handlers


def test_all_blocks_run(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    quiet_logger: None,
) -> None:
    monkeypatch.chdir(tmp_path)
    run_blocks("your_data.md", monkeypatch)
    with Path("predictions.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 120 - 24
    expected = {f"A{number:03}": "retail" if number < 60 else "business" for number in range(120)}
    assert sum(expected[row["id"]] == row["predicted"] for row in rows) > 0.85 * len(rows)
    assert Path("page.html").stat().st_size > 10_000
    notices = capsys.readouterr().err
    for decision in ("header", "one-hot", "standardise"):
        assert decision in notices
