from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from nodecopy.experiments import rendering
from tests.cli.conftest import Run
from tests.experiments.fakes import TOML


@pytest.fixture
def run(run: Run) -> Run:
    """Commands that may run the fake classifier, which is outside the package."""
    return lambda command, *arguments: run(command, *arguments, *["--trust"][: command == "reproduce"])


@pytest.fixture
def table(run: Run) -> str:
    """An experiment of ours in the empty folder that commands run in."""
    Path("fake.toml").write_text(TOML.format(pause=0, log="log"), encoding="utf-8")
    return "fake.toml"


def computed() -> int:
    """How many trials the fake classifier has seen."""
    return len(Path("log").read_text().splitlines()) if Path("log").exists() else 0


def test_json(run: Run, table: str) -> None:
    ran = run("reproduce", table, "--json").ok()
    found = ran.json()
    places = [(cell["dataset"], cell["labels"], cell["method"]) for cell in found["cells"]]
    assert places == [("karate", labels, method) for labels in (1, 3) for method in ("weak", "strong")]
    for cell in found["cells"]:
        assert {"mean", "std", "n", "published", "seconds", "verdict", "nll", "brier", "ece"} <= set(cell)
        assert cell["n"] == len(cell["values"]) == 6
        assert cell["mean"] == pytest.approx(sum(cell["values"]) / 6)
    assert [cell["published"] for cell in found["cells"]] == [60, 90, 70, 95]
    assert found["cells"][1]["gains"][0]["over"] == "weak"
    assert found["seed"] == 0


@pytest.mark.parametrize(
    "wrong", [("--device", "abacus"), ("--workers", "0"), ("--seed", "-1"), ("--out", "{table}/in-a-file")]
)
def test_results_are_not_removed_before_all_is_checked(run: Run, table: str, wrong: tuple[str, str]) -> None:
    run("reproduce", table, "--methods", "weak", "--labels", "1")
    before = sorted(Path("results/store").rglob("*.json"))
    assert before
    options = [option.format(table=table) for option in wrong]
    assert run("reproduce", table, "--fresh", "--methods", "weak", *options).code == 2
    assert sorted(Path("results/store").rglob("*.json")) == before


def test_stored_shows_what_is_there_and_computes_nothing(run: Run, table: str) -> None:
    run("reproduce", table, "--methods", "weak", "--labels", "1")
    before = computed()
    found = run("reproduce", table, "--stored", "--json").json()
    assert computed() == before
    assert [(cell["method"], cell["labels"]) for cell in found["cells"]] == [("weak", 1)]


def test_out(run: Run, table: str) -> None:
    assert run("reproduce", table, "--out", "tables").code == 0
    assert sorted(path.name for path in Path("tables").iterdir()) == ["fake.csv", "fake.md", "fake.tex"]
    assert "| Weak |" in Path("tables/fake.md").read_text(encoding="utf-8")
    assert r"\begin{tabular}" in Path("tables/fake.tex").read_text(encoding="utf-8")
    with Path("tables/fake.csv").open(encoding="utf-8", newline="") as file:
        assert len(list(csv.DictReader(file))) == 6


def test_no_table_is_written_if_one_fails(run: Run, table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(results: object) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(rendering, "render_latex", broken)
    assert run("reproduce", table, "--out", "tables").code == 1
    assert not Path("tables").exists()


def test_classes_of_others_are_run_with_trust_only(run: Run, table: str) -> None:
    """Without it, not even the module is imported."""
    Path("malice.py").write_text("open('owned', 'w')")
    for old, new in (
        ("tests.experiments.fakes.Fake", "malice.Fake"),
        ("skill = 0.3", 'skill = {class = "malice.X"}'),
        ("skill = 0.3", 'skill = {class = "nodecopy.classify.CustomNetwork", factory = "malice.build"}'),
    ):
        text = TOML.format(pause=0, log="log").replace("tests.experiments.fakes", "nodecopy.fakes")
        Path("malicious.toml").write_text(text.replace(old.replace("tests.experiments", "nodecopy"), new))
        python = "from nodecopy.experiments import load; load('malicious.toml')"
        for code in ("from nodecopy.cli import main; main()", python):
            command = [sys.executable, "-c", f"import sys; sys.path.insert(0, '.'); {code}"]
            command += ["reproduce", "malicious.toml"]
            ran = subprocess.run(command, capture_output=True, text=True, check=False)
            assert ran.returncode
            assert "trust must be set to run code outside nodecopy" in " ".join(ran.stderr.split())
            assert not Path("owned").exists()


COMMAND = [sys.executable, "-c", "from nodecopy.cli import main; main()", "reproduce"]


def start(*arguments: str) -> subprocess.Popen[str]:
    """Start the command in a process of its own, which finds the fakes."""
    root = str(Path(__file__).parents[2])
    path = os.pathsep.join([root, os.environ.get("PYTHONPATH", "")])
    return subprocess.Popen(
        [*COMMAND, *arguments, "--trust"],
        env={**os.environ, "PYTHONPATH": path},
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # background jobs ignore it
    )


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals are others there")
@pytest.mark.parametrize(
    ("kill", "workers"), [(signal.SIGINT, "1"), (signal.SIGTERM, "2"), (signal.SIGKILL, "2")]
)
def test_a_stopped_run_keeps_what_is_finished_of_a_cell(run: Run, kill: signal.Signals, workers: str) -> None:
    """The trials of a cell were one batch, of which a kill lost everything."""
    Path("fake.toml").write_text(TOML.format(pause=0.1, log="log"), encoding="utf-8")
    process = start("fake.toml", "--workers", workers)
    end = time.monotonic() + 120
    while not any(Path("results").rglob("[0-9]*.json")) and time.monotonic() < end:
        time.sleep(0.01)
    process.send_signal(kill)
    _, printed = process.communicate(timeout=60)
    kept = sorted(Path("results").rglob("[0-9]*.json"))
    assert 1 <= len(kept) < 12  # neither nothing nor both cells that may be under way
    if kill != signal.SIGKILL:
        assert process.returncode == 128 + kill
        note = f"stopped: {len(kept)} of 24 trials are finished and kept in results/store. "
        assert f"{note}The same command computes the others." in printed
        assert "Traceback" not in printed
    times = [path.stat().st_mtime_ns for path in kept]
    ran = run("reproduce", "fake.toml", "--json")
    assert [cell["n"] for cell in ran.json()["cells"]] == [6] * 4
    assert [path.stat().st_mtime_ns for path in kept] == times  # none was computed again


@pytest.mark.slow
@pytest.mark.skipif(not os.environ.get("NODECOPY_DATA"), reason="NODECOPY_DATA names no folder of real files")
def test_trials_have_the_same_bits_alone_and_together(run: Run) -> None:
    """Products of matrices were rounded by their place in memory, so scores differed by 1e-8."""
    torch = pytest.importorskip("torch")
    if not torch.backends.mkl.is_available():
        pytest.skip("torch does not use MKL")
    text = 'base = "table2"\ntitle = "x"\n[protocol]\ndatasets = ["cora"]\nlabels = [5]\ntrials = 4\n'
    Path("bits.toml").write_text(f"{text}[methods.gcn]", encoding="utf-8")
    scores = []
    for size in ("1", "4"):
        process = start("bits.toml", "--batch-size", size, "--store", size)
        process.communicate(timeout=300)
        assert process.returncode == 0
        files = sorted(Path(size).rglob("*.json"))
        scores.append([json.loads(file.read_text())["scores"] for file in files])
    assert len(scores[0]) == 4
    assert scores[0] == scores[1]
