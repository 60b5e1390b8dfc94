from __future__ import annotations

import shlex

import numpy as np
import pytest

from docs.reference_pages import list_commands
from nodecopy import Graph, write_graph
from nodecopy._core.messages import warn_about_data
from nodecopy.cli import stats
from nodecopy.io.tables import write_table
from tests.cli.conftest import Run

MAX_LINES = 48
"""Two screens of 24 lines with 80 columns."""
COMMANDS = list_commands()


@pytest.mark.parametrize("name", ["", "datasets", *COMMANDS])
def test_help_fits_two_screens(run: Run, name: str) -> None:
    lines = run(*name.split(), "--help").out.rstrip().splitlines()
    assert 5 < len(lines) <= MAX_LINES
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize("name", COMMANDS)
def test_help_names_every_option_and_help_all_explains_it(run: Run, name: str) -> None:
    short, full = (run(*name.split(), flag).out for flag in ("--help", "--help-all"))
    for parameter in COMMANDS[name].params:
        if parameter.param_type_name == "option":
            option = max(parameter.opts, key=len)
            assert option in short, option
            assert parameter.help.split()[-1] in full, option
    assert "More options (--help-all" not in full


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
    examples = COMMANDS[name].epilog.splitlines()[1:]
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
