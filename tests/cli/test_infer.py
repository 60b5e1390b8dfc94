from __future__ import annotations

import json
import re
from pathlib import Path
from typing import get_args

import pytest

from nodecopy.cli.infer import MODELS, Alternative, Method, Model, Null
from nodecopy.inference.bootstrapping import METHODS
from nodecopy.inference.null_tests import NULL_MODELS
from nodecopy.metrics.significance import ALTERNATIVES
from tests.cli.conftest import Run


def test_a_table_of_intervals(run: Run) -> None:
    ran = run("infer", "karate", "--statistic", "transitivity", "--statistic", "density", "-n", "50")
    assert ran.code == 0
    head, *rows = (line.split() for line in ran.out.splitlines())
    assert head[:4] == ["statistic", "observed", "standard", "error"]
    assert [row[0] for row in rows] == ["transitivity", "density"]
    assert rows[0][1] == "0.2557"
    assert "if the edges were resampled for the same nodes?" in ran.err
    assert "warning: 35% of the ends of edges are at nodes with fewer than 3 donors" in ran.err


def test_json_with_a_null_model(run: Run) -> None:
    arguments = ("--statistic", "assortativity", "--null", "erdos-renyi", "-n", "60", "--json")
    result = json.loads(run("infer", "karate", *arguments).out)
    estimate = result["statistics"]["assortativity"]
    assert estimate["low"] < estimate["observed"] < estimate["high"]
    assert 0 < result["tests"]["assortativity"]["p_value"] < 0.1
    assert result["resample"] == "edges"
    assert result["notices"]


def test_p_values_in_the_table(run: Run) -> None:
    ran = run("infer", "karate", "--statistic", "density", "--null", "erdos-renyi", "-n", "40")
    assert ran.out.splitlines()[0].split()[-5:] == ["p-value", "Monte", "Carlo", "error", "z"]
    assert re.search(r"p-values \(two-sided\) by \d+ samples of ErdosRenyi\(", ran.err)
    nodes = run("infer", "karate", "--statistic", "degrees", "--null", "erdos-renyi")
    assert "--null needs a --statistic of the graph" in nodes.err
    both = ("--statistic", "degrees", "--statistic", "density")
    assert len(run("infer", "karate", *both, "--null", "erdos-renyi", "-n", "9").out.splitlines()) == 12


def test_columns_hold_what_they_are_named(run: Run) -> None:
    arguments = ("infer", "karate", "--statistic", "transitivity", "-n", "30")
    estimate = json.loads(run(*arguments, "--json").out)["statistics"]["transitivity"]
    cells = [float(cell) for cell in run(*arguments).out.splitlines()[1].split()[1:]]
    names = ["observed", "standard_error", "bias", "low", "high"]
    assert cells == pytest.approx([estimate[name] for name in names], rel=1e-3)


def test_statistics_of_nodes_show_the_largest(run: Run) -> None:
    ran = run("infer", "karate", "--statistic", "degrees", "-n", "10", "--model", "sbm")
    lines = ran.out.splitlines()
    assert len(lines) == 11
    assert lines[1].startswith("degrees of 34 ")


@pytest.mark.parametrize("resample", ["edges", "nodes"])
def test_every_model(run: Run, resample: str) -> None:
    for model in MODELS[resample]:
        arguments = ("--resample", resample, "--model", model, "--statistic", "density", "-n", "5", "--json")
        assert json.loads(run("infer", "karate", *arguments).out)["n"] == 5


def test_choices_are_those_of_the_package() -> None:
    assert set(get_args(Model)) == {name for models in MODELS.values() for name in models}
    assert set(get_args(Null)) == set(NULL_MODELS)
    assert get_args(Method) == METHODS
    assert get_args(Alternative) == ALTERNATIVES


def test_a_picture(run: Run) -> None:
    pytest.importorskip("matplotlib").use("agg")
    Path("edges.csv").write_text("source,target\n" + "\n".join(f"{i},{(i * 7 + 1) % 40}" for i in range(40)))
    ran = run("infer", "edges.csv", "--statistic", "density", "-n", "5", "--picture", "intervals.png")
    assert ran.code == 0, ran.err
    assert Path("intervals.png").read_bytes()[:4] == b"\x89PNG"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--statistic", "transitivty"), "--statistic must be one of .* Did you mean transitivity?"),
        (
            ("--model", "subsampling"),
            "--model must be one of node-copying, .* for --resample edges; got subsampling",
        ),
        (("--picture", "x.gif"), r"x.gif must end in one of .png, .svg, .pdf"),
        (("--alternative", "less"), "--alternative applies to --null only; got none. Leave it out."),
        (("--simultaneous",), "--simultaneous applies to --statistic degrees and pagerank only; got density"),
        (
            ("--resample", "nodes", "--statistic", "pagerank"),
            "--statistic pagerank needs --resample edges: every sample of nodes has other nodes",
        ),
        (("-n", "abc"), "--n must be an integer; got 'abc'"),
        (
            ("--simultaneous", "--method", "normal", "--statistic", "pagerank"),
            "--method must be 'basic' if intervals are simultaneous; got 'normal'",
        ),
        (("--confidence", "95"), "--confidence must be a number between 0.01 and 0.9999; got 95"),
    ],
)
def test_errors_are_one_line(run: Run, arguments: tuple[str, ...], message: str) -> None:
    ran = run("infer", "karate", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.count("\n") == 1
    assert re.search(message, ran.err)


def test_values_of_nodes_have_ids_in_json(run: Run) -> None:
    Path("edges.csv").write_text("ann,bob\nbob,eve\neve,ann\neve,tom\n")
    ran = run("infer", "edges.csv", "--statistic", "pagerank", "--simultaneous", "-n", "5", "--json")
    content = json.loads(ran.out)
    assert content["statistics"]["pagerank"]["nodes"] == ["ann", "bob", "eve", "tom"]
    assert content["simultaneous"] is True


def test_an_undefined_statistic_has_no_p_value_and_keeps_the_others(run: Run) -> None:
    """Degrees of a clique have no assortativity."""
    Path("clique.csv").write_text("".join(f"{a},{b}\n" for a in range(6) for b in range(a)))
    ran = run("infer", "clique.csv", "--null", "configuration", "-n", "40")
    assert ran.code == 0, ran.err
    assert "assortativity of the graph is undefined" in ran.err
    assert re.search("^assortativity +-", ran.out, re.MULTILINE)
    alone = run("infer", "clique.csv", "--null", "configuration", "--statistic", "assortativity", "-n", "40")
    assert alone.code == 2
    assert "--statistic must be finite to be tested; assortativity of the graph is nan" in alone.err
