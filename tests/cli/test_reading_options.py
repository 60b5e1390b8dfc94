"""Options of tables, on the commands that read files."""

from __future__ import annotations

import json
from inspect import signature
from pathlib import Path

import pytest

from nodecopy.cli import COMMANDS, import_command
from nodecopy.cli.files import ReadingOptions, reads
from tests.cli.conftest import Run

GRAPH = {
    "--header",
    "--source",
    "--target",
    "--weight",
    "--id",
    "--label",
    "--duplicates",
    "--allow-isolated",
    "--ignore-column",
}
LOG = {"--header", "--user-column", "--item", "--rating", "--time"}


def options(command: str) -> set[str]:
    return {name for parameter in import_command(command).params for name in parameter.opts}


@pytest.mark.parametrize("command", ["sample", "stats", "classify", "attack", "defend", "report"])
def test_commands_that_read_graphs(command: str) -> None:
    assert command in COMMANDS
    assert options(command) >= GRAPH - {"--ignore-column"}
    assert ("--ignore-column" in options(command)) == ("--features" in options(command))


def test_commands_that_read_interactions() -> None:
    assert options("sample") & options("report") >= LOG | {"--user"}
    assert options("recommend") >= LOG


def test_a_command_gets_one_argument() -> None:
    got = []

    @reads("graph")
    def command(source: str, reading: ReadingOptions) -> None:
        got.append((source, reading))

    assert "reading" not in signature(command).parameters
    defaults = {name: p.default for name, p in signature(command).parameters.items() if name != "source"}
    command(source="edges.csv", **(defaults | {"source_column": "a"}))
    assert got == [("edges.csv", ReadingOptions(source="a"))]


def test_given_options() -> None:
    assert ReadingOptions().given() == {}
    reading = ReadingOptions(header=False, weight="", user="who")
    assert list(reading.given()) == ["header", "weight", "user_column"]
    assert list(reading.given("graph")) == ["weight"]
    assert reading.of("interactions") == {
        "header": False,
        "user": "who",
        "item": None,
        "rating": None,
        "time": None,
        "lists": None,
    }


def test_columns_are_named(run: Run) -> None:
    Path("edges.csv").write_text("when,a,b,much\n1,x,y,2\n1,y,z,3\n1,x,y,4\n")
    columns = ("--source", "a", "--target", "b", "--weight", "much", "--duplicates", "sum", "--json")
    result = json.loads(run("stats", "edges.csv", *columns).out)
    assert (result["n_nodes"], result["n_edges"]) == (3, 2)
    assert result["notices"] == [
        "edges.csv: not read: when.",
        "edges.csv: repeated edges: 1; their weights are added. --duplicates max takes the largest.",
    ]


def test_headers_are_decided(run: Run) -> None:
    Path("edges.csv").write_text("ann,bob\nbob,cleo\n")
    ran = run("stats", "edges.csv")
    assert "the first row (ann,bob) is data, since 'bob' occurs again. Use --header otherwise." in ran.err
    result = json.loads(run("stats", "edges.csv", "--header", "--json").out)
    assert result["n_nodes"] == 2


def test_isolated_nodes_on_demand(run: Run) -> None:
    Path("edges.csv").write_text("source,target\na,b\n")
    Path("labels.csv").write_text("id,label\na,1\nz,2\n")
    ran = run("stats", "edges.csv", "--labels", "labels.csv")
    assert (ran.code, ran.err.endswith("--allow-isolated adds them as isolated nodes.\n")) == (2, True)
    result = json.loads(run("stats", "edges.csv", "--labels", "labels.csv", "--allow-isolated", "--json").out)
    assert result["n_nodes"] == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("stats", "karate", "--source", "a"), "--source applies to files only; got the dataset 'karate'"),
        (("recommend", "library", "--all-users", "--item", "a"), "--item applies to files only"),
        (("sample", "karate", "--rating", "a"), "--rating applies to --interactions only; got a graph"),
        (("sample", "library", "--label", "a"), "--label applies to graphs only; got interactions"),
        (
            ("sample", "edges.parquet", "--engine", "duckdb", "--out", "out", "--no-header"),
            "--header applies to --engine memory only; got --engine duckdb",
        ),
    ],
)
def test_options_that_do_not_apply(run: Run, arguments: tuple[str, ...], message: str) -> None:
    ran = run(*arguments)
    assert ran.code == 2
    assert message in ran.err


def test_columns_of_features_are_ignored(run: Run, tmp_path: Path) -> None:
    """Before, only classify and report had the option that errors of others named."""
    edges, features = tmp_path / "edges.csv", tmp_path / "features.csv"
    ring = range(12)
    edges.write_text("source,target\n" + "".join(f"{n},{(n + 1) % 12}\n" for n in ring))
    features.write_text("id,x,note\n" + "".join(f"{n},{n % 5},text {n}\n" for n in ring))
    arguments = ("sample", edges, "--features", features, "--n", "2")
    ran = run(*arguments)
    assert ran.code == 2
    assert "Leave it out with --ignore-column note." in " ".join(ran.err.split())
    assert run(*arguments, "--ignore-column", "note").code == 0
    assert "--ignore-column applies to" in run("sample", edges, "--n", "2", "--ignore-column", "x").err
