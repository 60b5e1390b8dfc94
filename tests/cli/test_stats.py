from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Run


def test_one_graph(run: Run) -> None:
    ran = run("stats", "karate")
    assert ran.code == 0
    lines = dict(line.split() for line in ran.out.splitlines())
    assert (lines["n_nodes"], lines["n_edges"], lines["triangles"]) == ("34", "78", "45")


def test_json_has_null_where_a_statistic_is_undefined(run: Run) -> None:
    Path("edge.csv").write_text("source,target\na,b\n")
    result = json.loads(run("stats", "edge.csv", "--json").out)
    assert result["n_edges"] == 1
    assert result["assortativity"] is None


def test_observed_against_samples(run: Run) -> None:
    assert run("sample", "karate", "-n", "4", "--out", "samples").code == 0
    result = json.loads(run("stats", "karate", "--samples", "samples", "--json").out)
    assert result["n_samples"] == 4
    assert result["statistics"]["n_edges"]["observed"] == 78
    assert result["statistics"]["edge_homophily"]["mean"] == pytest.approx(0.85, abs=0.1)
    single = json.loads(run("stats", "karate", "--samples", "samples/sample-0.csv", "--json").out)
    assert single["n_samples"] == 1


@pytest.mark.parametrize("suffix", ["npz", "graphml", "parquet"])
def test_samples_in_any_format(run: Run, suffix: str) -> None:
    assert run("sample", "karate", "-n", "2", "--format", suffix, "--out", "samples").code == 0
    plain = run("sample", "karate", "-n", "2", "--out", "plain")
    assert plain.code == 0
    outputs = [run("stats", "karate", "--samples", folder, "--json").out for folder in ("samples", "plain")]
    assert outputs[0] == outputs[1]


def test_samples_of_another_graph_are_an_error(run: Run) -> None:
    Path("other.csv").write_text("source,target\n1,99\n")
    ran = run("stats", "karate", "--samples", "other.csv")
    assert ran.code == 2
    assert "99" in ran.err


@pytest.mark.skipif("NODECOPY_DATA" not in os.environ, reason="needs the real data in NODECOPY_DATA")
@pytest.mark.parametrize(
    ("name", "mean", "most", "cross", "claws", "entropy"),
    [
        ("cora", 4.08, 168, 19.59, 6.345, 95.59),
        ("polblogs", 27.36, 351, 9.42, 10.09, 90.27),
        ("bitcoin", 2.081, 53, 27.1, 239.9, 92.31),
        ("amazon-photo", 31.80, 1434, 17.28, 0.754, 94.24),
    ],
)
def test_observed_rows_of_table_1(
    run: Run, name: str, mean: float, most: int, cross: float, claws: float, entropy: float
) -> None:
    ran = run("stats", name, "--largest-component", "--no-path-length", "--json")
    result = json.loads(ran.out)
    assert result["mean_degree"] == pytest.approx(mean, rel=1e-3)
    assert result["max_degree"] == most
    assert 100 * result["cross_community_share"] == pytest.approx(cross, rel=1e-3)
    assert 1e6 * result["claw_share"] == pytest.approx(claws, rel=1e-3)
    assert 100 * result["edge_entropy"] == pytest.approx(entropy, rel=1e-3)


@pytest.mark.parametrize("command", ["stats", "sample"])
def test_a_small_graph_never_waits_for_a_compiler(command: str) -> None:
    code = f"""
import sys
from nodecopy import cli
sys.argv = ["nodecopy", "{command}", "karate"]
try:
    cli.main()
except SystemExit:
    pass
heavy = {{"numba", "torch", "pandas", "matplotlib", "networkx", "sklearn", "pyarrow"}} & set(sys.modules)
sys.exit(f"loaded {{heavy}}" if heavy else 0)
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
