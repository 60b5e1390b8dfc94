from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

from nodecopy import Graph
from nodecopy._core.random import child, seed_sequence
from nodecopy.defend import CopyingDefence, EvidenceDefence
from tests.cli.conftest import Run
from tests.cli.labelled_files import TABLES, rows, write_files

WITHOUT_FEATURES = ("defend", "graph.csv", "--labels", "labels.csv")


@pytest.fixture
def files(run: Run) -> Graph:
    return write_files()


def test_options_of_defences(run: Run, files: Graph) -> None:
    """They do what the classes do when these are asked."""
    train = np.array([number for number in range(29) if number != 4])
    cases: list[tuple[list[str], dict[str, Any]]] = [
        (["--retrain"], {"retrain": True}),
        (["--trust-edges"], {"trust_edges": True}),
        (["--retrain", "--trust-edges"], {"retrain": True, "trust_edges": True}),
    ]
    for options, settings in cases:
        options = ["--method", "copying", "--n-donors", "4", *options]
        ran = run("defend", "graph.csv", *TABLES, "--nodes", "p04", *options, "--json")
        defence = CopyingDefence(n_donors=4, **settings)
        defence.fit(files, train, targets=[4], rng=child(seed_sequence(0), 1))
        expected = dict(zip(["cat", "dog"], defence.predict_proba()[4].tolist(), strict=True))
        assert json.loads(ran.out)["nodes"][0]["probabilities"] == pytest.approx(expected, abs=1e-6)
    for method in ("copying", "evidence"):
        options = ["--method", method, "--suspects", "0.1", "--n-donors", "4", "--retrain"]
        ran = run("defend", "graph.csv", *TABLES, *options, "--json")
        assert json.loads(ran.out)["corrected"] == 3
        assert json.loads(ran.out)["method"] == method


def test_evidence_is_the_default_and_is_told(run: Run, files: Graph) -> None:
    """Probabilities are those of the class, and every edge of the node has its credibility and a reason."""
    options = ("--nodes", "p04", "--n-donors", "4")
    result = json.loads(run("defend", "graph.csv", *TABLES, *options, "--json").out)
    train = np.array([number for number in range(29) if number != 4])
    defence = EvidenceDefence(n_donors=4, retrain=True)
    defence.fit(files, train, targets=[4], rng=child(seed_sequence(0), 1))
    (node,) = result["nodes"]
    (report,) = defence.explain([4])
    assert result["method"] == "evidence"
    assert node["probabilities"] == pytest.approx(report.probabilities, abs=1e-6)
    assert node["evidence"]["features"] == pytest.approx(report.features, abs=1e-6)
    assert {edge["neighbour"] for edge in node["evidence"]["edges"]} == {"p00", "p02", "p06", "p08"}
    for edge in node["evidence"]["edges"]:
        assert edge["distrusted"] == (edge["credibility"] < 0.5)
        assert "its ends" in edge["reason"]
    ran = run("defend", "graph.csv", *TABLES, *options, "--out", "corrections.csv")
    assert "method: EvidenceDefence(" in ran.err
    assert ran.out.splitlines()[-2].split()[:4] == ["node", "before", "after", "edges"]
    (row,) = rows("corrections.csv")
    n_distrusted = sum(edge["distrusted"] for edge in node["evidence"]["edges"])
    assert (row["n_edges"], row["n_distrusted"]) == ("4", str(n_distrusted))


def test_attacked_nodes_are_detected_where_none_are_given(run: Run, files: Graph) -> None:
    ran = run("defend", "graph.csv", *TABLES, "--n-donors", "4", "--json")
    result = json.loads(ran.out)
    assert result["corrected"] == 4  # 15 % of 30 nodes
    listed = (
        "the 15 % most suspicious nodes, 4 of 30, are corrected and listed, whether the graph was attacked "
        "or not: a listed node need not have been attacked. Use --suspects to change this."
    )
    assert listed in result["notices"]
    ran = run("defend", "graph.csv", *TABLES, "--n-donors", "4", "--scores", "scores.csv")
    assert "method: WholeGraphDefence(" in ran.err
    assert listed in ran.err
    head, first = (line.split() for line in ran.out.splitlines()[-5:-3])
    assert head[:2] == ["node", "suspicion"]
    assert first[0] == rows("scores.csv")[0]["id"]
    assert float(first[1]) == pytest.approx(float(rows("scores.csv")[0]["suspicion"]), rel=0.01)


def test_scores_of_all_nodes(run: Run, files: Graph) -> None:
    options = ("--n-donors", "4", "--suspects", "0.1", "--out", "corrections.csv", "--scores", "scores.csv")
    ran = run("defend", "graph.csv", *TABLES, *options)
    assert ran.code == 0, ran.err
    assert "suspicion scores written to scores.csv" in ran.err
    table = rows("scores.csv")
    assert {row["id"] for row in table} == set(files.node_ids.tolist())
    suspicion = [float(row["suspicion"]) for row in table]
    assert suspicion == sorted(suspicion, reverse=True)
    corrected = [row["id"] for row in table if row["corrected"] == "1"]
    assert corrected == [row["id"] for row in table][:3] == [row["id"] for row in rows("corrections.csv")]
    ran = run("defend", "graph.csv", *TABLES, "--nodes", "p04", "--scores", "scores.csv")
    assert "--scores applies to --suspects only" in ran.err


def test_flips_from_a_table(run: Run, files: Graph) -> None:
    """The same corrections as from .npz, and a table without targets needs them."""
    results = []
    for file in ("flips.npz", "flips.csv"):
        ran = run("attack", "graph.csv", *TABLES, "--method", "dice", "--nodes", "p04,p07", "--flips", file)
        assert ran.code == 0, ran.err
        ran = run("defend", "graph.csv", *TABLES, "--n-donors", "4", "--flips", file, "--json")
        results.append(json.loads(ran.out))
    assert results[0] == results[1]
    assert list(rows("flips.csv")[0]) == ["first", "second", "change", "target"]
    Path("own.csv").write_text("first,second\np04,p05\n")
    ran = run("defend", "graph.csv", *TABLES, "--n-donors", "4", "--flips", "own.csv")
    assert (ran.code, "own.csv must name the attacked nodes in a column target" in ran.err) == (2, True)
    ran = run("defend", "graph.csv", *TABLES, "--n-donors", "4", "--flips", "own.csv", "--nodes", "p04")
    assert ran.code == 0, ran.err
