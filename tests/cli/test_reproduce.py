from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from nodecopy.errors import MissingExtraError
from nodecopy.experiments import rendering
from nodecopy.recommend import EASE
from tests.cli.conftest import Run
from tests.experiments.fakes import TOML
from tests.experiments.tasks.test_generate_task import TOML as SAMPLES
from tests.experiments.tasks.test_recommend_task import TOML as BOOKS


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
    ran = run("reproduce", table, "--json")
    assert ran.code == 0
    found = json.loads(ran.out)
    places = [(cell["dataset"], cell["labels"], cell["method"]) for cell in found["cells"]]
    assert places == [("karate", labels, method) for labels in (1, 3) for method in ("weak", "strong")]
    for cell in found["cells"]:
        assert {"mean", "std", "n", "published", "seconds", "verdict", "nll", "brier", "ece"} <= set(cell)
        assert cell["n"] == len(cell["values"]) == 6
        assert cell["mean"] == pytest.approx(sum(cell["values"]) / 6)
    assert [cell["published"] for cell in found["cells"]] == [60, 90, 70, 95]
    assert found["cells"][1]["gains"][0]["over"] == "weak"
    assert found["seed"] == 0


def test_a_second_run_computes_nothing_and_says_the_same(run: Run, table: str) -> None:
    first = run("reproduce", table, "--json")
    assert computed() == 24
    second = run("reproduce", table, "--json", "--resume")
    assert computed() == 24
    assert second.out == first.out
    assert "6 trials in" in first.err
    assert "trials in" not in second.err


def test_fresh_computes_what_is_asked_for_anew(run: Run, table: str) -> None:
    run("reproduce", table)
    run("reproduce", table, "--fresh", "--methods", "weak", "--labels", "3", "--trials", "2")
    assert computed() == 24 + 2


@pytest.mark.parametrize(
    "wrong",
    [
        ("--device", "abacus"),
        ("--device", "cuda:99"),
        ("--workers", "0"),
        ("--batch-size", "0"),
        ("--seed", "-1"),
        ("--out", "{table}/in-a-file"),
    ],
)
def test_what_is_computed_anew_is_not_removed_before_all_is_checked(
    run: Run, table: str, wrong: tuple[str, str]
) -> None:
    run("reproduce", table, "--methods", "weak", "--labels", "1")
    before = sorted(Path("results/store").rglob("*.json"))
    assert before
    found = run(
        "reproduce", table, "--fresh", "--methods", "weak", *(one.format(table=table) for one in wrong)
    )
    assert found.code == 2
    assert sorted(Path("results/store").rglob("*.json")) == before


def test_fresh_with_a_class_that_is_not_there_removes_nothing(run: Run, table: str) -> None:
    run("reproduce", table, "--methods", "weak", "--labels", "1")
    before = sorted(Path("results/store").rglob("*.json"))
    text = Path(table).read_text(encoding="utf-8")
    Path(table).write_text(text.replace("fakes.Fake", "fakes.Nobody"), encoding="utf-8")
    found = run("reproduce", table, "--fresh")
    assert found.code == 2
    assert "must be importable; got" in found.err
    assert sorted(Path("results/store").rglob("*.json")) == before


def test_stored_shows_what_is_there_and_computes_nothing(run: Run, table: str) -> None:
    run("reproduce", table, "--methods", "weak", "--labels", "1")
    before = computed()
    found = json.loads(run("reproduce", table, "--stored", "--json").out)
    assert computed() == before
    assert [(cell["method"], cell["labels"]) for cell in found["cells"]] == [("weak", 1)]
    assert "exclude each other" in run("reproduce", table, "--stored", "--fresh").err


def test_narrowing_and_store(run: Run, table: str) -> None:
    options = ["--dataset", "karate", "--labels", "3", "--methods", "strong,weak", "--trials", "2"]
    found = json.loads(
        run("reproduce", table, *options, "--store", "kept", "--batch-size", "1", "--json").out
    )
    assert [(cell["method"], cell["n"]) for cell in found["cells"]] == [("weak", 2), ("strong", 2)]
    assert len(list(Path("kept").rglob("*.json"))) == 4
    assert not Path("results").exists()


def test_other_seeds_are_other_results(run: Run, table: str) -> None:
    def accuracies(seed: int) -> Any:
        found = json.loads(run("reproduce", table, "--seed", str(seed), "--json").out)
        return [cell["values"] for cell in found["cells"]]

    assert accuracies(0) != accuracies(1)
    assert accuracies(0) == accuracies(0)
    assert computed() == 48


def test_terminal(run: Run, table: str) -> None:
    ran = run("reproduce", table)
    lines = ran.out.splitlines()
    assert "karate" in lines
    heads = next(line for line in lines if line.startswith("method"))
    assert heads.split() == ["method", "1", "label", "paper", "verdict", "3", "labels", "paper", "verdict"]
    assert any(line.startswith("Strong over Weak") for line in lines)
    assert any(line.startswith("Absent") and "50.0 ± 9.0" in line for line in lines)
    assert "commit: " in ran.err
    assert Path("results/store/fake/karate").is_dir()


def test_out(run: Run, table: str) -> None:
    assert run("reproduce", table, "--out", "tables").code == 0
    assert sorted(path.name for path in Path("tables").iterdir()) == ["fake.csv", "fake.md", "fake.tex"]
    assert "| Weak |" in Path("tables/fake.md").read_text(encoding="utf-8")
    assert r"\begin{tabular}" in Path("tables/fake.tex").read_text(encoding="utf-8")
    with Path("tables/fake.csv").open(encoding="utf-8", newline="") as file:
        assert len(list(csv.DictReader(file))) == 6


def test_no_table_is_written_where_one_form_fails(
    run: Run, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(results: object) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(rendering, "render_latex", broken)
    assert run("reproduce", table, "--out", "tables").code == 1
    assert not Path("tables").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["table22"], "Did you mean table2"),
        (["mine.toml"], "mine.toml must be a TOML file that can be read"),
        (["table2", "--dataset", "coral"], "Did you mean cora"),
        (["table2", "--labels", "7"], "labels of table2 must be one of 5, 10, 20; got 7"),
        (["table2", "--labels", "five"], "labels of table2 must be one of 5, 10, 20; got five"),
        (["table2", "--methods", "gcm"], "Did you mean gcn"),
        (
            ["table2", "--dataset", "pubmed", "--methods", "dfnet-att"],
            "dfnet-att runs with dataset cora or citeseer, got pubmed",
        ),
        (["table2", "--methods", ","], "a method that table2 runs must be given; got none"),
        (["table6", "--labels", "5"], "labels must be left out: table6 has none; got 5"),
        (["table6", "--methods", "copyease"], "Did you mean copy-ease"),
        (["table2", "--trials", "0"], "--trials must be an integer of at least 1"),
        (["table2", "--workers", "0"], "--workers must be an integer of at least 1"),
        (["table2", "--batch-size", "0"], "--batch-size must be an integer of at least 1"),
        (["table2", "--seed", "-1"], "--seed must be an integer of at least 0"),
    ],
)
def test_what_is_not_there_is_an_error_in_one_line(run: Run, options: list[str], message: str) -> None:
    ran = run("reproduce", *options)
    assert ran.code == 2
    assert message in ran.err
    assert "Traceback" not in ran.err
    assert not Path("results").exists()


def test_recommenders_and_what_is_skipped(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*arguments: Any, **options: Any) -> None:
        raise MissingExtraError("EASE needs an abacus")

    monkeypatch.setattr(EASE, "fit", missing)
    Path("books.toml").write_text(BOOKS, encoding="utf-8")
    ran = run("reproduce", "books.toml", "--trials", "2", "--out", "tables")
    assert ran.code == 0
    assert ran.err.count("ease is skipped: EASE needs an abacus") == 1
    assert ran.err.count("library, copy-ease: 1 trials in") == 2
    heads = next(line for line in ran.out.splitlines() if line.startswith("method"))
    assert heads.count("printed convention") == 4
    text = Path("tables/books.md").read_text(encoding="utf-8")
    assert "| popularity |" in text
    assert "| EASE | - | - | - | - | - | 44.10 ± 0.20 |" in text
    assert json.loads(run("reproduce", "books.toml", "--stored", "--json").out)["cells"][0]["n"] == 2
    ran = run("reproduce", "books.toml", "--methods", "ease")
    assert (ran.code, "EASE needs an abacus" in ran.err) == (2, True)


def test_samples_are_drawn_as_a_figure(run: Run) -> None:
    pytest.importorskip("matplotlib")
    Path("samples.toml").write_text(SAMPLES, encoding="utf-8")
    ran = run("reproduce", "samples.toml", "--trials", "2", "--methods", "near", "--out", "tables")
    assert ran.code == 0
    assert sorted(path.suffix for path in Path("tables").iterdir()) == [".csv", ".md", ".png", ".tex"]
    assert Path("tables/samples.png").read_bytes().startswith(b"\x89PNG")
    assert any(line.startswith("Observed") and "level" in line for line in ran.out.splitlines())


def test_stored_tables_need_no_torch(run: Run, table: str) -> None:
    """Classes whose optional package is missing are neither checked nor needed to find stored trials."""
    run("reproduce", table, "--methods", "weak", "--labels", "1")
    code = """
import sys
sys.modules["torch"] = None
sys.path.insert(0, sys.argv.pop())
from nodecopy import cli
cli.main()
"""
    root = str(Path(__file__).parents[2])
    command = [sys.executable, "-c", code, "reproduce", table, "--trust", "--stored", "--json", root]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert [cell["method"] for cell in json.loads(ran.stdout)["cells"]] == ["weak"]
    command[4] = "table2"  # its classes need torch, and the store has none of its trials
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "--store must hold finished trials of table2" in ran.stderr


def test_stored_without_trials_is_an_error(run: Run, table: str) -> None:
    ran = run("reproduce", table, "--stored", "--store", "missing")
    assert (ran.code, ran.out) == (2, "")
    assert "--store must hold finished trials of " in ran.err
    assert "; missing does not exist. Leave --stored out" in ran.err


def test_classes_of_others_are_run_with_trust_only(run: Run, table: str) -> None:
    """Without it, not even the module is imported."""
    Path("malice.py").write_text("open('owned', 'w')")
    for old, new in (
        ("tests.experiments.fakes.Fake", "malice.Fake"),
        ("skill = 0.3", 'skill = {class = "malice.X"}'),
    ):
        text = TOML.format(pause=0, log="log").replace(old, new)
        Path("malicious.toml").write_text(text, encoding="utf-8")
        code = "import sys; sys.path.insert(0, '.'); from nodecopy.cli import main; main()"
        command = [sys.executable, "-c", code, "reproduce", "malicious.toml"]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        assert ran.returncode == 2
        assert "names classes" not in ran.stdout
        assert "--trust must be set to run classes outside nodecopy" in " ".join(ran.stderr.split())
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
    )


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals are others there")
@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize("kill", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_stopped_run_keeps_what_is_finished_of_a_cell(run: Run, kill: signal.Signals, workers: str) -> None:
    """The trials of a cell were one batch, of which a kill lost everything."""
    Path("fake.toml").write_text(TOML.format(pause=0.3, log="log"), encoding="utf-8")
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
    assert [cell["n"] for cell in json.loads(ran.out)["cells"]] == [6] * 4
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
