from __future__ import annotations

from pathlib import Path

import pytest

from nodecopy.inference.resampling import MODELS
from tests.cli.conftest import Run


def test_a_table_of_intervals(run: Run) -> None:
    ran = run("infer", "karate", "--statistic", "transitivity", "--statistic", "density", "-n", "50").ok()
    head, *rows = (line.split() for line in ran.out.splitlines())
    assert head[:4] == ["statistic", "observed", "standard", "error"]
    assert [row[0] for row in rows] == ["transitivity", "density"]
    assert rows[0][1] == "0.2557"
    assert "if the edges were resampled for the same nodes?" in ran.err
    assert "warning: 35% of the ends of edges are at nodes with fewer than 3 donors" in ran.err


def test_json_with_a_null_model(run: Run) -> None:
    arguments = ("--statistic", "assortativity", "--null", "erdos-renyi", "-n", "60", "--json")
    result = run("infer", "karate", *arguments).json()
    estimate = result["statistics"]["assortativity"]
    assert estimate["low"] < estimate["observed"] < estimate["high"]
    assert 0 < result["tests"]["assortativity"]["p_value"] < 0.1
    assert result["resample"] == "edges"
    assert result["notices"]


@pytest.mark.parametrize("target", ["edges", "nodes"])
def test_every_model(run: Run, target: str) -> None:
    for model in MODELS[target]:
        arguments = ("--resample", target, "--model", model, "--statistic", "density", "-n", "5", "--json")
        assert run("infer", "karate", *arguments).json()["n"] == 5


def test_a_picture(run: Run) -> None:
    pytest.importorskip("matplotlib").use("agg")
    Path("edges.csv").write_text("source,target\n" + "\n".join(f"{i},{(i * 7 + 1) % 40}" for i in range(40)))
    run("infer", "edges.csv", "--statistic", "density", "-n", "5", "--picture", "intervals.png").ok()
    assert Path("intervals.png").read_bytes()[:4] == b"\x89PNG"


def test_one_graph(run: Run) -> None:
    ran = run("stats", "karate").ok()
    lines = dict(line.split() for line in ran.out.splitlines())
    assert (lines["n_nodes"], lines["n_edges"], lines["triangles"]) == ("34", "78", "45")


def test_json_has_null_where_a_statistic_is_undefined(run: Run) -> None:
    Path("edge.csv").write_text("source,target\na,b\n")
    result = run("stats", "edge.csv", "--json").json()
    assert result["n_edges"] == 1
    assert result["assortativity"] is None


def test_observed_against_samples(run: Run) -> None:
    assert run("sample", "karate", "-n", "4", "--out", "samples").code == 0
    result = run("stats", "karate", "--samples", "samples", "--json").json()
    assert result["n_samples"] == 4
    assert result["statistics"]["n_edges"]["observed"] == 78
    assert result["statistics"]["edge_homophily"]["mean"] == pytest.approx(0.85, abs=0.1)
    single = run("stats", "karate", "--samples", "samples/sample-0.csv", "--json").json()
    assert single["n_samples"] == 1


def test_samples_of_another_graph_are_an_error(run: Run) -> None:
    Path("other.csv").write_text("source,target\n1,99\n")
    ran = run("stats", "karate", "--samples", "other.csv")
    assert ran.code == 2
    assert "99" in ran.err
