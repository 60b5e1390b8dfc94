"""Every example of the gallery runs as written, and the notebook from top to bottom."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "examples"
EXAMPLES = sorted(FOLDER.glob("*.py"))
for module in ("torch", "torch_geometric", "matplotlib", "networkx", "pandas", "sklearn"):
    pytest.importorskip(module)


def test_there_are_examples_and_the_gallery_shows_each() -> None:
    order = (FOLDER.parent / "docs" / "conf.py").read_text(encoding="utf-8")
    assert len(EXAMPLES) >= 7
    for example in EXAMPLES:
        assert f'"{example.stem}"' in order


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: str(example.stem))
def test_an_example_runs(example: Path) -> None:
    settings = os.environ | {"MPLBACKEND": "Agg"}
    ran = subprocess.run(
        [sys.executable, str(example)],
        cwd=FOLDER.parent,
        env=settings,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout


@pytest.mark.slow
def test_the_notebook_runs_from_top_to_bottom_and_holds_no_output() -> None:
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    notebook = nbformat.read(FOLDER / "tour.ipynb", as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells)
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    assert any(cell.get("outputs") for cell in notebook.cells)
