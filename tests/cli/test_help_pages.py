from __future__ import annotations

import re
import shlex
from typing import Any

import numpy as np
import pytest
import typer

from nodecopy import Graph, cli, write_graph
from nodecopy._core.messages import warn_about_data
from nodecopy.cli import stats
from nodecopy.cli.help_pages import RARE, HelpPage, describe_command
from nodecopy.io.tables import write_table
from tests.cli.conftest import Run

COLUMNS, MAX_LINES = 80, 48
"""Two screens of 24 lines."""
GROUPS = ("datasets",)


def find_commands() -> dict[str, Any]:
    """The commands by name; those of a group have two words."""
    commands: dict[str, Any] = {}
    for name in cli.COMMANDS:
        command = cli.import_command(name)
        if name in GROUPS:
            commands |= {f"{name} {part}": child for part, child in command.commands.items()}
        else:
            commands[name] = command
    return commands


COMMANDS = find_commands()


def describe(name: str) -> HelpPage:
    return describe_command(COMMANDS[name], typer.Context(COMMANDS[name], info_name=f"nodecopy {name}"))


@pytest.mark.parametrize("name", ["", "datasets", *COMMANDS])
def test_help_fits_two_screens(run: Run, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(COLUMNS))
    lines = run(*name.split(), "--help").out.splitlines()
    assert 5 < sum(-(-max(len(line), 1) // COLUMNS) for line in lines) <= MAX_LINES
    is_example = [line.startswith("  nodecopy ") for line in lines]
    assert all(len(line) <= COLUMNS or example for line, example in zip(lines, is_example, strict=True))
    assert not any("<bool>" in line or "╭" in line for line in lines)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_names_every_option_and_all_of_help_explains_it(
    run: Run, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(COLUMNS))
    short, full = (" ".join(run(*name.split(), flag).out.split()) for flag in ("--help", "--help-all"))
    for entry in (entry for panel in describe(name).panels.values() for entry in panel):
        assert re.split("[ ,]", entry.names)[0] in re.split("[ ,]", short), entry.names
        assert f"{entry.names} {entry.text}".replace("- ", "-") in full.replace("- ", "-")
        assert entry.text.partition(".")[0] in short or not entry.is_common
    assert ("More options" in short) == any(
        not e.is_common for p in describe(name).panels.values() for e in p
    )


def test_rare_parameters_exist() -> None:
    names = {parameter.name for command in COMMANDS.values() for parameter in command.params}
    assert names >= RARE


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_explained_in_a_panel_of_its_kind(name: str) -> None:
    page = describe(name)
    assert {"Output"} <= set(page.panels) <= {"Input", "Model", "Engine", "Output", "Tables in files"}
    entries = {entry.names: entry.text for panel in page.panels.values() for entry in panel}
    assert len(entries) == len(COMMANDS[name].params) + 1  # and --help
    for names, text in entries.items():
        assert text[0].isupper() or text.partition(":")[0].islower(), names
        assert text.rstrip(")").endswith((".", "0", "1")) or "(default: " in text, text
    assert any("--quiet" in names for names in entries)


def test_an_entry_names_choices_and_the_default() -> None:
    entries = dict(entry[:2] for panel in describe("sample").panels.values() for entry in panel)
    assert entries["--donors NAME"].endswith(
        "One of auto, same-label, nearest-neighbours, jaccard, weighted. (default: auto)"
    )
    assert entries["--n-neighbours N"].endswith("(default: 10)")
    assert entries["--directed"] == "The edges of the file are directed."
    assert {"-n, --n N", "--interactions, --graph", "--out FOLDER", "--seed N", "--keep X"} <= set(entries)
    assert describe("sample").usage == "nodecopy sample SOURCE [OPTIONS]"
    assert describe("datasets fetch").usage == "nodecopy datasets fetch [NAMES] [OPTIONS]"


def write_example_files() -> None:
    """Write the files that the examples of the help name: two groups of people, and what they rated."""
    rng = np.random.default_rng(0)
    names = np.array(["ann", "bob", *(f"p{number:02d}" for number in range(38))])
    group = np.arange(40) % 2
    first = np.repeat(np.arange(40), 2)
    second = (first + np.tile([2, 4], 40)) % 40
    graph = Graph.from_edges(names[first], names[second])
    for suffix in ("csv", "parquet"):
        write_graph(graph, f"edges.{suffix}")
    features = np.eye(2)[group] + rng.normal(0, 0.3, (40, 2))
    write_table("features.csv", {"id": names, "age": features[:, 0], "income": features[:, 1]})
    labels = np.array(["cat", "dog"])[group]
    write_table("labels.csv", {"id": names, "label": labels})
    write_table("few_labels.csv", {"id": names[:10], "label": labels[:10]})
    users, items = np.meshgrid(np.arange(12), np.arange(20), indexing="ij")
    is_rated = rng.random(users.shape) < np.where(users % 2 == items % 2, 0.8, 0.2)
    columns = {"user": users[is_rated], "item": items[is_rated], "rating": rng.integers(2, 6, is_rated.sum())}
    write_table("ratings.csv", columns | {"time": np.arange(is_rated.sum())})


def has_cora() -> bool:
    from nodecopy import datasets

    return datasets.describe("cora").present


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_the_examples_run(run: Run, name: str) -> None:
    """In order, in a folder with files of the names that they use; ``stats`` and ``defend`` follow others."""
    if name == "reproduce" and not has_cora():
        pytest.skip("the examples of reproduce need Cora (NODECOPY_DATA)")
    if name in ("classify", "attack", "defend", "reproduce", "demo"):
        pytest.importorskip("torch")
    write_example_files()
    if name == "stats":
        run("sample", "edges.csv", "--out", "samples", "--n", "3")
    if name == "defend":
        run("attack", "digits", "--n-targets", "2", "--flips", "flips.npz")
    examples = describe(name).examples
    assert examples
    for example in examples:
        program, *arguments = shlex.split(example)
        ran = run(*arguments)
        assert program == "nodecopy"
        assert ran.code == 0, ran.err


def test_quiet_prints_results_only(run: Run) -> None:
    noisy, quiet = run("sample", "karate"), run("sample", "karate", "-q")
    assert quiet.out == noisy.out != ""
    assert "donor rule same-label" in noisy.err
    assert quiet.err == ""


def test_quiet_keeps_warnings_and_errors(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def warn(*_: object, **__: object) -> dict[str, float]:
        warn_about_data("few edges.")
        return {"n_edges": 1}

    monkeypatch.setattr(stats, "statistics", warn)
    assert run("stats", "karate", "--quiet").err == "warning: few edges.\n"
    assert run("stats", "none.csv", "--quiet").err.startswith("error: ")
