from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Run


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
